//! Facts in parts: one for each neighbour, because these change most, and one for each other field.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::id::MacAddr;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::parts::{Part, Parts, RestoreError, json, read};
use crate::facts::{Facts, ProxyFact};
use crate::indexes::LegId;

pub(super) const FACT: &str = "fact/";
const NEIGHBOUR: &str = "fact/neighbour/";

/// States of the proxies by id, each with the leg to it. JSON has no keys of this kind.
type ProxyList = Vec<(String, Vec<(Option<LegId>, ProxyFact)>)>;

/// Adds the facts that differ from earlier ones, or all.
pub(super) fn add_since(before: Option<&Facts>, after: &Facts, parts: &mut Vec<Part>) {
    // A new field must be a part, too.
    let Facts {
        links,
        addresses,
        default_routes,
        prefixes,
        route_mtus,
        booted_at,
        neighbours,
        uplinks,
        tunnels,
        proxies,
        transports,
        endpoints,
        leases,
        delegations,
        doh_servers,
    } = after;
    add(parts, "links", before.map(|before| &before.links), links);
    add(parts, "addresses", before.map(|before| &before.addresses), addresses);
    add(parts, "default_routes", before.map(|before| &before.default_routes), default_routes);
    add(parts, "prefixes", before.map(|before| &before.prefixes), prefixes);
    add(parts, "route_mtus", before.map(|before| &before.route_mtus), route_mtus);
    add(parts, "booted_at", before.map(|before| &before.booted_at), booted_at);
    add(parts, "uplinks", before.map(|before| &before.uplinks), uplinks);
    add(parts, "tunnels", before.map(|before| &before.tunnels), tunnels);
    add(parts, "transports", before.map(|before| &before.transports), transports);
    add(parts, "endpoints", before.map(|before| &before.endpoints), endpoints);
    add(parts, "leases", before.map(|before| &before.leases), leases);
    add(parts, "delegations", before.map(|before| &before.delegations), delegations);
    add(parts, "doh_servers", before.map(|before| &*before.doh_servers), &**doh_servers);
    if before.is_none_or(|before| before.proxies != *proxies) {
        let list: ProxyList = proxies
            .iter()
            .map(|(id, legs)| (id.clone(), legs.iter().map(|(leg, fact)| (*leg, fact.clone())).collect()))
            .collect();
        parts.push(Part { key: format!("{FACT}proxies"), value: Some(json(&list)) });
    }
    add_neighbours(before.map(|before| &before.neighbours), neighbours, parts);
}

fn add<T: Serialize + PartialEq>(parts: &mut Vec<Part>, name: &str, before: Option<&T>, after: &T) {
    if before != Some(after) {
        parts.push(Part { key: format!("{FACT}{name}"), value: Some(json(after)) });
    }
}

type Neighbours = BTreeMap<[u8; 6], BTreeSet<IpAddr>>;

fn add_neighbours(before: Option<&Neighbours>, after: &Neighbours, parts: &mut Vec<Part>) {
    let key = |mac: &[u8; 6]| format!("{NEIGHBOUR}{}", MacAddr(*mac));
    for (mac, addresses) in after {
        if before.is_none_or(|before| before.get(mac) != Some(addresses)) {
            parts.push(Part { key: key(mac), value: Some(json(addresses)) });
        }
    }
    let gone = before.into_iter().flatten().filter(|(mac, _)| !after.contains_key(*mac));
    parts.extend(gone.map(|(mac, _)| Part { key: key(mac), value: None }));
}

/// Puts facts together. A part that is missing has its default.
pub(super) fn restore(parts: &Parts) -> Result<Facts, RestoreError> {
    fn field<T: DeserializeOwned + Default>(parts: &Parts, name: &str) -> Result<T, RestoreError> {
        read(parts, &format!("{FACT}{name}"))
    }

    let proxies: ProxyList = field(parts, "proxies")?;
    let mut neighbours = Neighbours::new();
    for (key, _) in parts.range(NEIGHBOUR.to_owned()..) {
        let Some(mac) = key.strip_prefix(NEIGHBOUR) else { break };
        let mac: MacAddr = mac.parse().map_err(|_| RestoreError::Unknown(key.clone()))?;
        neighbours.insert(mac.octets(), read(parts, key)?);
    }
    Ok(Facts {
        links: field(parts, "links")?,
        addresses: field(parts, "addresses")?,
        default_routes: field(parts, "default_routes")?,
        prefixes: field(parts, "prefixes")?,
        route_mtus: field(parts, "route_mtus")?,
        booted_at: field(parts, "booted_at")?,
        neighbours,
        uplinks: field(parts, "uplinks")?,
        tunnels: field(parts, "tunnels")?,
        proxies: proxies.into_iter().map(|(id, legs)| (id, legs.into_iter().collect())).collect(),
        transports: field(parts, "transports")?,
        endpoints: field(parts, "endpoints")?,
        leases: field(parts, "leases")?,
        delegations: field(parts, "delegations")?,
        doh_servers: Arc::new(field(parts, "doh_servers")?),
    })
}
