//! Bloom filter over a block of records: a search for one client, one domain or one outcome skips blocks without a
//! match.
//!
//! Clients and domains are Bloom filters: no false negatives, few false positives. Each block has its own salt. With a
//! common one, a false positive would occur in all blocks.

use std::net::IpAddr;

use gateway_core::dns::NameRef;
use gateway_journal::Summary;

use super::record::{ClientKey, RecordView};
use super::{ClientFilter, DomainFilter, Filter};
use crate::serve::Status;

/// Words of each part.
const CLIENTS: usize = 16;
const DOMAINS: usize = 64;

/// Bytes of a summary in a file.
pub(super) const LENGTH: usize = 8 * (1 + CLIENTS + DOMAINS);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BloomSummary {
    /// A bit for each outcome.
    outcomes: u64,
    clients: [u64; CLIENTS],
    domains: [u64; DOMAINS],
}

impl ClientKey {
    fn hash(self) -> u64 {
        let mut bytes = [0; 17];
        match self {
            ClientKey::Number(number) => bytes[1..9].copy_from_slice(&number.to_le_bytes()),
            ClientKey::Address(IpAddr::V4(address)) => {
                bytes[0] = 1;
                bytes[1..5].copy_from_slice(&address.octets());
            }
            ClientKey::Address(IpAddr::V6(address)) => {
                bytes[0] = 2;
                bytes[1..].copy_from_slice(&address.octets());
            }
            ClientKey::Device(id) => {
                bytes[0] = 3;
                bytes[1..].copy_from_slice(id.as_bytes());
            }
        }
        hash(&bytes)
    }
}

impl BloomSummary {
    pub(super) const NOTHING: BloomSummary =
        BloomSummary { outcomes: 0, clients: [0; CLIENTS], domains: [0; DOMAINS] };
    /// Filter of a block with unknown content.
    pub(super) const ANYTHING: BloomSummary =
        BloomSummary { outcomes: u64::MAX, clients: [u64::MAX; CLIENTS], domains: [u64::MAX; DOMAINS] };

    /// A record, and the name it is about.
    pub(super) fn add(&mut self, view: &RecordView<'_>, name: Option<NameRef<'_>>, salt: u64) {
        self.outcomes |= view.status().map_or(0, |status| 1 << (status as u8 & 63));
        view.marks().for_each(|mark| put(&mut self.clients, mark.hash(), salt));
        let suffixes = name.into_iter().flat_map(NameRef::suffixes);
        suffixes.for_each(|suffix| put(&mut self.domains, hash(suffix.wire()), salt));
    }

    fn from_bytes(bytes: &[u8; LENGTH]) -> BloomSummary {
        let mut summary = BloomSummary::NOTHING;
        let words = [&mut summary.outcomes].into_iter();
        let words = words.chain(&mut summary.clients).chain(&mut summary.domains);
        for (word, bit_index) in words.zip(bytes.chunks_exact(8)) {
            *word = bit_index.first_chunk().map_or(u64::MAX, |bit_index| u64::from_le_bytes(*bit_index));
        }
        summary
    }
}

impl Summary for BloomSummary {
    type Filter = Filter;

    fn nothing() -> BloomSummary {
        BloomSummary::NOTHING
    }

    /// A block of the version without summaries may have anything.
    fn read(_: [u8; 4], bytes: &[u8]) -> BloomSummary {
        bytes.first_chunk().map_or(BloomSummary::ANYTHING, BloomSummary::from_bytes)
    }

    fn may_match(&self, filter: &Filter, salt: u64) -> bool {
        let cached = filter.cached.and_then(|cached| cached.then_some(Status::Cached));
        let mut statuses = filter.status.into_iter().chain(cached);
        let outcome = statuses.all(|status| self.outcomes & 1 << (status as u8 & 63) != 0);
        let client = filter.client.as_ref().is_none_or(|whose| {
            let mark = match whose {
                ClientFilter::Number(number) => ClientKey::Number(*number),
                ClientFilter::Address(address) => ClientKey::Address(*address),
                ClientFilter::Device(device) => ClientKey::Device(*device),
            };
            has(&self.clients, mark.hash(), salt)
        });
        let domain = match &filter.domain {
            Some(DomainFilter::Within(zone)) => {
                zone.as_ref().is_root() || has(&self.domains, hash(zone.as_ref().wire()), salt)
            }
            // A text may be anywhere in a name.
            Some(DomainFilter::Contains(_)) | None => true,
        };
        outcome && client && domain
    }

    fn write(&self, out: &mut [u8]) {
        let words = [self.outcomes].into_iter().chain(self.clients).chain(self.domains);
        for (word, bit_index) in words.zip(out.chunks_exact_mut(8)) {
            bit_index.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Seed of the hash. It is the same in every run, because files contain it.
fn hash(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}

/// Three bits for each hash.
fn bits(words: usize, hash: u64, salt: u64) -> [(usize, u64); 3] {
    // The finaliser of SplitMix64.
    let mut mixed = hash ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    [0, 21, 42].map(|shift| {
        let bit_index = (mixed >> shift & 0x1f_ffff) as usize % (words * 64);
        (bit_index / 64, 1 << (bit_index % 64))
    })
}

fn put(words: &mut [u64], hash: u64, salt: u64) {
    bits(words.len(), hash, salt).into_iter().for_each(|(at, bit)| words[at] |= bit);
}

fn has(words: &[u64], hash: u64, salt: u64) -> bool {
    bits(words.len(), hash, salt).into_iter().all(|(at, bit)| words[at] & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_keys_are_found_with_few_false_positives() {
        let mut words = [0; DOMAINS];
        (0..200u64).for_each(|number| put(&mut words, hash(&number.to_le_bytes()), 9));
        assert!((0..200u64).all(|number| has(&words, hash(&number.to_le_bytes()), 9)));
        let wrong = (200..10_200u64).filter(|number| has(&words, hash(&number.to_le_bytes()), 9)).count();
        assert!(wrong < 200, "{wrong} of 10 000");
    }

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        let mut summary = BloomSummary::NOTHING;
        summary.outcomes = 5;
        put(&mut summary.clients, ClientKey::Number(7).hash(), 1);
        put(&mut summary.domains, hash(b"\x01a\0"), 1);
        let mut bytes = [0; LENGTH];
        summary.write(&mut bytes);
        assert_eq!(BloomSummary::from_bytes(&bytes), summary);
        assert!(
            BloomSummary::ANYTHING
                .may_match(&Filter { client: Some(ClientFilter::Number(1)), ..Filter::default() }, 3)
        );
    }
}
