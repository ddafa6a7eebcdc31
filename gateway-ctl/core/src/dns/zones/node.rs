//! Name of a zone with its records.

use super::rdata::{Times, soa};
use crate::dns::decision::Record;
use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;

/// Name with its records. An empty non-terminal has none (RFC 4592, section 2.2.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub sets: Vec<Set>,
}

/// RRset: records of one type, with their signatures.
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
    /// Name that the data refers to.
    pub target: Option<Name>,
}

impl Node {
    pub(super) fn set(&self, rtype: u16) -> Option<&Set> {
        self.sets.iter().find(|set| set.rtype == rtype)
    }

    /// Returns whether a host of the same name answers instead.
    pub(super) fn yields(&self, machine: &Node, qtype: u16) -> bool {
        let own = [rtype::A, rtype::AAAA, rtype::CNAME, qtype];
        machine.set(qtype).is_some() && own.into_iter().all(|rtype| self.set(rtype).is_none())
    }

    /// Returns the SOA record of a negative answer for a name without a zone, so that resolvers may cache it (RFC 2308).
    pub(super) fn own_soa(&self, name: NameRef<'_>) -> Record {
        let ttl =
            self.sets.iter().flat_map(|set| &set.records).map(|data| data.ttl).min().unwrap_or_default();
        negative_soa(name, ttl)
    }

    pub(super) fn add(&mut self, rtype: u16, data: Data) {
        match self.sets.iter_mut().find(|set| set.rtype == rtype) {
            // A set has one TTL, the shortest (RFC 2181, section 5.2).
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

    /// Adds the signatures of all sets to `out`.
    pub(super) fn signatures(&self, owner: NameRef<'_>, out: &mut Vec<Record>) {
        for data in self.sets.iter().flat_map(|set| &set.signatures) {
            out.push(data.record(owner, rtype::RRSIG));
        }
    }
}

/// Returns the SOA record of a negative answer for a name without a zone.
pub(super) fn negative_soa(name: NameRef<'_>, ttl: u32) -> Record {
    let mailbox = NameRef::new(b"\x06nobody\x07invalid\0").unwrap_or(NameRef::ROOT);
    let times = Times { serial: 1, refresh: 3600, retry: 1200, expire: 604_800, minimum: ttl };
    Record { name: name.to_owned(), rtype: rtype::SOA, ttl, rdata: soa(name, mailbox, times) }
}

impl Data {
    pub(super) fn record(&self, owner: NameRef<'_>, rtype: u16) -> Record {
        Record { name: owner.to_owned(), rtype, ttl: self.ttl, rdata: self.wire.clone() }
    }
}

impl Set {
    /// Adds the records to `out`; with their signatures, if `proved`.
    pub(super) fn write(&self, owner: NameRef<'_>, proved: bool, out: &mut Vec<Record>) {
        out.extend(self.records.iter().map(|data| data.record(owner, self.rtype)));
        if proved {
            out.extend(self.signatures.iter().map(|data| data.record(owner, rtype::RRSIG)));
        }
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = &Name> {
        self.records.iter().filter_map(|data| data.target.as_ref())
    }
}
