//! Authenticated denial of existence: NSEC (RFC 4034, section 4) and NSEC3 (RFC 5155).

use sha1::{Digest, Sha1};

use super::node::{Node, Set};
use crate::dns::decision::Record;
use crate::dns::name::{Name, NameRef};
use crate::dns::name_map::NameMap;
use crate::dns::rtype;

/// Maximum number of hash iterations. More cost too much (RFC 9276, section 3.2), so such zones return no proofs.
const ITERATIONS: u16 = 100;

#[derive(Clone, Debug)]
pub(super) enum Denial {
    /// Owners of NSEC records, in canonical order.
    Nsec(Vec<Name>),
    Nsec3 {
        salt: Box<[u8]>,
        iterations: u16,
        /// NSEC3 records in hash order. Their owners are not names of the zone (RFC 5155, section 7.2.8).
        chain: Vec<([u8; 20], Name, Set)>,
    },
}

/// Name or type whose absence is to be proved.
#[derive(Clone, Copy, Debug)]
pub(super) enum DeniedName<'a> {
    /// The name exists, the type does not.
    Type(NameRef<'a>),
    /// Neither the first name exists, nor a wildcard for it.
    Name(NameRef<'a>, NameRef<'a>),
    /// A wildcard below the second name answered for the first.
    Expanded(NameRef<'a>, NameRef<'a>),
    /// As `Expanded`, but the wildcard does not have the type.
    Wildcard(NameRef<'a>, NameRef<'a>),
}

impl Denial {
    /// Returns the denial of a zone that another server signed. Its NSEC3 records are in `hashed`.
    pub(super) fn of(apex: NameRef<'_>, nodes: &NameMap<Node>, hashed: &NameMap<Node>) -> Option<Denial> {
        let top = nodes.get(apex)?;
        if top.set(rtype::NSEC).is_some() {
            let owners = nodes.iter().filter(|(_, node)| node.set(rtype::NSEC).is_some());
            return Some(Denial::nsec(owners.map(|(name, _)| name.to_owned()).collect()));
        }
        let parameters = &top.set(rtype::NSEC3PARAM)?.records.first()?.wire;
        let (&[algorithm, _, high, low, length], salt) = parameters.split_first_chunk()?;
        let iterations = u16::from_be_bytes([high, low]);
        if algorithm != 1 || iterations > ITERATIONS || usize::from(length) != salt.len() {
            return None;
        }
        let below = hashed.iter().filter(|(name, _)| name.parent() == Some(apex));
        let mut chain: Vec<([u8; 20], Name, Set)> = below
            .filter_map(|(name, node)| {
                let set = node.set(rtype::NSEC3)?;
                Some((base32(name.labels().next()?)?, name.to_owned(), set.clone()))
            })
            .collect();
        chain.sort_by_key(|(hash, ..)| *hash);
        Some(Denial::Nsec3 { salt: salt.into(), iterations, chain })
    }

    /// Returns the denial of a zone with NSEC records at these owners.
    pub(super) fn nsec(mut owners: Vec<Name>) -> Denial {
        owners.sort_by(|one, other| one.as_ref().canonical_cmp(other.as_ref()));
        Denial::Nsec(owners)
    }

