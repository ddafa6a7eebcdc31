//! Values that may be written and never read back: keys and passwords.
//!
//! A secret serialises as a boolean: whether it is set. The only ways to the text are
//! [`Secret::expose`] and the stored form ([`crate::resource::to_stored`]), which uses it.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, Zeroizing};

/// A secret text; empty means that none is set. Overwritten in memory when dropped.
///
/// In a resource it is declared as
/// `#[serde(default, rename(serialize = "has_password", deserialize = "password"))]`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(Zeroizing::new(text.into()))
    }

    pub fn is_set(&self) -> bool {
        !self.0.is_empty()
    }

    /// The text itself. Never hand it to a log, an error or a reply.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The 32 bytes of a key in base64, as WireGuard writes them.
    pub fn key(&self) -> Option<Zeroizing<[u8; 32]>> {
        let mut bytes = STANDARD.decode(self.0.trim()).ok()?;
        let key = <[u8; 32]>::try_from(bytes.as_slice()).ok().map(Zeroizing::new);
        bytes.zeroize();
        key
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "Secret(set)" } else { "Secret(unset)" })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.is_set())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        Ok(Secret::new(Option::<String>::deserialize(deserializer)?.unwrap_or_default()))
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            json_schema!({ "type": "boolean", "readOnly": true, "description": "Whether the secret is set; it is never shown." })
        } else {
            json_schema!({ "type": ["string", "null"], "writeOnly": true, "description": "Kept when left out, cleared by null." })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_json_shows_a_secret() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(set)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "true");
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(serde_json::from_str::<Secret>("null").unwrap(), Secret::default());
    }

    #[test]
    fn a_key_is_32_bytes_of_base64() {
        assert_eq!(*Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=").key().unwrap(), {
            let mut key = [0; 32];
            key[31] = 1;
            key
        });
        assert!(Secret::new("AAAA").key().is_none());
        assert!(Secret::new("not base64").key().is_none());
    }
}
