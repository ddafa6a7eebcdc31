//! Names of servers, as hashes of their ends, so that a set of domains has the names below them too.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum length of a name that is read. A power of two.
pub const NAME: usize = 64;

/// Number of labels of the shortest and the longest domain that is looked up.
pub const LABELS: core::ops::RangeInclusive<usize> = 2..=5;
const ENDS: usize = 4;

/// FNV-1a, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

const DOT: u32 = b'.' as u32;
const UPPER_A: u32 = b'A' as u32;
const LETTERS: u32 = 26;
/// A power of two.
const PLACES: usize = 8;

/// Returns 1 if `a` is less than `b`, else 0.
#[inline(always)]
const fn is_less(a: u32, b: u32) -> u32 {
    // The borrow of the subtraction.
    ((a as u64).wrapping_sub(b as u64) >> 63) as u32
}

/// Hashes of the ends of a name with two to five labels, 0 for those that it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerNames(pub [u64; ENDS]);

impl ServerNames {
    /// Reads a name from its end to its beginning. It is whole unless its beginning is cut off.
    // Without branches in the loop: the verifier would follow each combination.
    #[inline(always)]
    pub fn read(&mut self, name: &[u8; NAME], length: usize, is_whole: bool) {
        // By number of labels, less one; the last place takes all longer ends.
        let mut ends = [0u64; PLACES];
        let mut hash = BASIS;
        let mut labels = 0u32;
        for place in 0..NAME {
            if place >= length {
                break;
            }
            // Masked for the verifier.
            let byte = name[(length - 1 - place) & (NAME - 1)] as u32;
            labels += is_less(byte ^ DOT, 1) & is_less(labels, PLACES as u32 - 1);
            let lower = byte | is_less(byte.wrapping_sub(UPPER_A), LETTERS) << 5;
            hash = (hash ^ lower as u64).wrapping_mul(PRIME);
            ends[labels as usize & (PLACES - 1)] = hash;
        }
        if !is_whole {
            ends[labels as usize & (PLACES - 1)] = 0;
        }
        self.0 = [ends[1], ends[2], ends[3], ends[4]];
    }

    /// Returns the ends of a name. Only the last [`NAME`] bytes count.
    pub fn of(name: &str) -> ServerNames {
        let kept = &name.as_bytes()[name.len().saturating_sub(NAME)..];
        let mut bytes = [0; NAME];
        bytes[..kept.len()].copy_from_slice(kept);
        let mut names = ServerNames::default();
        names.read(&bytes, kept.len(), kept.len() == name.len());
        names
    }

    /// Returns the hash of a domain as a key of the set. `None` if it has fewer or more labels than [`LABELS`], or is
    /// longer than [`NAME`].
    pub fn key(domain: &str) -> Option<u64> {
        let labels = domain.split('.').count();
        if !LABELS.contains(&labels) || domain.len() > NAME {
            return None;
        }
        ServerNames::of(domain).0.get(labels - LABELS.start()).copied()
    }
}

/// Domain in a set.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DomainKey {
    pub slot: u32,
    pub _pad: u32,
    /// [`ServerNames::key`] of the domain.
    pub hash: u64,
}

/// Place in a ClientHello that goes on in a later segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HelloProgress {
    /// Sequence number at which the next field begins.
    pub next: u32,
    /// Length of the extensions from there on; [`fields_before_extensions`] if they have not begun.
    pub left: u32,
}

/// Values of [`HelloProgress::left`] before the extensions, whose length has 16 bits: the next field.
pub mod fields_before_extensions {
    pub const SESSION_ID: u32 = 0x1_0000;
    pub const CIPHER_SUITES: u32 = 0x2_0000;
    pub const COMPRESSION_METHODS: u32 = 0x3_0000;
    pub const LENGTH_OF_EXTENSIONS: u32 = 0x4_0000;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_keys_of_the_domains_that_it_is_below() {
        let names = ServerNames::of("a.b.Dns.Example.Com");
        for domain in ["example.com", "dns.example.com", "b.dns.example.com", "a.b.dns.example.com"] {
            assert!(names.0.contains(&ServerNames::key(domain).unwrap()), "{domain}");
        }
        for domain in ["xample.com", "ns.example.com", "dns.example.org", "dns.example.com.au"] {
            assert!(!names.0.contains(&ServerNames::key(domain).unwrap()), "{domain}");
        }
        assert_eq!((ServerNames::key("com"), ServerNames::key("a.b.c.d.e.f")), (None, None));
    }

    #[test]
    fn of_a_long_name_the_end_counts() {
        let long = ServerNames::of(&format!("{}.dns.example.com", "x".repeat(80)));
        let same = ServerNames::of("dns.example.com");
        assert_eq!((long.0[0], long.0[1]), (same.0[0], same.0[1]));
        // The beginning is cut off, so the label before it is not known.
        assert_eq!(long.0[2], 0);
    }
}
