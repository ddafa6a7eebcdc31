//! Zones from what is stored, and those that every resolver has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_model::State;
use gateway_model::domain::DomainName;
use gateway_model::kinds::dns_zone::ZoneType;
use gateway_model::kinds::{DnsRecord, DnsZone};
use gateway_model::record;
use gateway_model::resource::ref_key;
use gateway_model::{Resource, Stored};

use super::hosts::{from_text, label, pointer};
use super::rdata::{Times, encode, soa};
use super::{Data, Host, Node, Options, Own, Zone, Zones, special};
use crate::dns::decision::Record;
use crate::dns::name::{Name, NameRef};
use crate::dns::name_map::NameMap;
use crate::dns::rtype;
use crate::dns::table::Key;

/// Seconds that answers of the zones that every resolver has are remembered (RFC 6303, section 3).
const SPECIAL_TTL: u32 = 10_800;

pub(super) fn zones(state: &State, options: &Options) -> Zones {
    let mut zones = NameMap::new(options.key);
    for stored in DnsZone::table(state).iter().filter(|zone| zone.enabled && !zone.name.is_root()) {
        let name = Name::from(&stored.name);
        let zone = match stored.r#type {
            ZoneType::Primary => Zone::Own(Box::new(primary(stored, state, options))),
            ZoneType::Forward | ZoneType::Stub | ZoneType::Secondary => Zone::Elsewhere,
        };
        zones.entry(name.as_ref(), || zone);
    }
    // Whoever names servers for a domain wants them asked.
    for forwarder in state.dns_forwarders.iter().filter(|forwarder| forwarder.enabled) {
        if !forwarder.domain.is_root() {
            zones.entry(Name::from(&forwarder.domain).as_ref(), || Zone::Elsewhere);
        }
    }
    let domain = Name::from(&options.domain);
    if !domain.as_ref().is_root() && enclosing(&zones, domain.as_ref()).is_none() {
        zones.entry(domain.as_ref(), || plain(domain.as_ref(), options.host_ttl, options.key));
    }
    for name in special::NAMES.iter().map(|name| (*name).to_owned()).chain(special::reverse()) {
        let Some(name) = from_text(&name) else { continue };
        let is_reverse = name.as_ref().is_within(NameRef::new(b"\x04arpa\0").expect("a name"));
        let ttl = if is_reverse { options.host_ttl } else { SPECIAL_TTL };
        if enclosing(&zones, name.as_ref()).is_none() {
            zones.entry(name.as_ref(), || plain(name.as_ref(), ttl, options.key));
        }
    }
    let mut machines = NameMap::new(options.key);
    let localhost = Host {
        name: "localhost".to_owned(),
        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
    };
    put(&mut machines, &localhost, &DomainName::root(), SPECIAL_TTL);
    options.hosts.iter().for_each(|host| put(&mut machines, host, &options.domain, options.host_ttl));
    Zones { zones, machines }
}

/// The zone at or above a name.
fn enclosing<'a>(zones: &'a NameMap<Zone>, name: NameRef<'_>) -> Option<&'a Zone> {
    name.suffixes().find_map(|apex| zones.get(apex))
}

/// A stored zone with its records.
fn primary(stored: &DnsZone, state: &State, options: &Options) -> Own {
    let apex = Name::from(&stored.name);
    let mut nodes = NameMap::new(options.key);
    nodes.entry(apex.as_ref(), Node::default);
    let mut delegates = false;
    let key = ref_key(DnsZone::NOUN, stored.name.as_str());
    for row in state.dns_records.with_key(&key).filter(|record| record.enabled) {
        let Some((name, data)) = of_record(row) else { continue };
        let rtype = rtype::of_record(row.r#type);
        delegates |= rtype == rtype::NS && name != apex;
        // Names between this and the zone exist, if only by it.
        for between in name.as_ref().suffixes().skip(1).take_while(|between| *between != apex.as_ref()) {
            nodes.entry(between, Node::default);
        }
        nodes.entry(name.as_ref(), Node::default).add(rtype, data);
    }
    let top = nodes.entry(apex.as_ref(), Node::default);
    let server = top.set(rtype::NS).and_then(|set| set.records.first()?.target.clone());
    let mname = stored.soa.mname.as_ref().map(Name::from).or(server).unwrap_or_else(|| apex.clone());
    let rname = stored.soa.rname.as_deref().and_then(mailbox);
    let rname = rname.or_else(|| below("hostmaster", apex.as_ref())).unwrap_or_else(|| apex.clone());
    // The serial that is shown of the zone.
    let revision = stored.meta.revision.max(state.dns_records.revision()).0;
    let times = Times {
        serial: (revision & u64::from(u32::MAX)) as u32,
        refresh: stored.soa.refresh,
        retry: stored.soa.retry,
        expire: stored.soa.expire,
        minimum: stored.soa.minimum,
    };
    finish(nodes, apex, stored.ttl, mname, rname, times, delegates)
}

/// A zone without records of its own (RFC 6303, section 3).
fn plain(apex: NameRef<'_>, ttl: u32, key: Key) -> Zone {
    let nobody = from_text("nobody.invalid").expect("a name");
    let times = Times { serial: 1, refresh: 3600, retry: 1200, expire: 604_800, minimum: ttl };
    let own = finish(NameMap::new(key), apex.to_owned(), ttl, apex.to_owned(), nobody, times, false);
    Zone::Own(Box::new(own))
}

fn finish(
    mut nodes: NameMap<Node>,
    apex: Name,
    ttl: u32,
    mname: Name,
    rname: Name,
    times: Times,
    delegates: bool,
) -> Own {
    let wire = soa(mname.as_ref(), rname.as_ref(), times);
    let record = Record { name: apex.clone(), rtype: rtype::SOA, ttl, rdata: wire.clone() };
    let top = nodes.entry(apex.as_ref(), Node::default);
    top.add(rtype::SOA, Data { ttl, wire, target: None });
    if top.set(rtype::NS).is_none() {
        top.add(rtype::NS, Data { ttl, wire: mname.as_ref().wire().into(), target: Some(mname) });
    }
    Own { nodes, soa: record, negative_ttl: times.minimum, delegates }
}

fn of_record(row: &DnsRecord) -> Option<(Name, Data)> {
    let name = from_text(&row.full_name())?;
    let parsed = record::parse(row.r#type, &row.value).ok()?;
    let rdata = encode(row.r#type, row.priority.or(parsed.priority), &parsed.data)?;
    Some((name, Data { ttl: row.ttl, wire: rdata.wire, target: rdata.target }))
}

/// `a.b@example.com` as a name: what stands before the at sign is one label (RFC 1035, section 8).
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

/// Addresses of one link mean nothing without it.
fn is_lasting(address: &IpAddr) -> bool {
    let local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !local && !address.is_unspecified() && !address.is_multicast()
}

/// The name of a machine and those of its addresses.
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
        // Whoever had the address first keeps it.
        if reverse.set(rtype::PTR).is_none() {
            let wire = name.as_ref().wire().into();
            reverse.add(rtype::PTR, Data { ttl, wire, target: Some(name.clone()) });
        }
    }
}
