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

/// Hands out the facts that differ from earlier ones, or all.
pub(super) fn add_since(before: Option<&Facts>, after: &Facts, take: &mut dyn FnMut(Part)) {
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
        mesh,
    } = after;
    add(take, "links", before.map(|before| &before.links), links);
    add(take, "addresses", before.map(|before| &before.addresses), addresses);
    add(take, "default_routes", before.map(|before| &before.default_routes), default_routes);
    add(take, "prefixes", before.map(|before| &before.prefixes), prefixes);
    add(take, "route_mtus", before.map(|before| &before.route_mtus), route_mtus);
    add(take, "booted_at", before.map(|before| &before.booted_at), booted_at);
    add(take, "uplinks", before.map(|before| &before.uplinks), uplinks);
    add(take, "tunnels", before.map(|before| &before.tunnels), tunnels);
    add(take, "transports", before.map(|before| &before.transports), transports);
    add(take, "endpoints", before.map(|before| &before.endpoints), endpoints);
    add(take, "leases", before.map(|before| &before.leases), leases);
    add(take, "delegations", before.map(|before| &before.delegations), delegations);
    add(take, "doh_servers", before.map(|before| &*before.doh_servers), &**doh_servers);
    add(take, "mesh", before.map(|before| &before.mesh), mesh);
    if before.is_none_or(|before| before.proxies != *proxies) {
        let list: ProxyList = proxies
            .iter()
            .map(|(id, legs)| (id.clone(), legs.iter().map(|(leg, fact)| (*leg, fact.clone())).collect()))
            .collect();
        take(Part { key: format!("{FACT}proxies"), value: Some(json(&list)) });
    }
    add_neighbours(before.map(|before| &before.neighbours), neighbours, take);
}

fn add<T: Serialize + PartialEq>(take: &mut dyn FnMut(Part), name: &str, before: Option<&T>, after: &T) {
    if before != Some(after) {
        take(Part { key: format!("{FACT}{name}"), value: Some(json(after)) });
    }
}

type Neighbours = BTreeMap<[u8; 6], BTreeSet<IpAddr>>;

fn add_neighbours(before: Option<&Neighbours>, after: &Neighbours, take: &mut dyn FnMut(Part)) {
    let key = |mac: &[u8; 6]| format!("{NEIGHBOUR}{}", MacAddr(*mac));
    for (mac, addresses) in after {
        if before.is_none_or(|before| before.get(mac) != Some(addresses)) {
            take(Part { key: key(mac), value: Some(json(addresses)) });
        }
    }
    let gone = before.into_iter().flatten().filter(|(mac, _)| !after.contains_key(*mac));
    gone.map(|(mac, _)| Part { key: key(mac), value: None }).for_each(take);
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
        mesh: field(parts, "mesh")?,
    })
}
