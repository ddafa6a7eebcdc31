//! Replacement of keys: a gateway declares a new key, signed by the old one and by the new one, and both count for an
//! overlap.
//!
//! The declaration goes with every message of the overlap, so a peer learns it from whatever comes first. A peer follows
//! only from the key that it holds now: once it has followed, the old key can declare nothing more.

use gateway_model::kinds::Node;
use gateway_model::validated::PublicKey;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::message::{MessageError, Purpose, parse, signed_bytes};

/// Longest overlap.
pub const MAX_OVERLAP: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Maximum difference between the clocks of two gateways.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(300);

/// Declaration that a key replaces another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Succession {
    pub schema: u32,
    pub old: PublicKey,
    pub new: PublicKey,
    pub at: Timestamp,
    /// End of the overlap.
    pub until: Timestamp,
}

impl Succession {
    pub fn parse(payload: &str) -> Result<Succession, MessageError> {
        parse(payload)
    }
}

/// Returns the bytes that both keys sign.
pub fn succession_bytes(payload: &str) -> Vec<u8> {
    signed_bytes(Purpose::Succession, &[payload])
}

/// Reason why a peer does not follow a declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuccessionError {
    #[error("it replaces another key than the one that is trusted")]
    NotCurrent,
    #[error("its overlap has ended")]
    Expired,
    #[error("its times are not valid")]
    Times,
}

/// Keys of a node that a peer trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedKeys {
    pub current: PublicKey,
    /// Key before it, and the end of the overlap.
    pub previous: Option<(PublicKey, Timestamp)>,
}

impl TrustedKeys {
    /// Returns the keys of a node; `None` if it has none.
    pub fn of(node: &Node) -> Option<TrustedKeys> {
        let previous = node.previous_key.zip(node.previous_key_until);
        Some(TrustedKeys { current: node.public_key?, previous })
    }

    /// Reports whether a message by this key counts.
    pub fn accepts(&self, key: PublicKey, now: Timestamp) -> bool {
        key == self.current || self.previous.is_some_and(|(previous, until)| previous == key && now < until)
    }

    /// Follows a declaration whose signatures were verified. `None` if it was followed before.
    pub fn follow(
        &self,
        succession: &Succession,
        now: Timestamp,
    ) -> Result<Option<TrustedKeys>, SuccessionError> {
        let Succession { old, new, at, until, .. } = *succession;
        if new == self.current {
            return Ok(None);
        }
        if old != self.current {
            return Err(SuccessionError::NotCurrent);
        }
        let overlap = until.duration_since(at);
        if overlap.is_negative() || overlap > MAX_OVERLAP || at.duration_since(now) > MAX_SKEW {
            return Err(SuccessionError::Times);
        }
        if now >= until {
            return Err(SuccessionError::Expired);
        }
        Ok(Some(TrustedKeys { current: new, previous: Some((old, until)) }))
    }
}

#[cfg(test)]
mod tests;
