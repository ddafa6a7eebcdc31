//! Resource records in text form: types, and values as zone files write them.
//!
//! A value has no owner, class or TTL. The priority of MX, SRV, HTTPS and SVCB stands in a field of its own; a value
//! that begins with it is accepted.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::domain::DomainName;
use crate::validated::text_enum;

mod decimal;
mod quoted;
mod svcb;

use decimal::number;
pub use svcb::ServiceParams;

text_enum! {
    /// Types of records that a zone of this gateway can have.
    #[derive(Default)]
    pub enum RecordType {
        #[default]
        A = "A",
        Aaaa = "AAAA",
        Cname = "CNAME",
        Mx = "MX",
        Txt = "TXT",
        Srv = "SRV",
        Ptr = "PTR",
        Ns = "NS",
        Caa = "CAA",
        Https = "HTTPS",
        Svcb = "SVCB",
        /// Key digest of a delegated zone (RFC 4034, section 5).
        Ds = "DS",
    }
}

impl RecordType {
    /// Reports whether the value has a priority.
    pub const fn has_priority(self) -> bool {
        matches!(self, RecordType::Mx | RecordType::Srv | RecordType::Https | RecordType::Svcb)
    }

    /// Returns the priority of a record without one. A service binding of priority 0 would be an alias.
    pub const fn default_priority(self) -> u16 {
        match self {
            RecordType::Https | RecordType::Svcb => 1,
            _ => 10,
        }
    }
}

/// Longest text of a TXT record that fits a message with its header.
const MAX_TXT: usize = 4096;

/// Data of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordData {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    /// CNAME, PTR and NS.
    Name(DomainName),
    /// Target; the root for "no mail here" (RFC 7505).
    Mx(DomainName),
    /// Character strings. One of more than 255 bytes is sent in pieces.
    Txt(Vec<Vec<u8>>),
    Srv {
        weight: u16,
        port: u16,
        target: DomainName,
    },
    Caa {
        flags: u8,
        tag: String,
        value: String,
    },
    /// HTTPS and SVCB.
    Service {
        target: DomainName,
        params: ServiceParams,
    },
    Ds {
        tag: u16,
        algorithm: u8,
        digest_type: u8,
        digest: Vec<u8>,
    },
}

/// A value with the priority before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub priority: Option<u16>,
    pub data: RecordData,
}

/// Parses a value, or returns the expected form.
pub fn parse(record_type: RecordType, text: &str) -> Result<Parsed, String> {
    let alone = |data| Parsed { priority: None, data };
    let text = if record_type == RecordType::Txt { text } else { text.trim() };
    match record_type {
        RecordType::A => match text.parse() {
            Ok(address) => Ok(alone(RecordData::A(address))),
            Err(_) => Err("Expected an IPv4 address such as 192.0.2.1.".to_owned()),
        },
        RecordType::Aaaa => match text.parse() {
            Ok(address) => Ok(alone(RecordData::Aaaa(address))),
            Err(_) => Err("Expected an IPv6 address such as 2001:db8::1.".to_owned()),
        },
        RecordType::Cname | RecordType::Ptr | RecordType::Ns => {
            DomainName::parse(text).map(|name| alone(RecordData::Name(name))).map_err(sentence)
        }
        RecordType::Mx => mail(text),
        RecordType::Txt => txt(text).map(|text| alone(RecordData::Txt(text))),
        RecordType::Srv => service_location(text),
        RecordType::Caa => authorisation(text).map(alone),
        RecordType::Https | RecordType::Svcb => service_binding(text),
        RecordType::Ds => signer(text).map(alone),
    }
}

fn sentence(error: impl fmt::Display) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// The number before the rest, if the first word is one.
fn leading_number(text: &str) -> (Option<u16>, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match number(first) {
        Some(number) => (Some(number), rest.trim_start()),
        None => (None, text),
    }
}

fn mail(text: &str) -> Result<Parsed, String> {
    let (priority, rest) = leading_number(text);
    let target = DomainName::parse_or_root(rest).map_err(sentence)?;
    Ok(Parsed { priority, data: RecordData::Mx(target) })
}

fn txt(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let strings = quoted::strings(text)?;
    // Each string has a byte for its length.
    if strings.iter().map(|string| string.len() + 1).sum::<usize>() > MAX_TXT + 1 {
        return Err(format!("At most {MAX_TXT} bytes."));
    }
    Ok(strings)
}

