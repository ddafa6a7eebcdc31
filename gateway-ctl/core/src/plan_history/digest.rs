//! Digest of the policy maps of a plan.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use crate::plan::Dataplane;

/// Returns the digest of a plan, by which two plans are compared. It covers what decides on packets.
pub fn digest(plan: &Dataplane) -> u64 {
    struct Hash(Sha256);

    impl Write for Hash {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text);
            Ok(())
        }
    }

    let mut hash = Hash(Sha256::new());
    // The writer never fails.
    let _ = write!(hash, "{plan:?}");
    hash.0.finalize().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
