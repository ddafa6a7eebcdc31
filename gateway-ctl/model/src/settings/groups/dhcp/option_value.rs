//! Values of DHCP options: their text in the configuration, and their bytes on the wire.

use std::net::Ipv4Addr;

use crate::domain::DomainName;

/// Largest value of one option instance (RFC 2132, section 2). Longer values are split (RFC 3396).
const MAX_VALUE_BYTES: usize = 1024;

/// Form of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// IPv4 addresses, separated by commas or spaces.
    Addresses,
    Number {
        bytes: usize,
    },
    Flag,
    Text,
    /// Domains of a search list (RFC 3397).
    Domains,
    /// Routes, each a network and its router (RFC 3442).
    Routes,
    /// Text, or bytes after `0x`.
    Any,
}

/// Returns the form of the options that RFC 2132 and later standards define.
fn form(code: u8) -> Form {
    match code {
        3..=11 | 16 | 28 | 32 | 41 | 42 | 44 | 45 | 48 | 49 | 65 | 68..=76 | 89 | 150 => Form::Addresses,
        13 | 22 | 26 => Form::Number { bytes: 2 },
        23 | 37 | 46 => Form::Number { bytes: 1 },
        2 | 24 | 35 | 38 | 58 | 59 | 108 => Form::Number { bytes: 4 },
        19 | 20 | 27 | 29..=31 | 34 | 36 | 39 => Form::Flag,
        14 | 17 | 18 | 40 | 47 | 64 | 66 | 67 | 100 | 101 | 114 => Form::Text,
        119 => Form::Domains,
        121 => Form::Routes,
        _ => Form::Any,
    }
}

/// Returns the bytes of an option's value, or a sentence about the expected text.
pub(super) fn wire(code: u8, text: &str) -> Result<Vec<u8>, &'static str> {
    let text = text.trim();
    let bytes = match form(code) {
        Form::Addresses => addresses(text),
        Form::Number { bytes } => number(text, bytes),
        Form::Flag => flag(text),
        Form::Text => Ok(text.as_bytes().to_vec()),
        Form::Domains => domains(text),
        Form::Routes => routes(text),
        Form::Any => match text.strip_prefix("0x") {
            Some(digits) => hex(digits),
            None => Ok(text.as_bytes().to_vec()),
        },
    }?;
    match bytes.len() {
        0 => Err("Expected a value."),
        1..=MAX_VALUE_BYTES => Ok(bytes),
        _ => Err("Expected at most 1024 bytes."),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|word| !word.is_empty())
}

fn addresses(text: &str) -> Result<Vec<u8>, &'static str> {
    let address =
        |word: &str| word.parse::<Ipv4Addr>().map_err(|_| "Expected IPv4 addresses, separated by commas.");
    Ok(words(text).map(address).collect::<Result<Vec<_>, _>>()?.iter().flat_map(Ipv4Addr::octets).collect())
}

fn number(text: &str, bytes: usize) -> Result<Vec<u8>, &'static str> {
    let value: u32 = text.parse().map_err(|_| "Expected a number.")?;
    let wire = value.to_be_bytes();
    let (above, below) = wire.split_at(wire.len() - bytes);
    if above.iter().any(|byte| *byte != 0) {
        return Err(if bytes == 1 {
            "Expected a number up to 255."
        } else {
            "Expected a number up to 65535."
        });
    }
    Ok(below.to_vec())
}

fn flag(text: &str) -> Result<Vec<u8>, &'static str> {
    match text {
        "true" | "1" => Ok(vec![1]),
        "false" | "0" => Ok(vec![0]),
        _ => Err("Expected true or false."),
    }
}

fn domains(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut wire = Vec::new();
    for word in words(text) {
        let domain = DomainName::parse(word).map_err(|_| "Expected domains, separated by commas.")?;
        for label in domain.as_str().split('.') {
            wire.push(u8::try_from(label.len()).map_err(|_| "A label of a domain has at most 63 letters.")?);
            wire.extend(label.as_bytes());
        }
        wire.push(0);
    }
    Ok(wire)
}

fn routes(text: &str) -> Result<Vec<u8>, &'static str> {
    const EXPECTED: &str =
        "Expected networks with their routers, such as 10.0.0.0/8 192.168.1.2, 0.0.0.0/0 192.168.1.1.";
    let mut wire = Vec::new();
    let mut words = words(text);
    while let Some(network) = words.next() {
        let network: ipnet::Ipv4Net = network.parse().map_err(|_| EXPECTED)?;
        let router: Ipv4Addr = words.next().and_then(|word| word.parse().ok()).ok_or(EXPECTED)?;
        let significant = usize::from(network.prefix_len()).div_ceil(8);
        wire.push(network.prefix_len());
        wire.extend(&network.network().octets()[..significant]);
        wire.extend(router.octets());
    }
    Ok(wire)
}

fn hex(digits: &str) -> Result<Vec<u8>, &'static str> {
    const EXPECTED: &str = "Expected hexadecimal digits in pairs after 0x.";
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b':').collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    digits.chunks(2).map(|two| pair(two).ok_or(EXPECTED)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_form_of_their_option() {
        let cases: &[(u8, &str, &[u8])] = &[
            (42, "192.168.1.1, 192.168.1.2", &[192, 168, 1, 1, 192, 168, 1, 2]),
            (26, "1492", &[5, 212]),
            (23, "64", &[64]),
            (108, "1800", &[0, 0, 7, 8]),
            (19, "true", &[1]),
            (114, "https://portal.example/", b"https://portal.example/"),
            (119, "lan, home.arpa", b"\x03lan\x00\x04home\x04arpa\x00"),
            (121, "10.0.0.0/8 192.168.1.2", &[8, 10, 192, 168, 1, 2]),
            (
                121,
                "0.0.0.0/0 192.168.1.1, 172.16.4.0/22 192.168.1.3",
                &[0, 192, 168, 1, 1, 22, 172, 16, 4, 192, 168, 1, 3],
            ),
            (224, "0x01:aB", &[1, 0xab]),
            (224, "any text", b"any text"),
        ];
        for (code, text, expected) in cases {
            assert_eq!(wire(*code, text).as_deref(), Ok(*expected), "{code} {text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let cases = [
            (42, "time.example"),
            (26, "65536"),
            (23, "256"),
            (108, "-1"),
            (19, "yes"),
            (114, " "),
            (119, "a..b"),
            (121, "10.0.0.0/8"),
            (121, "10.0.0.0/33 192.168.1.1"),
            (224, "0x123"),
            (224, "0xzz"),
        ];
        for (code, text) in cases {
            assert!(wire(code, text).is_err(), "{code} {text}");
        }
    }
}
