//! One zone: its names with their records, where it ends, and what proves that something is not there.

use super::denial::{Denial, Denied};
use crate::dns::decision::{Local, Record};
use crate::dns::name::{Name, NameRef};
use crate::dns::name_map::NameMap;
use crate::dns::rtype;

#[derive(Clone, Debug)]
pub(super) struct Own {
    pub apex: Name,
    pub nodes: NameMap<Node>,
    /// Of negative answers (RFC 2308, section 5).
    pub negative_ttl: u32,
    /// Whether there are delegations or aliases of whole domains at all.
    pub turns: bool,
    /// Of a signed zone, which is complete: machines have their names in it only by being part of it.
    pub denial: Option<Denial>,
}

/// A name with its records; without any if it only has names below it (RFC 4592, section 2.2.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub sets: Vec<Set>,
}

/// Records of one type, and what proves them.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub rtype: u16,
    pub records: Vec<Data>,
    pub signatures: Vec<Data>,
}

#[derive(Clone, Debug)]
pub(super) struct Data {
    pub ttl: u32,
    pub wire: Box<[u8]>,
    /// The name that it leads to.
    pub target: Option<Name>,
}

/// Where a name leaves what the zone says itself.
pub(super) enum Turn<'a> {
    /// Others have what is below.
    Cut(NameRef<'a>, &'a Node, &'a Set),
    /// All below has another name (RFC 6672).
    Alias(NameRef<'a>, &'a Set),
}

impl Node {
    pub fn set(&self, rtype: u16) -> Option<&Set> {
        self.sets.iter().find(|set| set.rtype == rtype)
    }

    /// Whether a machine of the same name answers for it.
    pub fn yields(&self, machine: &Node, qtype: u16) -> bool {
        let own = [rtype::A, rtype::AAAA, rtype::CNAME, qtype];
        machine.set(qtype).is_some() && own.into_iter().all(|rtype| self.set(rtype).is_none())
    }

    pub fn add(&mut self, rtype: u16, data: Data) {
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
            None => self.sets.push(Set { rtype, records: vec![data], signatures: Vec::new() }),
        }
    }

    /// The signatures of all sets.
    pub fn signatures(&self, owner: NameRef<'_>, out: &mut Vec<Record>) {
        for data in self.sets.iter().flat_map(|set| &set.signatures) {
            out.push(data.record(owner, rtype::RRSIG));
        }
    }
}

impl Data {
    pub fn record(&self, owner: NameRef<'_>, rtype: u16) -> Record {
        Record { name: owner.to_owned(), rtype, ttl: self.ttl, rdata: self.wire.clone() }
    }
}

impl Set {
    /// The records, with what proves them for those who want it.
    pub fn write(&self, owner: NameRef<'_>, proved: bool, out: &mut Vec<Record>) {
        out.extend(self.records.iter().map(|data| data.record(owner, self.rtype)));
        if proved {
            out.extend(self.signatures.iter().map(|data| data.record(owner, rtype::RRSIG)));
        }
    }

    pub fn targets(&self) -> impl Iterator<Item = &Name> {
        self.records.iter().filter_map(|data| data.target.as_ref())
    }
}

impl Own {
    /// The turn nearest to the top of the zone on the way to the name. The DS records at a cut are of this side (RFC 4035,
    /// section 3.1.4.1).
    pub fn turn<'a>(&'a self, name: NameRef<'a>, qtype: u16) -> Option<Turn<'a>> {
        if !self.turns {
            return None;
        }
        let apex = self.apex.as_ref();
        let at = |here: NameRef<'a>| {
            let node = self.nodes.get(here)?;
            let cut = node.set(rtype::NS).filter(|_| here != apex && (here != name || qtype != rtype::DS));
            let alias = || node.set(rtype::DNAME).filter(|_| here != name);
            match cut {
                Some(set) => Some(Turn::Cut(here, node, set)),
                None => alias().map(|set| Turn::Alias(here, set)),
            }
        };
        let below = name.suffixes().take_while(|suffix| *suffix != apex);
        below.chain(name.suffixes().find(|suffix| *suffix == apex)).filter_map(at).last()
    }

    /// The closest name that exists at or above one (RFC 4592, section 3.3.1).
    pub fn closest<'a>(&self, name: NameRef<'a>) -> Option<NameRef<'a>> {
        name.suffixes().find(|suffix| self.nodes.get(*suffix).is_some())
    }

    /// The wildcard below the closest name that exists, and that name.
    pub fn wildcard<'a>(&self, name: NameRef<'a>) -> Option<(NameRef<'a>, &Node)> {
        let closest = self.closest(name)?;
        Some((closest, self.nodes.get(wildcard_of(closest)?.as_ref())?))
    }

    /// RFC 2308, section 3: the TTL is the lesser of that of the record and its last field.
    pub fn negative(&self, proved: bool, out: &mut Vec<Record>) {
        let Some(soa) = self.nodes.get(self.apex.as_ref()).and_then(|top| top.set(rtype::SOA)) else {
            return;
        };
        let start = out.len();
        soa.write(self.apex.as_ref(), proved, out);
        out[start..].iter_mut().for_each(|record| record.ttl = record.ttl.min(self.negative_ttl));
    }

    /// What proves that something is not there, for those who want it.
    pub fn prove(&self, denied: Denied<'_>, proved: bool, local: &mut Local) {
        if let Some(denial) = self.denial.as_ref().filter(|_| proved) {
            denial.prove(self, denied, &mut local.authorities);
        }
    }

    /// Whether a turn above the name hides it: what others have, or what has another name.
    pub fn is_hidden(&self, name: NameRef<'_>) -> bool {
        let apex = self.apex.as_ref();
        let above = name.suffixes().skip(1).take_while(|suffix| *suffix != apex);
        let mut nodes = above.filter_map(|suffix| self.nodes.get(suffix));
        let top = || self.nodes.get(apex).is_some_and(|top| top.set(rtype::DNAME).is_some());
        self.turns
            && (nodes.any(|node| node.set(rtype::NS).is_some() || node.set(rtype::DNAME).is_some())
                || (name != apex && top()))
    }

    /// Whether the zone ends at the name.
    pub fn is_cut(&self, name: NameRef<'_>, node: &Node) -> bool {
        name != self.apex.as_ref() && node.set(rtype::NS).is_some()
    }
}

/// `*` below a name.
pub(super) fn wildcard_of(closest: NameRef<'_>) -> Option<Name> {
    NameRef::new(&[b"\x01*", closest.wire()].concat()).map(NameRef::to_owned)
}
