//! Domain names: parsed from any common spelling, stored in canonical form.
//!
//! RFC 1035 for lengths, UTS 46 for internationalised names (stored as A-labels), underscores for service names (RFC
//! 8552). A name is lower case and has no final dot; the root is a single dot.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Longest name in its text form without the last dot.
pub const MAX_NAME: usize = 253;

/// A domain name. The default is the empty text, which no valid name has: a field that was not given.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DomainName(String);

/// Reason for which a text is not a domain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    #[error("expected a domain name such as example.com")]
    Empty,
    #[error("this is an address; expected a domain name such as example.com")]
    Address,
    #[error("a domain name has at most 253 characters")]
    TooLong,
    #[error("the part between two dots has at most 63 characters")]
    LabelTooLong,
    #[error("two dots in a row, or a dot at the beginning: a part of the name is empty")]
    EmptyLabel,
    #[error("a part of a domain name neither begins nor ends with a hyphen")]
    Hyphen,
    #[error("a domain name has letters, digits, hyphens and underscores, parts separated by dots")]
    Character,
    #[error("the last part of a domain name is not a number")]
    Number,
    #[error("this international name cannot be encoded (IDNA)")]
    Idna,
}

impl DomainName {
    /// `.`: all names are below it.
    pub fn root() -> DomainName {
        DomainName(".".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// A host or zone name: the root is none.
    pub fn parse(text: &str) -> Result<DomainName, DomainError> {
        let text = text.trim();
        // Before the conversion, whose effort grows with the length.
        if text.len() > 4 * MAX_NAME {
            return Err(DomainError::TooLong);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(DomainError::Empty);
        }
        if text.parse::<std::net::IpAddr>().is_ok() {
            return Err(DomainError::Address);
        }
        let ascii = Uts46::new()
            .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
            .map_err(|_| DomainError::Idna)?;
        check(&ascii)?;
        Ok(DomainName(ascii.into_owned()))
    }

    /// The same, or the root.
    pub fn parse_or_root(text: &str) -> Result<DomainName, DomainError> {
        if text.trim() == "." { Ok(DomainName::root()) } else { DomainName::parse(text) }
    }

    /// Reports whether the name is `zone` or below it.
    pub fn is_within(&self, zone: &DomainName) -> bool {
        zone.is_root() || self.relative_to(zone).is_some()
    }

    /// Returns the labels before `zone`, empty for the zone itself.
    pub fn relative_to<'a>(&'a self, zone: &DomainName) -> Option<&'a str> {
        let front = self.0.strip_suffix(zone.0.as_str())?;
        if front.is_empty() { Some("") } else { front.strip_suffix('.') }
    }

    /// The form for people: A-labels decoded.
    pub fn to_unicode(&self) -> String {
        let (text, result) = Uts46::new().to_unicode(self.0.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        if result.is_ok() { text.into_owned() } else { self.0.clone() }
    }
}

fn check(ascii: &str) -> Result<(), DomainError> {
    if ascii.len() > MAX_NAME {
        return Err(DomainError::TooLong);
    }
    for label in ascii.split('.') {
        check_label(label)?;
    }
    let last = ascii.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|b| b.is_ascii_digit()) {
        return Err(DomainError::Number);
    }
    Ok(())
}

fn check_label(label: &str) -> Result<(), DomainError> {
    if label.is_empty() {
        return Err(DomainError::EmptyLabel);
    }
    if label.len() > 63 {
        return Err(DomainError::LabelTooLong);
    }
    if !label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_')) {
        return Err(DomainError::Character);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(DomainError::Hyphen);
    }
    Ok(())
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DomainName {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<DomainName, DomainError> {
        DomainName::parse_or_root(text)
    }
}

impl<'de> Deserialize<'de> for DomainName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DomainName, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for DomainName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DomainName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "description": "Domain name; international ones are kept as A-labels." })
    }
}

/// A domain name, or `*.` and one: all names below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainOrWildcard {
    pub wildcard: bool,
    pub name: DomainName,
}