    /// Adds the proof to `out`, for the zone with this apex and these names.
    pub(super) fn prove<'a>(
        &'a self,
        apex: NameRef<'_>,
        nodes: &'a NameMap<Node>,
        denied: DeniedName<'_>,
        out: &mut Vec<Record>,
    ) {
        let mut proofs: Vec<(NameRef<'a>, &'a Set)> = Vec::with_capacity(3);
        let mut take = |proof: Option<(NameRef<'a>, &'a Set)>| {
            // One record may prove both.
            let included = |proof: &(NameRef<'a>, &Set)| proofs.iter().any(|(owner, _)| *owner == proof.0);
            if let Some(proof) = proof.filter(|proof| !included(proof)) {
                proofs.push(proof);
            }
        };
        match (self, denied) {
            (Denial::Nsec(_), DeniedName::Type(name) | DeniedName::Expanded(name, _)) => {
                take(self.nsec_of(nodes, name))
            }
            (Denial::Nsec(_), DeniedName::Name(name, closest) | DeniedName::Wildcard(name, closest)) => {
                take(self.nsec_of(nodes, name));
                if let Some(wildcard) = wildcard_of(closest) {
                    take(self.nsec_of(nodes, wildcard.as_ref()));
                }
            }
            (Denial::Nsec3 { .. }, DeniedName::Type(name)) => match self.hashed(name, true) {
                Some(proof) => take(Some(proof)),
                // A name without its own record is below an opt-out (RFC 5155, section 7.2.4).
                None => {
                    let above = name.suffixes().skip(1).take_while(|above| above.is_within(apex));
                    let mut known = above.filter(|above| self.hashed(*above, true).is_some());
                    if let Some(closest) = known.next() {
                        take(self.hashed(closest, true));
                        take(self.next_closer(name, closest));
                    }
                }
            },
            (Denial::Nsec3 { .. }, DeniedName::Expanded(name, closest)) => {
                take(self.next_closer(name, closest))
            }
            (Denial::Nsec3 { .. }, DeniedName::Name(name, closest) | DeniedName::Wildcard(name, closest)) => {
                take(self.hashed(closest, true));
                take(self.next_closer(name, closest));
                let exact = matches!(denied, DeniedName::Wildcard(..));
                if let Some(wildcard) = wildcard_of(closest) {
                    take(self.hashed(wildcard.as_ref(), exact));
                }
            }
        }
        for (owner, set) in proofs {
            set.write(owner, true, out);
        }
    }

    /// Returns the NSEC record of the name or, if it has none, the one that covers it.
    fn nsec_of<'a>(&'a self, nodes: &'a NameMap<Node>, name: NameRef<'_>) -> Option<(NameRef<'a>, &'a Set)> {
        let Denial::Nsec(owners) = self else { return None };
        let after = owners.partition_point(|owner| owner.as_ref().canonical_cmp(name).is_le());
        let owner = owners.get(after.checked_sub(1)?)?.as_ref();
        Some((owner, nodes.get(owner)?.set(rtype::NSEC)?))
    }

    /// Returns the NSEC3 record of the name itself or, unless `exact`, the one that covers its hash.
    fn hashed(&self, name: NameRef<'_>, exact: bool) -> Option<(NameRef<'_>, &Set)> {
        let Denial::Nsec3 { salt, iterations, chain } = self else { return None };
        let hash = hash(name, salt, *iterations);
        let after = chain.partition_point(|(have, ..)| *have <= hash);
        // The last record covers the hashes before the first.
        let (have, owner, set) = chain.get(after.checked_sub(1).unwrap_or(chain.len().checked_sub(1)?))?;
        (!exact || *have == hash).then_some((owner.as_ref(), set))
    }

    /// Returns the record that covers the next closer name (RFC 5155, section 1.3).
    fn next_closer(&self, name: NameRef<'_>, closest: NameRef<'_>) -> Option<(NameRef<'_>, &Set)> {
        let next = name.suffixes().find(|suffix| suffix.parent() == Some(closest))?;
        self.hashed(next, false)
    }
}

/// Returns `*` below a name.
pub(super) fn wildcard_of(closest: NameRef<'_>) -> Option<Name> {
    NameRef::new(&[b"\x01*", closest.wire()].concat()).map(NameRef::to_owned)
}

/// Returns the NSEC3 hash of a name (RFC 5155, section 5).
pub(super) fn hash(name: NameRef<'_>, salt: &[u8], iterations: u16) -> [u8; 20] {
    let mut hash: [u8; 20] = Sha1::new().chain_update(name.wire()).chain_update(salt).finalize().into();
    for _ in 0..iterations {
        hash = Sha1::new().chain_update(hash).chain_update(salt).finalize().into();
    }
    hash
}

/// Decodes the hash in a label: base32 with the extended hex alphabet (RFC 4648, section 7).
fn base32(label: &[u8]) -> Option<[u8; 20]> {
    let label: &[u8; 32] = label.try_into().ok()?;
    let mut hash = [0; 20];
    for (letters, bytes) in label.chunks_exact(8).zip(hash.chunks_exact_mut(5)) {
        let mut word = 0u64;
        for letter in letters {
            let value = match letter {
                b'0'..=b'9' => letter - b'0',
                b'a'..=b'v' => letter - b'a' + 10,
                _ => return None,
            };
            word = word << 5 | u64::from(value);
        }
        bytes.copy_from_slice(&word.to_be_bytes()[3..]);
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of appendix A.
    #[test]
    fn rfc_5155_hashes() {
        let cases: [(&[u8], &[u8]); 3] = [
            (b"\x07example\0", b"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            (b"\x01a\x07example\0", b"35mthgpgcu1qg68fab165klnsnk3dpvl"),
            (b"\x01*\x01w\x07example\0", b"r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
        ];
        for (name, want) in cases {
            let name = NameRef::new(name).expect("a name");
            assert_eq!(Some(hash(name, &[0xaa, 0xbb, 0xcc, 0xdd], 12)), base32(want), "{name}");
        }
    }

    #[test]
    fn an_invalid_hash_is_no_nsec3_label() {
        assert_eq!(base32(b"0p9mhaveqvm6t7vbl5lop2u3t2rp3to"), None);
        assert_eq!(base32(b"zp9mhaveqvm6t7vbl5lop2u3t2rp3tom"), None);
    }
}
