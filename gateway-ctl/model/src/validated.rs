//! Validated texts: names, networks, endpoints, keys; and enums that are a text in JSON.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{FormatError, text_serde};
use crate::problem::{Problems, code};

/// Defines an enum whose variants are texts: serde, schema, `as_str`, `ALL`, `Display`, `FromStr`. Every field that has one
/// of some words is such an enum.
#[macro_export]
macro_rules! text_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::id::FormatError;

            fn from_str(text: &str) -> Result<$name, $crate::id::FormatError> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err($crate::id::FormatError(concat!("one of", $(" ", $text),+))),
                }
            }
        }
    };
}
pub(crate) use text_enum;

/// Network, or address with its prefix length. A bare address means itself only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr(pub IpNet);

impl Cidr {
    /// Returns the network as given, including host bits.
    pub const fn net(self) -> IpNet {
        self.0
    }

    /// The network with its host bits cleared; nothing if none is set.
    pub fn without_host_bits(self) -> Option<Cidr> {
        (self.0.trunc() != self.0).then(|| Cidr(self.0.trunc()))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cidr {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Cidr, FormatError> {
        let text = text.trim();
        if let Ok(net) = text.parse::<IpNet>() {
            return Ok(Cidr(net));
        }
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Cidr(IpNet::from(address))),
            Err(_) => Err(FormatError("an address or network such as 192.168.1.0/24 or fd00::/64")),
        }
    }
}

/// A host (address or name) and a port: `198.51.100.7:51820`, `[2001:db8::7]:51820`, `vpn.example.net:51820`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub host: Host,
    pub port: u16,
}

/// An address or a name that has to be resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Address(IpAddr),
    Name(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl FromStr for Endpoint {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Endpoint, FormatError> {
        const WANT: FormatError =
            FormatError("host:port such as vpn.example.net:51820 or [2001:db8::7]:51820");
        let (host, port) = text.trim().rsplit_once(':').ok_or(WANT)?;
        let port = parse_port(port).ok_or(WANT)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => {
                let inner = inner.strip_suffix(']').ok_or(WANT)?;
                Host::Address(IpAddr::V6(inner.parse().map_err(|_| WANT)?))
            }
            None => match host.parse() {
                Ok(address) => Host::Address(IpAddr::V4(address)),
                Err(_) if is_host_name(host) => Host::Name(host.trim_end_matches('.').to_ascii_lowercase()),
                Err(_) => return Err(WANT),
            },
        };
        Ok(Endpoint { host, port })
    }
}

/// 1 to 65535, digits only.
pub fn parse_port(text: &str) -> Option<u16> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|port| *port != 0)
}

/// `host:port` if the host is a name, which has to be resolved.
pub(crate) fn named_endpoint(host: &str, port: u16) -> Option<String> {
    let literal = host.parse::<std::net::IpAddr>().is_ok();
    (!literal).then(|| format!("{host}:{port}"))
}

/// Reports whether the text is a host or domain name (RFC 1123; underscores and a final dot are allowed). Four numbers
/// with dots are an address, or a mistyped one, and no name.
pub fn is_host_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    !text.is_empty()
        && text.len() <= 253
        && text.split('.').all(label)
        && !last.bytes().all(|b| b.is_ascii_digit())
}

/// A 32-byte public key in base64, as WireGuard writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<PublicKey, FormatError> {
        let bytes = STANDARD.decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(PublicKey).ok_or(FormatError("a WireGuard key: 32 bytes in base64, 44 characters"))
    }
}

text_serde!(Cidr, ({ "type": "string", "description": "Address or network with prefix length." }));
text_serde!(Endpoint, ({ "type": "string", "description": "host:port, [IPv6]:port" }));
text_serde!(PublicKey, ({ "type": "string", "minLength": 44, "maxLength": 44 }));

