//! Zones from the stored state, and the zones that every resolver serves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use gateway_model::State;
use gateway_model::domain::DomainName;
use gateway_model::kinds::dns_zone::ZoneType;
use gateway_model::kinds::{DnsRecord, DnsZone, zone_key};
use gateway_model::record;
use gateway_model::resource::ref_key;
use gateway_model::{Resource, Stored};

use super::hosts::{from_text, label, pointer};
use super::node::{Data, Node};
use super::rdata::{Times, encode, soa};
use super::sign::sign;
use super::zone::ZoneData;
use super::{Host, Options, Zone, Zones, special_use};
use crate::dns::domain_set::Key;
use crate::dns::name::{Name, NameRef};
use crate::dns::name_map::NameMap;
use crate::dns::rtype;

/// TTL of the zones that every resolver serves, in seconds (RFC 6303, section 3).
const SPECIAL_TTL: u32 = 10_800;

impl Zones {
    pub fn new(state: &State, options: &Options) -> Zones {
        let machines = machines(options);
        let mut zones = NameMap::new(options.key);
        let stored = DnsZone::table(state).iter().filter(|zone| zone.enabled && !zone.name.is_root());
        let mut signed = Vec::new();
        for stored in stored {
            let name = Name::from(&stored.name);
            let zone = match stored.r#type {
                ZoneType::Primary if stored.is_signed() => {
                    signed.push(stored);
                    Zone::Missing
                }
                ZoneType::Primary => Zone::Primary(Arc::new(primary(stored, state, options))),
                ZoneType::Secondary => options
                    .copies
                    .get(&stored.meta.id)
                    .map_or(Zone::Missing, |copy| Zone::Primary(copy.own.clone())),
                ZoneType::Forward | ZoneType::Stub => Zone::Elsewhere,
            };
            zones.entry(name.as_ref(), || zone);
        }
        // Queries for a domain with a forwarder go to the servers of the forwarder.
        for forwarder in state.dns_forwarders.iter().filter(|forwarder| forwarder.enabled) {
            if !forwarder.domain.is_root() {
                zones.entry(Name::from(&forwarder.domain).as_ref(), || Zone::Elsewhere);
            }
        }
        // Signed zones contain their delegations, so all other zones must be known first.
        for stored in signed {
            let zone = whole(stored, state, options, &zones, &machines);
            *zones.entry(Name::from(&stored.name).as_ref(), || Zone::Missing) = Zone::Primary(Arc::new(zone));
        }
        let domain = Name::from(&options.domain);
        if !domain.as_ref().is_root() && enclosing(&zones, domain.as_ref()).is_none() {
            zones.entry(domain.as_ref(), || plain(domain.as_ref(), options.host_ttl, options.key));
        }
        if let Some(mesh) = options.mesh.as_ref().map(|mesh| Name::from(&mesh.domain))
            && enclosing(&zones, mesh.as_ref()).is_none()
        {
            zones.entry(mesh.as_ref(), || plain(mesh.as_ref(), options.host_ttl, options.key));
        }
        for name in special_use::NAMES.iter().map(|name| (*name).to_owned()).chain(special_use::reverse()) {
            let Some(name) = from_text(&name) else { continue };
            let is_reverse = name.as_ref().is_within(NameRef::new(b"\x04arpa\0").expect("a name"));
            let ttl = if is_reverse { options.host_ttl } else { SPECIAL_TTL };
            if enclosing(&zones, name.as_ref()).is_none() {
                zones.entry(name.as_ref(), || plain(name.as_ref(), ttl, options.key));
            }
        }
        Zones { zones, machines }
    }
}

fn machines(options: &Options) -> NameMap<Node> {
    let mut machines = NameMap::new(options.key);
    let localhost = Host {
        name: "localhost".to_owned(),
        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
    };
    put(&mut machines, &localhost, &DomainName::root(), SPECIAL_TTL);
    options.hosts.iter().for_each(|host| put(&mut machines, host, &options.domain, options.host_ttl));
    if let Some(mesh) = &options.mesh {
        mesh.nodes.iter().for_each(|node| put(&mut machines, node, &mesh.domain, options.host_ttl));
    }
    machines
}

