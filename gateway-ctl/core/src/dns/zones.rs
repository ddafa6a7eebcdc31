//! Answers from what is stored here: zones with their records, names of machines, names that never leave.
//!
//! The algorithm is that of RFC 1034, section 4.3.2, with wildcards as of RFC 4592, negative answers as of RFC 2308,
//! and ANY as of RFC 8482. Zones of other types than primary are none of this: their names are for those who forward.

use gateway_model::State;
use gateway_model::domain::DomainName;

use super::decision::{Local, Question, Record};
use super::name::{Name, NameRef};
use super::name_map::NameMap;
use super::rtype;
use super::table::Key;

mod build;
mod hosts;
mod rdata;
mod special;
#[cfg(test)]
mod tests;

pub use hosts::{Host, label, pointer};

const NXDOMAIN: u8 = 3;
const SERVFAIL: u8 = 2;

/// Longest chain of aliases.
const ALIASES: usize = 16;

/// What zones are told beside what is stored.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of the maps by name.
    pub key: Key,
    /// In which machines have their names: that of the DHCP server.
    pub domain: DomainName,
    /// Of two machines with the same name the first has it: a name in use cannot be taken over.
    pub hosts: Vec<Host>,
    /// Seconds that names of machines, and that there is none, are remembered.
    pub host_ttl: u32,
}

/// Everything that is answered here.
#[derive(Clone, Debug)]
pub struct Zones {
    zones: NameMap<Zone>,
    /// Machines, forward and reverse; what is stored comes before them.
    machines: NameMap<Node>,
}

#[derive(Clone, Debug)]
enum Zone {
    Own(Box<Own>),
    /// Others are asked.
    Elsewhere,
}

#[derive(Clone, Debug)]
struct Own {
    nodes: NameMap<Node>,
    soa: Record,
    /// Of negative answers (RFC 2308, section 5).
    negative_ttl: u32,
    /// Whether there are delegations at all.
    delegates: bool,
}

/// A name with its records; without any if it only has names below it (RFC 4592, section 2.2.2).
#[derive(Clone, Debug, Default)]
struct Node {
    sets: Vec<Set>,
}

/// Records of one type.
#[derive(Clone, Debug)]
struct Set {
    rtype: u16,
    records: Vec<Data>,
}

#[derive(Clone, Debug)]
struct Data {
    ttl: u32,
    wire: Box<[u8]>,
    /// The name that it leads to.
    target: Option<Name>,
}

impl Node {
    fn set(&self, rtype: u16) -> Option<&Set> {
        self.sets.iter().find(|set| set.rtype == rtype)
    }

    /// Whether a machine of the same name answers for it.
    fn yields(&self, machine: &Node, qtype: u16) -> bool {
        let own = [rtype::A, rtype::AAAA, rtype::CNAME, qtype];
        machine.set(qtype).is_some() && own.into_iter().all(|rtype| self.set(rtype).is_none())
    }

    fn add(&mut self, rtype: u16, data: Data) {
        match self.sets.iter_mut().find(|set| set.rtype == rtype) {
            // One set has one TTL, the shortest (RFC 2181, section 5.2).
            Some(set) => {
                if set.records.iter().any(|have| have.wire == data.wire) {
                    return;
                }
                let ttl = set.records.iter().map(|have| have.ttl).fold(data.ttl, u32::min);
                set.records.push(data);
                set.records.iter_mut().for_each(|have| have.ttl = ttl);
            }
            None => self.sets.push(Set { rtype, records: vec![data] }),
        }
    }
}

impl Set {
    fn records<'a>(&'a self, owner: NameRef<'a>) -> impl Iterator<Item = Record> + 'a {
        self.records.iter().map(move |data| Record {
            name: owner.to_owned(),
            rtype: self.rtype,
            ttl: data.ttl,
            rdata: data.wire.clone(),
        })
    }
}

/// What one name of the chain comes to.
enum Step {
    Done,
    /// An alias leads on.
    Alias(Name),
}

impl Zones {
    pub fn new(state: &State, options: &Options) -> Zones {
        build::zones(state, options)
    }

    /// The answer, if it is to be given here.
    pub fn answer(&self, asked: Question<'_>) -> Option<Local> {
        let mut local = Local::default();
        let mut alias: Option<Name> = None;
        for _ in 0..ALIASES {
            let name = alias.as_ref().map_or(asked.name, Name::as_ref);
            match self.step(name, asked.qtype, &mut local) {
                Some(Step::Done) => {
                    self.complete(asked.qtype, &mut local);
                    return Some(local);
                }
                Some(Step::Alias(next)) => alias = Some(next),
                None => {
                    local.goes_on = Some(alias?);
                    return Some(local);
                }
            }
        }
        // Aliases in a circle (RFC 1034, section 5.2.2).
        Some(Local { rcode: SERVFAIL, ..Local::default() })
    }

