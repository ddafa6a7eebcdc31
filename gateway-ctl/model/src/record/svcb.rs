//! Parameters of HTTPS and SVCB records (RFC 9460), in the order of their keys.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::decimal::number;
use super::quoted;

/// Names of the keys with a number of their own.
const KEYS: [(&str, u16); 7] = [
    ("mandatory", 0),
    ("alpn", 1),
    ("no-default-alpn", 2),
    ("port", 3),
    ("ipv4hint", 4),
    ("ech", 5),
    ("ipv6hint", 6),
];

/// Parameters by key, each value in its one spelling; empty for keys without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceParams(BTreeMap<u16, String>);

impl ServiceParams {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: u16) -> Option<&str> {
        self.0.get(&key).map(String::as_str)
    }

    /// In the order of the keys, which is that of the wire.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Keys that a client has to know, ascending.
    pub fn mandatory(&self) -> Vec<u16> {
        let names = self.get(0).unwrap_or_default().split(',');
        let mut keys: Vec<u16> = names.filter_map(|name| key(name).ok()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    pub(super) fn parse(text: &str) -> Result<ServiceParams, String> {
        let mut params = BTreeMap::new();
        for word in words(text) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let key = key(name)?;
            let value = quoted::unquote(value)?;
            if params.insert(key, checked(key, name, &value)?).is_some() {
                return Err(format!("The parameter {name} is given twice."));
            }
        }
        let mandatory = params.get(&0).map(String::as_str).unwrap_or_default();
        for name in mandatory.split(',').filter(|name| !name.is_empty()) {
            if !key(name).is_ok_and(|key| params.contains_key(&key)) {
                return Err(format!("The parameter {name} is mandatory and not given."));
            }
        }
        if params.contains_key(&2) && !params.contains_key(&1) {
            return Err("no-default-alpn needs alpn.".to_owned());
        }
        Ok(ServiceParams(params))
    }
}

/// Splits at blanks outside of quotes.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut quoted, mut escaped) = (Vec::new(), None, false, false);
    for (at, letter) in text.char_indices() {
        if letter.is_whitespace() && !quoted {
            words.extend(start.take().map(|start| &text[start..at]));
        } else {
            start.get_or_insert(at);
            quoted ^= letter == '"' && !escaped;
        }
        escaped = letter == '\\' && !escaped;
    }
    words.extend(start.map(|start| &text[start..]));
    words
}

fn key(name: &str) -> Result<u16, String> {
    if let Some((_, key)) = KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Ok(*key);
    }
    let number = name.strip_prefix("key").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    match number.and_then(|digits| digits.parse::<u16>().ok()) {
        // A known key has one canonical form: its name.
        Some(number) if number > 6 && number != u16::MAX => Ok(number),
        _ => {
            let known: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
            Err(format!(
                "There is no parameter {name:?}; known are {} and key7 to key65534.",
                known.join(", ")
            ))
        }
    }
}

fn checked(key: u16, name: &str, value: &str) -> Result<String, String> {
    let list = || value.split(',').map(str::trim);
    match key {
        2 if value.is_empty() => Ok(String::new()),
        2 => Err("no-default-alpn has no value.".to_owned()),
        _ if value.is_empty() && key <= 6 => Err(format!("The parameter {name} needs a value.")),
        0 => {
            let names: Vec<String> = list().map(str::to_ascii_lowercase).collect();
            Ok(names.join(","))
        }
        1 => {
            let fine = |id: &str| {
                !id.is_empty()
                    && id.len() <= 255
                    && id.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b','))
            };
            if list().all(fine) {
                Ok(list().collect::<Vec<_>>().join(","))
            } else {
                Err("alpn is a list such as h2,h3.".to_owned())
            }
        }
        3 => number::<u16>(value)
            .map(|port| port.to_string())
            .ok_or_else(|| "port is a number from 0 to 65535.".to_owned()),
        4 => addresses::<Ipv4Addr>(list()).ok_or_else(|| "ipv4hint is a list of IPv4 addresses.".to_owned()),
        6 => addresses::<Ipv6Addr>(list()).ok_or_else(|| "ipv6hint is a list of IPv6 addresses.".to_owned()),
        5 => match STANDARD.decode(value) {
            Ok(bytes) if !bytes.is_empty() => Ok(STANDARD.encode(bytes)),
            _ => Err("ech is a list of configurations in base64.".to_owned()),
        },
        _ if value.len() > 1024 => Err(format!("The value of {name} has at most 1024 bytes.")),
        _ => Ok(value.to_owned()),
    }
}

fn addresses<A: std::str::FromStr + fmt::Display>(
    list: impl Iterator<Item = impl AsRef<str>>,
) -> Option<String> {
    let parsed: Option<Vec<String>> =
        list.map(|text| Some(text.as_ref().parse::<A>().ok()?.to_string())).collect();
    Some(parsed?.join(","))
}

impl fmt::Display for ServiceParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            match KEYS.iter().find(|(_, known)| known == key) {
                Some((name, 2)) => f.write_str(name)?,
                Some((name, 1)) => write!(f, "{name}=\"{value}\"")?,
                Some((name, _)) => write!(f, "{name}={value}")?,
                None if value.is_empty() => write!(f, "key{key}")?,
                None => write!(f, "key{key}={}", quoted::quote(value.as_bytes()))?,
            }
        }
        Ok(())
    }
}