/// Returns the zone at or above a name.
fn enclosing<'a>(zones: &'a NameMap<Zone>, name: NameRef<'_>) -> Option<&'a Zone> {
    name.suffixes().find_map(|apex| zones.get(apex))
}

/// Returns a signed zone, including the hosts with names in it and the delegations to other zones.
fn whole(
    stored: &DnsZone,
    state: &State,
    options: &Options,
    zones: &NameMap<Zone>,
    machines: &NameMap<Node>,
) -> ZoneData {
    let mut own = primary(stored, state, options);
    let signer = options.signer.as_deref();
    let Some((signer, dnskey)) = signer.and_then(|signer| Some((signer, signer.dnskey(stored.meta.id)?)))
    else {
        return own;
    };
    let apex = own.apex.clone();
    let is_ours = |name: NameRef<'_>| {
        name.suffixes().find(|suffix| zones.get(*suffix).is_some()) == Some(apex.as_ref())
    };
    for (name, machine) in machines.iter() {
        if !is_ours(name) || own.is_hidden(name) {
            continue;
        }
        exists(&mut own.nodes, name, apex.as_ref());
        let node = own.nodes.entry(name, Node::default);
        let before = node.clone();
        for set in machine.sets.iter().filter(|set| before.yields(machine, set.rtype)) {
            set.records.iter().for_each(|data| node.add(set.rtype, data.clone()));
        }
    }
    for (name, _) in zones.iter() {
        if name == apex.as_ref() || !name.parent().is_some_and(is_ours) || own.is_hidden(name) {
            continue;
        }
        own.turns = true;
        exists(&mut own.nodes, name, apex.as_ref());
        let node = own.nodes.entry(name, Node::default);
        if node.set(rtype::NS).is_some() {
            continue;
        }
        // This NS record only marks the delegation, and is never returned: the other zone answers for the names below.
        let wire = name.wire().into();
        node.add(rtype::NS, Data { ttl: stored.ttl, wire, target: Some(name.to_owned()) });
        let below = state.dns_zones.iter().find(|zone| Name::from(&zone.name).as_ref() == name);
        let key = below.filter(|zone| zone.enabled).and_then(|zone| signer.dnskey(zone.meta.id));
        if let Some(key) = key {
            let wire = zone_key::ds_of(name.wire(), &key).into();
            node.add(rtype::DS, Data { ttl: stored.ttl, wire, target: None });
        }
    }
    sign(&mut own, stored.meta.id, dnskey, stored.ttl, signer);
    own
}

/// Adds the empty non-terminals between a name and its zone.
fn exists(nodes: &mut NameMap<Node>, name: NameRef<'_>, apex: NameRef<'_>) {
    for between in name.suffixes().skip(1).take_while(|between| *between != apex) {
        nodes.entry(between, Node::default);
    }
}