    /// None if the name is not answered here.
    fn step(&self, name: NameRef<'_>, qtype: u16, local: &mut Local) -> Option<Step> {
        let machine = self.machines.get(name);
        let zone = name.suffixes().find_map(|apex| Some((apex, self.zones.get(apex)?)));
        let Some((apex, Zone::Own(zone))) = zone else {
            // A machine in a domain of others: what it has is answered, the rest is theirs.
            let node = machine.filter(|node| node.set(qtype).is_some())?;
            local.authoritative |= local.answers.is_empty();
            return Some(take(node, name, qtype, None, local));
        };
        let first = local.answers.is_empty();
        if let Some((cut, set)) = zone.delegation(name, apex, qtype) {
            local.authorities.extend(set.records(cut));
            for target in set.records.iter().filter_map(|data| data.target.as_ref()) {
                self.add_addresses(target.as_ref(), &mut local.additionals);
            }
            return Some(Step::Done);
        }
        local.authoritative |= first;
        let stored = zone.nodes.get(name);
        // What is stored comes first; addresses of the two are not mixed.
        let node = match (stored, machine) {
            (Some(stored), Some(machine)) if stored.yields(machine, qtype) => Some(machine),
            _ => stored.or(machine),
        };
        if let Some(node) = node {
            return Some(take(node, name, qtype, Some(zone), local));
        }
        match zone.wildcard(name).or_else(|| self.localhost(name)) {
            Some(node) => Some(take(node, name, qtype, Some(zone), local)),
            None => {
                local.rcode = NXDOMAIN;
                local.authorities.push(zone.negative());
                Some(Step::Done)
            }
        }
    }

    /// All names below `localhost` are as it is (RFC 6761, section 6.3), unless somebody stored the zone.
    fn localhost(&self, name: NameRef<'_>) -> Option<&Node> {
        const LOCALHOST: &[u8] = b"\x09localhost\0";
        let localhost = NameRef::new(LOCALHOST)?;
        name.is_within(localhost).then(|| self.machines.get(localhost)).flatten()
    }

    /// Addresses of the names that answers lead to (RFC 1034, section 4.3.2, step 6).
    fn complete(&self, qtype: u16, local: &mut Local) {
        if !matches!(qtype, rtype::MX | rtype::SRV | rtype::NS | rtype::HTTPS | rtype::SVCB) {
            return;
        }
        let Some(owner) = local.answers.last().map(|record| record.name.clone()) else { return };
        let targets: Vec<Name> = self
            .node(owner.as_ref())
            .and_then(|node| node.set(qtype))
            .map(|set| set.records.iter().filter_map(|data| data.target.clone()).collect())
            .unwrap_or_default();
        for target in targets {
            self.add_addresses(target.as_ref(), &mut local.additionals);
        }
    }

    fn add_addresses(&self, name: NameRef<'_>, additionals: &mut Vec<Record>) {
        let Some(node) = self.node(name) else { return };
        for set in [rtype::A, rtype::AAAA].into_iter().filter_map(|rtype| node.set(rtype)) {
            for record in set.records(name) {
                if !additionals.contains(&record) {
                    additionals.push(record);
                }
            }
        }
    }

    /// The node that answers for a name, by wildcard too.
    fn node(&self, name: NameRef<'_>) -> Option<&Node> {
        let zone = name.suffixes().find_map(|apex| self.zones.get(apex));
        let stored = match zone {
            Some(Zone::Own(zone)) => zone.nodes.get(name),
            _ => None,
        };
        let wildcard = || match zone {
            Some(Zone::Own(zone)) => zone.wildcard(name),
            _ => None,
        };
        stored.or_else(|| self.machines.get(name)).or_else(wildcard)
    }
}

impl Own {
    /// The cut nearest to the top of the zone at or above the name. The DS records at a cut are of this side
    /// (RFC 4035, section 3.1.4.1).
    fn delegation<'a>(
        &'a self,
        name: NameRef<'a>,
        apex: NameRef<'_>,
        qtype: u16,
    ) -> Option<(NameRef<'a>, &'a Set)> {
        if !self.delegates {
            return None;
        }
        let below = name.suffixes().take_while(|suffix| *suffix != apex);
        let cuts = below.filter_map(|cut| Some((cut, self.nodes.get(cut)?.set(rtype::NS)?)));
        cuts.last().filter(|(cut, _)| *cut != name || qtype != rtype::DS)
    }

    /// The wildcard below the closest name that exists (RFC 4592, section 3.3.1).
    fn wildcard(&self, name: NameRef<'_>) -> Option<&Node> {
        let closest = name.suffixes().skip(1).find(|suffix| self.nodes.get(*suffix).is_some())?;
        let mut room = [0; super::name::MAX];
        let wire = closest.wire();
        room[..2].copy_from_slice(b"\x01*");
        room.get_mut(2..2 + wire.len())?.copy_from_slice(wire);
        self.nodes.get(NameRef::new(&room[..2 + wire.len()])?)
    }

    /// RFC 2308, section 3: the TTL is the lesser of that of the record and its last field.
    fn negative(&self) -> Record {
        Record { ttl: self.soa.ttl.min(self.negative_ttl), ..self.soa.clone() }
    }
}

/// Puts what the node has of the type into the answer.
fn take(node: &Node, owner: NameRef<'_>, qtype: u16, zone: Option<&Own>, local: &mut Local) -> Step {
    // Of ANY one set is enough (RFC 8482, section 4.1).
    let set = if qtype == rtype::ANY { node.sets.first() } else { node.set(qtype) };
    if let Some(set) = set {
        local.answers.extend(set.records(owner));
        return Step::Done;
    }
    if let Some(alias) = node.set(rtype::CNAME) {
        local.answers.extend(alias.records(owner));
        if let Some(target) = alias.records.first().and_then(|data| data.target.clone()) {
            return Step::Alias(target);
        }
    }
    local.authorities.extend(zone.map(Own::negative));
    Step::Done
}