/// Returns true for format characters (Unicode category Cf): they are invisible, or change the direction of the text.
pub fn is_format(c: char) -> bool {
    matches!(
        u32::from(c),
        0xAD | 0x600..=0x605
            | 0x61C
            | 0x6DD
            | 0x70F
            | 0x890..=0x891
            | 0x8E2
            | 0x180E
            | 0x200B..=0x200F
            | 0x202A..=0x202E
            | 0x2060..=0x2064
            | 0x2066..=0x206F
            | 0xFEFF
            | 0xFFF9..=0xFFFB
            | 0x110BD
            | 0x110CD
            | 0x13430..=0x1343F
            | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A
            | 0xE0001
            | 0xE0020..=0xE007F
    )
}

/// A human-readable name: 1 to 64 characters, no control or format characters, no space at either end.
pub fn check_name(path: &str, name: &str, problems: &mut Problems) {
    if name.is_empty() {
        problems.required(path);
    } else if name.chars().count() > 64 {
        problems.add(code::RANGE, path, "At most 64 characters.");
    } else if name.chars().any(|c| c.is_control() || is_format(c)) || name.trim() != name {
        problems.add(
            code::FORMAT,
            path,
            "No control or format characters, and no space at the beginning or the end.",
        );
    }
}

/// A name that is typed into commands and other objects: `[a-z0-9_-]{1,32}`.
pub fn check_slug(path: &str, name: &str, problems: &mut Problems) {
    if name.is_empty() {
        problems.required(path);
    } else if name.len() > 32 {
        problems.add(code::RANGE, path, "At most 32 characters.");
    } else if !name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')) {
        problems.add(code::FORMAT, path, "Only lower-case letters, digits, _ and - are allowed.");
    }
}

/// Free text: at most `max` characters, no control characters but line breaks and tabs.
pub fn check_free_text(path: &str, text: &str, max: usize, problems: &mut Problems) {
    if text.chars().count() > max {
        problems.add(code::RANGE, path, format!("At most {max} characters."));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        problems.add(code::FORMAT, path, "No control characters.");
    }
}

/// Tags: each a short word, none twice.
pub fn check_tags(path: &str, tags: &[String], problems: &mut Problems) {
    if tags.len() > 64 {
        problems.add(code::RANGE, path, "At most 64 tags.");
    }
    for (index, tag) in tags.iter().enumerate() {
        check_name(&format!("{path}[{index}]"), tag, problems);
        if tags[..index].contains(tag) {
            problems.add(code::DUPLICATE, format!("{path}[{index}]"), "This tag is given twice.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_every_spelling_are_read_and_shown() {
        for text in ["198.51.100.7:51820", "[2001:db8::7]:51820", "vpn.example.net:51820"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "host",
            "host:0",
            "host:70000",
            "host:+1",
            "2001:db8::7:51820",
            "[198.51.100.7]:1",
            "1.2.3:5",
            "a b:5",
            "-a:5",
            ":5",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_address_is_a_network_of_one() {
        assert_eq!("10.0.0.2".parse::<Cidr>().unwrap().to_string(), "10.0.0.2/32");
        assert_eq!("fd00::2/64".parse::<Cidr>().unwrap().to_string(), "fd00::2/64");
        assert!("10.0.0.2/33".parse::<Cidr>().is_err());
    }

    #[test]
    fn names_have_no_control_or_format_characters() {
        let refused = |name: &str| {
            let mut problems = Problems::new();
            check_name("name", name, &mut problems);
            !problems.is_empty()
        };
        for name in ["a\u{202e}b", "a\u{200b}", "\u{feff}a", "a\u{2066}b", "a\u{ad}b", "a\nb", "\u{e0041}"] {
            assert!(refused(name), "{name:?}");
        }
        for name in ["laptop", "Küche", "телефон", "台所", "🖨 printer"] {
            assert!(!refused(name), "{name:?}");
        }
    }

    #[test]
    fn public_keys_have_32_bytes() {
        let text = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
        assert_eq!(text.parse::<PublicKey>().unwrap().to_string(), text);
        assert!("AAAA".parse::<PublicKey>().is_err());
    }
}
