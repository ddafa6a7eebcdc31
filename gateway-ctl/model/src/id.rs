//! Identifiers: of resources, of network cards, of interfaces, of revisions.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Id of a resource: a UUID. Ids minted here sort by the time of their making.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Id(Uuid);

impl Id {
    pub const NIL: Id = Id(Uuid::nil());

    pub const fn from_u128(value: u128) -> Id {
        Id(Uuid::from_u128(value))
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Id {
        Id(Uuid::from_bytes(bytes))
    }

    /// Reports whether the object is built in: see `Meta::builtin`.
    pub const fn is_builtin(&self) -> bool {
        self.0.as_u128() >> 48 == 0x6761_7465_7761_4000_8000
    }

    /// Reports whether the text is the one that the id has in JSON.
    pub fn is_written_as(&self, text: &str) -> bool {
        *self.0.as_hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()) == *text
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// A new id of version 7. Ids of one instant sort by `counter` (its lower 26 bits).
    pub fn mint(at: Timestamp, counter: u32) -> Id {
        let mut tail = [0u8; 10];
        tail.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
        // Version and variant take the upper bits of bytes 0 and 2.
        tail[0] = (counter >> 22) as u8 & 0x0f;
        tail[1] = (counter >> 14) as u8;
        tail[2] = (counter >> 8) as u8 & 0x3f;
        tail[3] = counter as u8;
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        Id(uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Id, FormatError> {
        match Uuid::try_parse(text.trim()) {
            Ok(uuid) => Ok(Id(uuid)),
            Err(_) => Err(FormatError("a UUID such as 0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11")),
        }
    }
}

/// Invalid text, with the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct FormatError(pub &'static str);

/// MAC address of a network card; shown in lower case with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Reports whether the address is a group address.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Reports whether the address is locally administered, as randomised addresses are.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddr {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<MacAddr, FormatError> {
        const WANT: FormatError = FormatError("a MAC address such as 02:42:ac:11:00:02");
        let text = text.trim();
        // 0242.ac11.0002 and 0242ac110002.
        let words: Vec<&str> = text.split('.').collect();
        let packed = words.len() == 3 && words.iter().all(|word| word.len() == 4)
            || words.len() == 1 && text.len() == 12;
        if packed {
            let digits = words.concat();
            let mut octets = [0u8; 6];
            for (octet, pair) in octets.iter_mut().zip(digits.as_bytes().chunks(2)) {
                let pair = std::str::from_utf8(pair).map_err(|_| WANT)?;
                if !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(WANT);
                }
                *octet = u8::from_str_radix(pair, 16).map_err(|_| WANT)?;
            }
            return Ok(MacAddr(octets));
        }
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0u8; 6];
        let mut parts = text.split(separator);
        for octet in &mut octets {
            let part = parts.next().ok_or(WANT)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(WANT);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| WANT)?;
        }
        match parts.next() {
            None => Ok(MacAddr(octets)),
            Some(_) => Err(WANT),
        }
    }
}

/// Name of a network interface as the kernel accepts it: 1 to 15 bytes, no slash, no space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IfName(String);

impl IfName {
    pub const MAX: usize = 15;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for IfName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for IfName {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<IfName, FormatError> {
        let fine = !text.is_empty()
            && text.len() <= IfName::MAX
            && text != "."
            && text != ".."
            && text
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b':' | b'"' | b'\\' | b'%' | b','));
        if fine {
            Ok(IfName(text.to_owned()))
        } else {
            Err(FormatError(
                "an interface name of 1 to 15 characters, without spaces, slashes, colons or quotes",
            ))
        }
    }
}

/// Counts the changes of the store; each change has the next one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Revision(pub u64);

impl Revision {
    pub const fn next(self) -> Revision {
        Revision(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Serde and schema of a type that is a text in JSON: `Display` out, `FromStr` in.
macro_rules! text_serde {
    ($name:ident, $schema:tt) => {
        text_serde!(@in $name, $schema);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
    (@in $name:ident, $schema:tt) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema! $schema
            }
        }
    };
}
pub(crate) use text_serde;

text_serde!(@in Id, ({ "type": "string", "format": "uuid" }));
text_serde!(MacAddr, ({
    "type": "string",
    "pattern": "^([0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}([.][0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{12})$",
}));
text_serde!(IfName, ({ "type": "string", "minLength": 1, "maxLength": 15 }));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_read_in_both_spellings_and_shown_in_one() {
        for text in [
            "02:42:AC:11:00:02",
            "02-42-ac-11-00-02",
            " 02:42:ac:11:00:02 ",
            "0242.ac11.0002",
            "0242AC110002",
        ] {
            assert_eq!(text.parse::<MacAddr>().unwrap().to_string(), "02:42:ac:11:00:02");
        }
        for text in [
            "",
            "02:42:ac:11:00",
            "02:42:ac:11:00:02:03",
            "2:42:ac:11:00:02",
            "02:42:ac:11:00:0g",
            "02:42-ac:11:00:02",
            "+2:42:ac:11:00:02",
            "0242.ac11.00",
            "0242.ac11.000g",
            "0242ac11000",
            "0242ac11000ä",
        ] {
            assert!(text.parse::<MacAddr>().is_err(), "{text}");
        }
    }

    #[test]
    fn interface_names_are_those_of_the_kernel() {
        for text in ["eth0", "br-lan", "eth0.20", "wg_home", "123456789012345"] {
            assert!(text.parse::<IfName>().is_ok(), "{text}");
        }
        for text in ["", "1234567890123456", "a b", "a/b", ".", "..", "eth0:1", "gräte", "a\n", "a\"b"] {
            assert!(text.parse::<IfName>().is_err(), "{text}");
        }
    }

    #[test]
    fn minted_ids_sort_by_time_and_then_by_counter() {
        let early = Timestamp::from_millisecond(1_700_000_000_000).unwrap();
        let late = Timestamp::from_millisecond(1_700_000_000_001).unwrap();
        let ids: Vec<Id> =
            [0, 1, 255, 256, 16_383, 16_384, 4_194_304, 60_000_000].map(|n| Id::mint(early, n)).into();
        assert!(ids.is_sorted());
        assert!(ids.last().unwrap() < &Id::mint(late, 0));
        assert_eq!(ids[3].to_string().as_bytes()[14], b'7');
    }
}