fn service_location(text: &str) -> Result<Parsed, String> {
    const WANT: &str = "Expected weight, port and target, such as 5 443 server.example.com.";
    let words: Vec<&str> = text.split_whitespace().collect();
    let (priority, rest) = match words.as_slice() {
        [priority, rest @ ..] if rest.len() == 3 => (Some(number(priority).ok_or(WANT)?), rest),
        rest => (None, rest),
    };
    let [weight, port, target] = rest else { return Err(WANT.to_owned()) };
    let (Some(weight), Some(port)) = (number(weight), number(port)) else { return Err(WANT.to_owned()) };
    let target = DomainName::parse_or_root(target).map_err(sentence)?;
    Ok(Parsed { priority, data: RecordData::Srv { weight, port, target } })
}

fn authorisation(text: &str) -> Result<RecordData, String> {
    const WANT: &str = "Expected flags, tag and value, such as 0 issue \"ca.example.net\".";
    let mut parts = text.splitn(3, char::is_whitespace);
    let (flags, tag, value) = (parts.next(), parts.next(), parts.next());
    let (Some(flags), Some(tag), Some(value)) = (flags.and_then(number), tag, value) else {
        return Err(WANT.to_owned());
    };
    let tag = tag.to_ascii_lowercase();
    if tag.is_empty() || tag.len() > 15 || !tag.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err("The tag has 1 to 15 letters and digits, such as issue, issuewild or iodef.".to_owned());
    }
    let value = quoted::unquote(value.trim())?;
    if value.len() > 1024 {
        return Err("The value has at most 1024 bytes.".to_owned());
    }
    Ok(RecordData::Caa { flags, tag, value })
}

fn service_binding(text: &str) -> Result<Parsed, String> {
    let (priority, rest) = leading_number(text);
    let (target, params) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let target = DomainName::parse_or_root(target).map_err(sentence)?;
    let params = ServiceParams::parse(params)?;
    if priority == Some(0) && !params.is_empty() {
        return Err("With the priority 0 it is an alias, which has no parameters.".to_owned());
    }
    Ok(Parsed { priority, data: RecordData::Service { target, params } })
}

/// RFC 4034, section 5.3; the digest may be written in pieces.
fn signer(text: &str) -> Result<RecordData, String> {
    const WANT: &str =
        "Expected key tag, algorithm, digest type and digest, such as 60485 13 2 and 64 hexadecimal digits.";
    let mut words = text.split_whitespace();
    let (tag, algorithm, digest_type) = (words.next(), words.next(), words.next());
    let (Some(tag), Some(algorithm), Some(digest_type)) =
        (tag.and_then(number), algorithm.and_then(number), digest_type.and_then(number))
    else {
        return Err(WANT.to_owned());
    };
    let digits: String = words.collect();
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|b| b.is_ascii_hexdigit()));
        pair.filter(|pair| pair.len() == 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    let digest: Vec<u8> = pairs.collect::<Option<_>>().ok_or(WANT)?;
    // SHA-1, SHA-256, GOST, SHA-384; others may follow.
    let length = match digest_type {
        1 => 20..=20,
        2 | 3 => 32..=32,
        4 => 48..=48,
        _ => 1..=255,
    };
    if !length.contains(&digest.len()) {
        return Err(format!("A digest of type {digest_type} has {} bytes.", length.start()));
    }
    Ok(RecordData::Ds { tag, algorithm, digest_type, digest })
}

