//! Hosts of the network by name, and the names of their addresses.

use std::net::IpAddr;

use crate::dns::name::{Name, NameRef};

/// Host: a device, a lease, or the gateway itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name that it sends or that a user gave it; converted to a label if it is none.
    pub name: String,
    pub addresses: Vec<IpAddr>,
}

/// Converts a name given by a user to a label: "Anna's TV" becomes `annas-tv`. Returns none if nothing is left.
pub fn label(text: &str) -> Option<String> {
    let mut label = String::new();
    for letter in text.trim().chars() {
        match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => label.push(letter),
            ' ' | '-' | '_' | '.' | '/' if !label.is_empty() && !label.ends_with('-') => label.push('-'),
            _ => {}
        }
    }
    label.truncate(63);
    let label = label.trim_end_matches('-');
    (!label.is_empty()).then(|| label.to_owned())
}

/// Returns the owner of the PTR record of an address (RFC 1035, section 3.5, and RFC 3596, section 2.5).
pub fn pointer(address: IpAddr) -> Name {
    let text = match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let nibbles = address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa"
        }
    };
    from_text(&text).expect("at most 34 short labels")
}

/// Parses a name as stored: lower case, `*` included.
pub(super) fn from_text(text: &str) -> Option<Name> {
    let mut wire = Vec::with_capacity(text.len() + 2);
    for label in text.split('.').filter(|label| !label.is_empty()) {
        wire.push(u8::try_from(label.len()).ok()?);
        wire.extend_from_slice(label.as_bytes());
    }
    wire.push(0);
    NameRef::new(&wire).map(NameRef::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_become_labels() {
        let cases = [
            ("nas", Some("nas")),
            ("Anna's TV ", Some("annas-tv")),
            ("a.b/c__d", Some("a-b-c-d")),
            ("--", None),
            ("日本", None),
            ("x (2)", Some("x-2")),
        ];
        for (text, want) in cases {
            assert_eq!(label(text).as_deref(), want, "{text}");
        }
        assert_eq!(label(&"a".repeat(100)).map(|label| label.len()), Some(63));
    }

    #[test]
    fn addresses_are_written_backwards() {
        let pointer = |text: &str| pointer(text.parse().expect("an address")).to_string();
        assert_eq!(pointer("192.0.2.1"), "1.2.0.192.in-addr.arpa");
        assert_eq!(
            pointer("4321:0:1:2:3:4:567:89ab"),
            "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa"
        );
    }
}
