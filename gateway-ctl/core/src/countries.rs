//! Countries of addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use gateway_model::id::FormatError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Code of a country with two letters (ISO 3166-1), in upper case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountryCode([u8; 2]);

/// Source of the countries of addresses.
pub trait Countries {
    /// Returns the country of an address. `None` if it is not known.
    fn country(&self, address: IpAddr) -> Option<CountryCode>;
}

/// No database.
impl Countries for () {
    fn country(&self, _: IpAddr) -> Option<CountryCode> {
        None
    }
}

impl CountryCode {
    /// Returns the code of two letters. `None` if they are none.
    pub fn new(letters: [u8; 2]) -> Option<CountryCode> {
        letters
            .iter()
            .all(u8::is_ascii_alphabetic)
            .then(|| CountryCode(letters.map(|l| l.to_ascii_uppercase())))
    }

    pub fn as_str(&self) -> &str {
        // Letters of ASCII are text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CountryCode {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<CountryCode, FormatError> {
        let letters = <[u8; 2]>::try_from(text.as_bytes()).ok();
        letters.and_then(CountryCode::new).ok_or(FormatError("a country code of two letters"))
    }
}

impl Serialize for CountryCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CountryCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CountryCode, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for CountryCode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CountryCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z]{2}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_two_letters_in_upper_case() {
        let code: CountryCode = "de".parse().expect("a code");
        assert_eq!((code.as_str(), serde_json::json!(code)), ("DE", serde_json::json!("DE")));
        for wrong in ["", "D", "DEU", "1A", "ä"] {
            assert!(wrong.parse::<CountryCode>().is_err(), "{wrong}");
        }
    }
}