/// The one spelling, without the priority.
impl fmt::Display for RecordData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordData::A(address) => address.fmt(f),
            RecordData::Aaaa(address) => address.fmt(f),
            RecordData::Name(name) | RecordData::Mx(name) => name.fmt(f),
            RecordData::Txt(text) => f.write_str(&quoted::quote_if_needed(text)),
            RecordData::Srv { weight, port, target } => write!(f, "{weight} {port} {target}"),
            RecordData::Caa { flags, tag, value } => {
                write!(f, "{flags} {tag} {}", quoted::quote(value.as_bytes()))
            }
            RecordData::Service { target, params } if params.is_empty() => target.fmt(f),
            RecordData::Service { target, params } => write!(f, "{target} {params}"),
            RecordData::Ds { tag, algorithm, digest_type, digest } => {
                write!(f, "{tag} {algorithm} {digest_type} ")?;
                digest.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(record_type: RecordType, text: &str) -> Result<(Option<u16>, String), String> {
        parse(record_type, text).map(|parsed| (parsed.priority, parsed.data.to_string()))
    }

    #[test]
    fn values_of_every_type_have_one_spelling() {
        use RecordType::*;
        let cases = [
            (A, " 192.0.2.1 ", None, "192.0.2.1"),
            (Aaaa, "2001:DB8:0::1", None, "2001:db8::1"),
            (Cname, "WWW.Example.com.", None, "www.example.com"),
            (Ptr, "nas.home.lan", None, "nas.home.lan"),
            (Ns, "ns1.bücher.example", None, "ns1.xn--bcher-kva.example"),
            (Mx, "mail.example.com", None, "mail.example.com"),
            (Mx, "20 mail.example.com.", Some(20), "mail.example.com"),
            (Mx, "0 .", Some(0), "."),
            (Txt, "v=spf1 -all", None, "v=spf1 -all"),
            (Txt, "\"v=spf1 \" \"-all\"", None, "\"v=spf1 \" \"-all\""),
            (Txt, "\"txtvers=1\"\"note=a \\\"b\\\"\" \"\"", None, "\"txtvers=1\" \"note=a \\\"b\\\"\" \"\""),
            (Txt, "\"one\"", None, "one"),
            (Txt, "\"b\\195\\188cher\"", None, "bücher"),
            (Txt, "\"\\255\\000\\007x\"", None, "\"\\255\\000\\007x\""),
            (Txt, "say \"hi\"", None, "say \"hi\""),
            (Txt, "\"\\\"quoted\\\"\"", None, "\"\\\"quoted\\\"\""),
            (Txt, "", None, ""),
            (Srv, "5 443 server.example.com.", None, "5 443 server.example.com"),
            (Srv, "10 5 443 server.example.com", Some(10), "5 443 server.example.com"),
            (Srv, "0 0 0 .", Some(0), "0 0 ."),
            (Caa, "0 Issue letsencrypt.org", None, "0 issue \"letsencrypt.org\""),
            (Caa, "128 iodef \"mailto:a@b.c\"", None, "128 iodef \"mailto:a@b.c\""),
            (Https, "1 . alpn=\"h2,h3\" port=8443", Some(1), ". alpn=\"h2,h3\" port=8443"),
            (Https, "0 cdn.example.net", Some(0), "cdn.example.net"),
            (
                Ds,
                "60485 5 1 2bb183af5f22588179a53b0a 98631fad1a292118",
                None,
                "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118",
            ),
            (
                Svcb,
                "svc.example.net ipv4hint=192.0.2.1,192.0.2.2",
                None,
                "svc.example.net ipv4hint=192.0.2.1,192.0.2.2",
            ),
        ];
        for (record_type, text, priority, want) in cases {
            assert_eq!(shown(record_type, text), Ok((priority, want.to_owned())), "{record_type} {text}");
        }
    }

    #[test]
    fn values_of_another_type_are_refused() {
        use RecordType::*;
        let cases = [
            (A, ""),
            (A, "2001:db8::1"),
            (A, "192.0.2"),
            (A, "192.0.2.256"),
            (Aaaa, "192.0.2.1"),
            (Aaaa, "::g"),
            (Cname, "192.0.2.1"),
            (Cname, "."),
            (Cname, "a b"),
            (Ns, "a..b"),
            (Mx, "10"),
            (Mx, "mail 10"),
            (Mx, "70000 mail.example.com"),
            (Mx, "-1 mail.example.com"),
            (Srv, "443 server"),
            (Srv, "x 5 443 a.b"),
            (Srv, "5 70000 a.b"),
            (Srv, "1 2 3 4 a.b"),
            (Caa, "issue ca"),
            (Caa, "256 issue ca"),
            (Caa, "0 is-sue ca"),
            (Caa, "0 issue"),
            (Txt, "\"open"),
            (Txt, "\"a\" b"),
            (Txt, "\"\\256\""),
            (Caa, "0 issue \"\\195\""),
            (Ds, "60485 5 1"),
            (Ds, "60485 5 1 2BB1"),
            (Ds, "60485 5 9 2B1"),
            (Ds, "60485 5 9 +1"),
            (Ds, "70000 5 9 2B"),
            (Https, "1"),
            (Https, "0 . port=1"),
            (Https, "1 . port=x"),
            (Https, "1 . alpn"),
            (Svcb, "1 . port=1 port=2"),
            (Svcb, "1 . nonsense=1"),
        ];
        for (record_type, text) in cases {
            assert!(shown(record_type, text).is_err(), "{record_type} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_has_one_spelling(
            kind in 0usize..RecordType::ALL.len(),
            text in "\\PC{0,60}|[0-9a-f:. ]{0,30}|[0-9]{1,3} [a-z.]{1,12}( [a-z0-9]{1,9}=[0-9a-z\",.:/+=\\\\]{0,12}){0,3}|(\"[^\"]{0,9}\" ?){0,3}|[0-9]{1,3} [a-z]{1,9} \\PC{0,9}|(\"(\\\\[0-9]{3}|[a-zü ]|\\\\[\"x]){0,6}\" ?){1,3}"
        ) {
            let record_type = RecordType::ALL[kind];
            if let Ok(parsed) = parse(record_type, &text) {
                let again = parse(record_type, &parsed.data.to_string());
                prop_assert_eq!(again, Ok(Parsed { priority: None, data: parsed.data }));
            }
        }
    }
}
