//! Zone signing (RFC 4034, RFC 4035, section 2): one key for each zone, NSEC records for denial of existence.
//!
//! The implementation of [`Sign`] chooses the key and the time.
//!
//! NSEC and not NSEC3: clients that may query may know the names. A signed zone is complete: it includes the machines
//! with names in it, and delegates to other local zones, with a DS record if they are signed. Zones signed elsewhere
//! keep their DNSSEC records.

use std::fmt;

use gateway_model::Id;

use super::denial::Denial;
use super::node::{Data, Set};
use super::zone::ZoneData;
use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;

/// Source of keys and signatures.
pub trait Sign: fmt::Debug + Send + Sync {
    /// Returns the data of the DNSKEY record of a zone; none if the zone is not to be signed, or cannot be.
    fn dnskey(&self, zone: Id) -> Option<Vec<u8>>;
    /// Returns the data of the RRSIG record for a set.
    fn sign(&self, zone: Id, set: &UnsignedSet<'_>) -> Option<Vec<u8>>;
}

/// RRset to be signed.
#[derive(Clone, Copy, Debug)]
pub struct UnsignedSet<'a> {
    pub apex: NameRef<'a>,
    pub owner: NameRef<'a>,
    pub rtype: u16,
    pub ttl: u32,
    /// The records in their canonical form and order (RFC 4034, section 6).
    pub records: &'a [u8],
}

impl UnsignedSet<'_> {
    /// Returns the RRSIG fields before the signature. They also precede the records in the signed data (RFC 4034,
    /// section 3.1).
    pub fn head(&self, algorithm: u8, tag: u16, inception: u32, expiration: u32) -> Vec<u8> {
        let mut head = Vec::with_capacity(18 + self.apex.wire().len() + 64);
        head.extend_from_slice(&self.rtype.to_be_bytes());
        head.push(algorithm);
        // The asterisk does not count, so that validators recognize a wildcard expansion.
        let labels = self.owner.labels().filter(|label| *label != b"*").count();
        // A name has at most 127.
        head.push(labels as u8);
        head.extend_from_slice(&self.ttl.to_be_bytes());
        head.extend_from_slice(&expiration.to_be_bytes());
        head.extend_from_slice(&inception.to_be_bytes());
        head.extend_from_slice(&tag.to_be_bytes());
        head.extend_from_slice(self.apex.wire());
        head
    }
}

/// Signs the whole zone. It must be complete except for the key.
pub(super) fn sign(zone: &mut ZoneData, id: Id, dnskey: Vec<u8>, ttl: u32, signer: &dyn Sign) {
    let apex = zone.apex.clone();
    let top = zone.nodes.entry(apex.as_ref(), Default::default);
    top.add(rtype::DNSKEY, Data { ttl, wire: dnskey.into(), target: None });
    // TTL of NSEC records: RFC 9077, section 3.
    let soa = top.set(rtype::SOA).and_then(|soa| soa.records.first());
    let nsec_ttl = soa.map_or(ttl, |soa| soa.ttl).min(zone.negative_ttl);
    let owners = zone.nodes.iter().filter(|(name, node)| !node.sets.is_empty() && !zone.is_hidden(*name));
    let mut owners: Vec<Name> = owners.map(|(name, _)| name.to_owned()).collect();
    owners.sort_by(|one, other| one.as_ref().canonical_cmp(other.as_ref()));
    for (at, owner) in owners.iter().enumerate() {
        let name = owner.as_ref();
        let Some(node) = zone.nodes.get(name) else { continue };
        let cut = zone.is_cut(name, node);
        // The zone owns only these types at a delegation (RFC 4034, section 4.1.2).
        let own = |set: &Set| !cut || matches!(set.rtype, rtype::NS | rtype::DS);
        let types = node.sets.iter().filter(|set| own(set)).map(|set| set.rtype);
        let types: Vec<u16> = types.chain([rtype::RRSIG, rtype::NSEC]).collect();
        let next = owners.get(at + 1).unwrap_or(&apex);
        let wire = [next.as_ref().wire(), &bitmap(types)].concat();
        let Some(node) = zone.nodes.get_mut(name) else { continue };
        node.add(rtype::NSEC, Data { ttl: nsec_ttl, wire: wire.into(), target: None });
        // NS records of a delegation are signed in the child zone.
        let signed = |set: &Set| !cut || matches!(set.rtype, rtype::DS | rtype::NSEC);
        for set in node.sets.iter_mut().filter(|set| signed(set)) {
            let ttl = set.records.first().map_or(ttl, |data| data.ttl);
            let records = canonical(name, set, ttl);
            let unsigned =
                UnsignedSet { apex: apex.as_ref(), owner: name, rtype: set.rtype, ttl, records: &records };
            let signature = signer.sign(id, &unsigned);
            set.signatures =
                signature.map(|wire| Data { ttl, wire: wire.into(), target: None }).into_iter().collect();
        }
    }
    zone.denial = Some(Denial::Nsec(owners));
}

/// Returns the records in canonical form. Names in stored data are already in lower case.
fn canonical(owner: NameRef<'_>, set: &Set, ttl: u32) -> Vec<u8> {
    let mut data: Vec<&[u8]> = set.records.iter().map(|data| data.wire.as_ref()).collect();
    data.sort_unstable();
    let mut records = Vec::new();
    for data in data {
        records.extend_from_slice(owner.wire());
        records.extend_from_slice(&set.rtype.to_be_bytes());
        records.extend_from_slice(&[0, 1]);
        records.extend_from_slice(&ttl.to_be_bytes());
        // Data fits a message.
        records.extend_from_slice(&(data.len() as u16).to_be_bytes());
        records.extend_from_slice(data);
    }
    records
}

/// Encodes the type bitmap (RFC 4034, section 4.1.2).
fn bitmap(mut types: Vec<u16>) -> Vec<u8> {
    types.sort_unstable();
    types.dedup();
    let mut map = Vec::new();
    for window in types.chunk_by(|one, other| one >> 8 == other >> 8) {
        let mut bits = [0u8; 32];
        for rtype in window {
            let low = usize::from(rtype & 0xff);
            bits[low / 8] |= 0x80 >> (low % 8);
        }
        let length = bits.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        // Both are below 256.
        map.extend([(window[0] >> 8) as u8, length as u8]);
        map.extend_from_slice(&bits[..length]);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of section 4.3, without the name.
    #[test]
    fn rfc_4034_section_4_3() {
        let types = vec![1234, rtype::A, rtype::MX, rtype::RRSIG, rtype::NSEC];
        let mut want = b"\0\x06\x40\x01\0\0\0\x03\x04\x1b".to_vec();
        want.extend([0; 26]);
        want.push(0x20);
        assert_eq!(bitmap(types), want);
    }
}