impl DomainOrWildcard {
    pub fn parse(text: &str) -> Result<DomainOrWildcard, DomainError> {
        let text = text.trim();
        match text.strip_prefix("*.") {
            Some(rest) => Ok(DomainOrWildcard { wildcard: true, name: DomainName::parse(rest)? }),
            None => Ok(DomainOrWildcard { wildcard: false, name: DomainName::parse(text)? }),
        }
    }
}

impl fmt::Display for DomainOrWildcard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.wildcard { "*." } else { "" }, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_name_becomes_one() {
        let cases = [
            ("Example.COM.", "example.com"),
            (" example.com ", "example.com"),
            ("Bücher.Example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
            ("straße.de", "xn--strae-oqa.de"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("_sip._tcp.lan", "_sip._tcp.lan"),
            ("r3---sn-4g5e6nzz.googlevideo.com", "r3---sn-4g5e6nzz.googlevideo.com"),
            ("1.0.10.in-addr.arpa", "1.0.10.in-addr.arpa"),
            ("lan", "lan"),
        ];
        for (text, want) in cases {
            assert_eq!(DomainName::parse(text).map(|name| name.to_string()), Ok(want.to_owned()), "{text}");
        }
        assert_eq!(DomainName::parse("xn--bcher-kva.example").unwrap().to_unicode(), "bücher.example");
        assert!(".".parse::<DomainName>().unwrap().is_root());
    }

    #[test]
    fn an_invalid_name_is_refused_with_its_reason() {
        let long = format!("{}.com", "a".repeat(64));
        let longer = vec!["a".repeat(63); 4].join(".") + ".com";
        let huge = "ü".repeat(100_000);
        let cases = [
            ("", DomainError::Empty),
            (".", DomainError::Empty),
            ("192.0.2.1", DomainError::Address),
            ("2001:db8::1", DomainError::Address),
            ("1.2.3", DomainError::Number),
            ("a..b", DomainError::EmptyLabel),
            (".example.com", DomainError::EmptyLabel),
            ("-a.example", DomainError::Hyphen),
            ("a-.example", DomainError::Hyphen),
            ("a b.example", DomainError::Character),
            ("*.example.com", DomainError::Character),
            ("https://example.com", DomainError::Character),
            ("a\0.example", DomainError::Character),
            ("xn--a.example", DomainError::Idna),
            (long.as_str(), DomainError::LabelTooLong),
            (longer.as_str(), DomainError::TooLong),
            (huge.as_str(), DomainError::TooLong),
        ];
        for (text, want) in cases {
            assert_eq!(DomainName::parse(text), Err(want), "{text:.40}");
        }
    }

    #[test]
    fn a_name_is_within_itself_and_what_it_ends_with_at_a_dot() {
        let name = |text: &str| DomainName::parse(text).unwrap();
        assert_eq!(name("www.home.lan").relative_to(&name("home.lan")), Some("www"));
        assert_eq!(name("home.lan").relative_to(&name("home.lan")), Some(""));
        assert_eq!(name("myhome.lan").relative_to(&name("home.lan")), None);
        assert!(name("home.lan").is_within(&DomainName::root()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_has_one_spelling(
            text in "\\PC{0,40}|[a-zA-Z0-9._äß。xn-]{0,80}|([a-z]{1,8}\\.){1,4}[a-zü]{2,6}\\.?"
        ) {
            if let Ok(name) = text.parse::<DomainName>() {
                prop_assert!(name.as_str().is_ascii() && name.as_str().len() <= MAX_NAME);
                prop_assert_eq!(name.to_string().parse::<DomainName>(), Ok(name.clone()));
                prop_assert_eq!(name.as_str().to_ascii_uppercase().parse::<DomainName>(), Ok(name.clone()));
                prop_assert_eq!(name.to_unicode().parse::<DomainName>(), Ok(name));
            }
            if let Ok(name) = DomainOrWildcard::parse(&text) {
                prop_assert_eq!(DomainOrWildcard::parse(&name.to_string()), Ok(name));
            }
        }
    }
}