/// Returns a stored zone with its records.
fn primary(stored: &DnsZone, state: &State, options: &Options) -> ZoneData {
    let apex = Name::from(&stored.name);
    let mut nodes = NameMap::new(options.key);
    nodes.entry(apex.as_ref(), Node::default);
    let mut turns = false;
    let key = ref_key(DnsZone::NOUN, stored.name.as_str());
    for row in state.dns_records.with_key(&key).filter(|record| record.enabled) {
        let Some((name, data)) = of_record(row) else { continue };
        let rtype = rtype::of_record(row.r#type);
        turns |= rtype == rtype::NS && name != apex;
        exists(&mut nodes, name.as_ref(), apex.as_ref());
        nodes.entry(name.as_ref(), Node::default).add(rtype, data);
    }
    let top = nodes.entry(apex.as_ref(), Node::default);
    let server = top.set(rtype::NS).and_then(|set| set.records.first()?.target.clone());
    let mname = stored.soa.mname.as_ref().map(Name::from).or(server).unwrap_or_else(|| apex.clone());
    let rname = stored.soa.rname.as_deref().and_then(mailbox);
    let rname = rname.or_else(|| below("hostmaster", apex.as_ref())).unwrap_or_else(|| apex.clone());
    // The zone's serial in the API.
    let revision = stored.meta.revision.max(state.dns_records.revision()).0;
    let times = Times {
        serial: (revision & u64::from(u32::MAX)) as u32,
        refresh: stored.soa.refresh,
        retry: stored.soa.retry,
        expire: stored.soa.expire,
        minimum: stored.soa.minimum,
    };
    finish(nodes, apex, stored.ttl, mname, rname, times, turns)
}

/// Returns a zone without records of its own (RFC 6303, section 3).
fn plain(apex: NameRef<'_>, ttl: u32, key: Key) -> Zone {
    let mailbox = from_text("nobody.invalid").expect("a name");
    let times = Times { serial: 1, refresh: 3600, retry: 1200, expire: 604_800, minimum: ttl };
    let own = finish(NameMap::new(key), apex.to_owned(), ttl, apex.to_owned(), mailbox, times, false);
    Zone::Primary(Arc::new(own))
}

fn finish(
    mut nodes: NameMap<Node>,
    apex: Name,
    ttl: u32,
    mname: Name,
    rname: Name,
    times: Times,
    turns: bool,
) -> ZoneData {
    let wire = soa(mname.as_ref(), rname.as_ref(), times);
    let top = nodes.entry(apex.as_ref(), Node::default);
    top.add(rtype::SOA, Data { ttl, wire, target: None });
    if top.set(rtype::NS).is_none() {
        top.add(rtype::NS, Data { ttl, wire: mname.as_ref().wire().into(), target: Some(mname) });
    }
    ZoneData { apex, nodes, negative_ttl: times.minimum, turns, denial: None }
}

fn of_record(row: &DnsRecord) -> Option<(Name, Data)> {
    let name = from_text(&row.full_name())?;
    let parsed = record::parse(row.r#type, &row.value).ok()?;
    let rdata = encode(row.r#type, row.priority.or(parsed.priority), &parsed.data)?;
    Some((name, Data { ttl: row.ttl, wire: rdata.wire, target: rdata.target }))
}

/// Converts `a.b@example.com` to a name: the text before the at sign is one label (RFC 1035, section 8).
fn mailbox(text: &str) -> Option<Name> {
    match text.split_once('@') {
        Some((local, domain)) => {
            below(&local.to_ascii_lowercase(), Name::from(&DomainName::parse(domain).ok()?).as_ref())
        }
        None => Some(Name::from(&DomainName::parse(text).ok()?)),
    }
}

fn below(label: &str, name: NameRef<'_>) -> Option<Name> {
    let length = u8::try_from(label.len()).ok()?;
    let wire = [&[length], label.as_bytes(), name.wire()].concat();
    NameRef::new(&wire).map(NameRef::to_owned)
}

/// Returns whether the address is unicast and valid beyond its link. Link-local addresses mean nothing without it.
fn is_lasting(address: &IpAddr) -> bool {
    let local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !local && !address.is_unspecified() && !address.is_multicast()
}

/// Adds the name of a host and the PTR records of its addresses.
fn put(machines: &mut NameMap<Node>, host: &Host, domain: &DomainName, ttl: u32) {
    let Some(name) = label(&host.name).and_then(|label| below(&label, Name::from(domain).as_ref())) else {
        return;
    };
    if machines.get(name.as_ref()).is_some_and(|node| !node.sets.is_empty()) {
        return;
    }
    for address in host.addresses.iter().filter(|address| is_lasting(address)) {
        let (rtype, wire): (u16, Box<[u8]>) = match address {
            IpAddr::V4(address) => (rtype::A, address.octets().into()),
            IpAddr::V6(address) => (rtype::AAAA, address.octets().into()),
        };
        let forward = machines.entry(name.as_ref(), Node::default);
        forward.add(rtype, Data { ttl, wire, target: None });
        let reverse = pointer(*address);
        for between in reverse.as_ref().suffixes().skip(1) {
            machines.entry(between, Node::default);
        }
        let reverse = machines.entry(reverse.as_ref(), Node::default);
        // The first host with an address keeps it.
        if reverse.set(rtype::PTR).is_none() {
            let wire = name.as_ref().wire().into();
            reverse.add(rtype::PTR, Data { ttl, wire, target: Some(name.clone()) });
        }
    }
}
