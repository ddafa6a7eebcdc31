//! Secondary zone (RFC 5936). All transferred records are kept, also of unknown types (RFC 3597).

use std::sync::Arc;

use super::denial::Denial;
use super::node::{Data, Node};
use super::rdata;
use super::zone::ZoneData;
use crate::dns::decision::Record;
use crate::dns::domain_set::Key;
use crate::dns::name::Name;
use crate::dns::name_map::NameMap;
use crate::dns::rtype;

/// Transferred zone. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Copy {
    pub(super) own: Arc<ZoneData>,
    pub serial: u32,
    pub records: usize,
}

/// Reason why records form no zone: the SOA record is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("zone has no SOA record")]
pub struct MissingSoa;

impl Copy {
    /// Builds a zone from records at names within it, including the SOA record.
    pub fn new(apex: &Name, records: Vec<Record>, key: Key) -> Result<Copy, MissingSoa> {
        let count = records.len();
        let (mut nodes, mut hashed) = (NameMap::new(key), NameMap::new(key));
        nodes.entry(apex.as_ref(), Node::default);
        let mut turns = false;
        let mut signatures = Vec::new();
        for record in records {
            if record.rtype == rtype::RRSIG {
                signatures.push(record);
                continue;
            }
            turns |= record.rtype == rtype::DNAME || (record.rtype == rtype::NS && record.name != *apex);
            let owner = record.name.as_ref();
            let target = rdata::target(record.rtype, &record.rdata);
            let data = Data { ttl: record.ttl, wire: record.rdata, target };
            if record.rtype == rtype::NSEC3 {
                hashed.entry(owner, Node::default).add(record.rtype, data);
                continue;
            }
            for between in owner.suffixes().skip(1).take_while(|between| *between != apex.as_ref()) {
                nodes.entry(between, Node::default);
            }
            nodes.entry(owner, Node::default).add(record.rtype, data);
        }
        for record in signatures {
            let covered = record.rdata.first_chunk().map(|two| u16::from_be_bytes(*two));
            let nodes = if covered == Some(rtype::NSEC3) { &mut hashed } else { &mut nodes };
            let node = nodes.get_mut(record.name.as_ref());
            let sets = node.into_iter().flat_map(|node| &mut node.sets);
            if let Some(set) = sets.into_iter().find(|set| Some(set.rtype) == covered) {
                set.signatures.push(Data { ttl: record.ttl, wire: record.rdata, target: None });
            }
        }
        let soa = nodes.get(apex.as_ref()).and_then(|top| top.set(rtype::SOA)?.records.first());
        let start = soa.and_then(|soa| rdata::numbers(&soa.wire)).ok_or(MissingSoa)?;
        let (serial, negative_ttl) = (start.serial, start.minimum);
        let mut own = ZoneData { apex: apex.clone(), nodes, negative_ttl, turns, denial: None };
        own.denial = Denial::of(own.apex.as_ref(), &own.nodes, &hashed);
        Ok(Copy { own: Arc::new(own), serial, records: count })
    }
}
