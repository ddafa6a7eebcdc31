//! Keys of the protocol in their text form: a prefix that names the use, and 64 hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

/// A text that is no key of the expected use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a key that begins with `{prefix}`")]
pub struct KeyError {
    prefix: &'static str,
}

macro_rules! public_key {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(pub [u8; 32]);

        impl $name {
            /// Tells whether the key is the placeholder for "none".
            pub fn is_zero(&self) -> bool {
                self.0 == [0; 32]
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str($prefix)?;
                write_hex(&self.0, formatter)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl From<$name> for String {
            fn from(key: $name) -> Self {
                key.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = KeyError;

            /// Reads a key. Clients write an absent one as an empty text.
            fn try_from(text: String) -> Result<Self, KeyError> {
                if text.is_empty() {
                    return Ok(Self::default());
                }
                let digits = text.strip_prefix($prefix).and_then(read_hex);
                digits.map(Self).ok_or(KeyError { prefix: $prefix })
            }
        }
    };
}

public_key!(
    /// The identity of a machine, which authenticates its sessions with the coordinator.
    MachineKey,
    "mkey:"
);
public_key!(
    /// The WireGuard key of a node, which also identifies it at the relay.
    NodeKey,
    "nodekey:"
);
public_key!(
    /// The key of messages that look for direct paths.
    DiscoKey,
    "discokey:"
);
public_key!(
    /// The key of a challenge at the start of a session.
    ChallengeKey,
    "chalpub:"
);

fn write_hex(bytes: &[u8], to: &mut impl fmt::Write) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
}

/// Writes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_hex(digits: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = digits.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |index: usize| char::from(pair[index]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

/// A Curve25519 secret, and its public half. The public half alone appears in `Debug`.
#[derive(Clone)]
pub struct KeyPair {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl KeyPair {
    /// Derives the public half of a secret.
    pub fn of_secret(secret: [u8; 32]) -> Self {
        let public = x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from(secret));
        Self { secret: Zeroizing::new(secret), public: public.to_bytes() }
    }

    /// Creates a key pair.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self::of_secret(secret))
    }

    /// The secret, for the library that computes with it and for the store.
    pub fn expose(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The public half.
    pub fn public(&self) -> [u8; 32] {
        self.public
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyPair({})", hex(&self.public))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn key_survives_its_text(bytes: [u8; 32]) {
            let key = NodeKey(bytes);
            prop_assert_eq!(NodeKey::try_from(key.to_string()), Ok(key));
        }

        #[test]
        fn no_other_text_is_a_key(text in "(nodekey:)?[0-9a-fA-F:+ é]{1,70}") {
            if let Ok(key) = NodeKey::try_from(text.clone()) {
                prop_assert_eq!(key.to_string(), text.to_lowercase());
            }
        }
    }

    #[test]
    fn keys_of_other_uses_are_refused() {
        let machine = MachineKey([7; 32]).to_string();
        assert!(NodeKey::try_from(machine).is_err());
    }

    #[test]
    fn secret_stays_out_of_debug() {
        let pair = KeyPair::of_secret([9; 32]);
        assert!(!format!("{pair:?}").contains(&hex(&[9; 32])));
    }
}
