//! Pre-auth keys: by one of them, a node registers. The coordinator keeps their hash. No I/O.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::keys::hex;

const PREFIX: &str = "gwmesh-";
const IDENTIFIER_BYTES: usize = 6;
const SECRET_BYTES: usize = 24;
/// Maximum length of a text that is read as a key, in bytes.
const LONGEST: usize = 128;

/// Permissions of a pre-auth key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthKeyTerms {
    /// True if it registers more than one node.
    pub reusable: bool,
    /// True if its nodes are removed once they are gone.
    pub ephemeral: bool,
    pub expires: Timestamp,
    /// Tags of its nodes.
    pub tags: Vec<String>,
    /// Number of nodes that a reusable key registers; 0 is any number.
    pub usage_limit: u32,
}

/// A pre-auth key as it is kept: without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthKey {
    pub id: String,
    /// SHA-256 of the whole text, which has 192 random bits.
    pub hash: String,
    pub created: Timestamp,
    pub terms: AuthKeyTerms,
    /// Registrations that it was used for.
    pub uses: u32,
}

/// Reason for which a pre-auth key registers no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AuthKeyError {
    #[error("the pre-auth key is not known")]
    Unknown,
    #[error("the pre-auth key has expired")]
    Expired,
    #[error("the pre-auth key is used up")]
    UsedUp,
}

impl AuthKey {
    /// Creates a key. Returns it with its text, which is shown once.
    pub fn random(terms: AuthKeyTerms, now: Timestamp) -> Result<(Self, String), getrandom::Error> {
        let mut bytes = [0; IDENTIFIER_BYTES + SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        let (identifier, secret) = bytes.split_at(IDENTIFIER_BYTES);
        let id = hex(identifier);
        let text = format!("{PREFIX}{id}-{}", BASE64_URL_SAFE_NO_PAD.encode(secret));
        let key = Self { id, hash: hash(&text), created: now, terms, uses: 0 };
        Ok((key, text))
    }

    /// Checks that `text` is this key, and that it registers another node.
    pub fn redeem(&self, text: &str, now: Timestamp) -> Result<(), AuthKeyError> {
        if !bool::from(self.hash.as_bytes().ct_eq(hash(text).as_bytes())) {
            return Err(AuthKeyError::Unknown);
        }
        if self.terms.expires <= now {
            return Err(AuthKeyError::Expired);
        }
        let limit = match (self.terms.reusable, self.terms.usage_limit) {
            (false, _) => 1,
            (true, 0) => u32::MAX,
            (true, limit) => limit,
        };
        if self.uses >= limit { Err(AuthKeyError::UsedUp) } else { Ok(()) }
    }
}

/// Finds the identifier in the text of a key.
pub(crate) fn identifier(text: &str) -> Option<&str> {
    let (identifier, _) = text.strip_prefix(PREFIX).filter(|_| text.len() <= LONGEST)?.split_once('-')?;
    Some(identifier)
}

fn hash(text: &str) -> String {
    hex(digest(&SHA256, text.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn terms(reusable: bool, usage_limit: u32) -> AuthKeyTerms {
        AuthKeyTerms { reusable, ephemeral: false, expires: at(100), tags: Vec::new(), usage_limit }
    }

    #[test]
    fn key_is_redeemed_within_its_terms() {
        for (reusable, usage_limit, uses) in [(false, 0, 1), (false, 5, 1), (true, 2, 2)] {
            let (mut key, text) = AuthKey::random(terms(reusable, usage_limit), at(0)).unwrap();
            assert_eq!(identifier(&text), Some(key.id.as_str()));
            for _ in 0..uses {
                assert_eq!(key.redeem(&text, at(99)), Ok(()));
                key.uses += 1;
            }
            assert_eq!(key.redeem(&text, at(99)), Err(AuthKeyError::UsedUp));
            assert_eq!(key.redeem(&text, at(100)), Err(AuthKeyError::Expired));
        }
        let (mut key, text) = AuthKey::random(terms(true, 0), at(0)).unwrap();
        key.uses = 1000;
        assert_eq!(key.redeem(&text, at(0)), Ok(()));
        assert_eq!(key.redeem(&text[..text.len() - 1], at(0)), Err(AuthKeyError::Unknown));
    }

    #[test]
    fn nothing_kept_shows_the_key() {
        let (key, text) = AuthKey::random(terms(true, 0), at(0)).unwrap();
        // The secret may have a hyphen itself.
        let secret = text.strip_prefix(&format!("{PREFIX}{}-", key.id)).unwrap();
        let kept = format!("{key:?}{}", serde_json::to_string(&key).unwrap());
        assert_eq!(secret.len(), 4 * SECRET_BYTES / 3);
        assert!(!kept.contains(secret));
    }

    #[test]
    fn two_keys_differ() {
        let text = || AuthKey::random(terms(true, 0), at(0)).unwrap().1;
        assert_ne!(text(), text());
    }
}
