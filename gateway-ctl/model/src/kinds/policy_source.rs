//! Sources of a policy: `source_type` and `source_value` as typed values.

use std::fmt;

use ipnet::IpNet;

use crate::capability::refusal;
use crate::domain::DomainName;
use crate::id::{Id, IfName};
use crate::validated::{Cidr, is_host_name, parse_port, text_enum};

/// Most elements of a comma list.
pub const MAX_SOURCES: usize = 256;

text_enum! {
    /// Source type of a policy.
    #[derive(Default)]
    pub enum SourceType {
        #[default]
        All = "all",
        Interface = "interface",
        Vlan = "vlan",
        Subnet = "subnet",
        Device = "device",
        DeviceGroup = "device_group",
        Destination = "destination",
        Domain = "domain",
    }
}

/// One element of a `source_value`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    All,
    Interface(IfName),
    Vlan(u16),
    /// Without host bits.
    Subnet(IpNet),
    Device(Id),
    DeviceGroup(Id),
    /// Without host bits; with a port, TCP and UDP to that port only.
    Destination {
        net: IpNet,
        port: Option<u16>,
    },
    Domain(DomainPattern),
}

/// Pattern of the domains that a policy matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainPattern {
    /// `example.com`: the domain and all below it.
    Suffix(String),
    /// `=example.com`: this name only.
    Exact(String),
    /// `*.example.com`: all below it, not the domain itself.
    Below(String),
    /// `~expression`: names that match a regular expression.
    Regex(String),
}

/// The canonical spelling.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::All => Ok(()),
            Source::Interface(name) => name.fmt(f),
            Source::Vlan(id) => id.fmt(f),
            Source::Subnet(net) | Source::Destination { net, port: None } => net.fmt(f),
            Source::Device(id) | Source::DeviceGroup(id) => id.fmt(f),
            Source::Destination { net: net @ IpNet::V4(_), port: Some(port) } => write!(f, "{net}:{port}"),
            Source::Destination { net: net @ IpNet::V6(_), port: Some(port) } => write!(f, "[{net}]:{port}"),
            Source::Domain(DomainPattern::Suffix(name)) => name.fmt(f),
            Source::Domain(DomainPattern::Exact(name)) => write!(f, "={name}"),
            Source::Domain(DomainPattern::Below(name)) => write!(f, "*.{name}"),
            Source::Domain(DomainPattern::Regex(regex)) => write!(f, "~{regex}"),
        }
    }
}

/// Returns the elements of a `source_value`, or one sentence per invalid element.
pub fn parse(source_type: SourceType, value: &str) -> Result<Vec<Source>, Vec<String>> {
    let value = value.trim();
    if source_type == SourceType::All {
        return if value.is_empty() {
            Ok(vec![Source::All])
        } else {
            Err(vec!["Must be empty: the source type all takes no value.".to_owned()])
        };
    }
    if value.is_empty() {
        return Err(vec![format!("Must name {}.", wanted(source_type))]);
    }
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for text in elements(source_type, value) {
        match parse_one(source_type, text) {
            Ok(source) if sources.contains(&source) => errors.push(format!("{text:?} is given twice.")),
            Ok(source) => sources.push(source),
            Err(message) => errors.push(message),
        }
        if sources.len() > MAX_SOURCES {
            errors.push(format!("At most {MAX_SOURCES} elements."));
            break;
        }
    }
    if errors.is_empty() { Ok(sources) } else { Err(errors) }
}

/// The value with the host bits of its networks cleared; nothing if there are none.
pub fn without_host_bits(source_type: SourceType, value: &str) -> Option<String> {
    if !matches!(source_type, SourceType::Subnet | SourceType::Destination) {
        return None;
    }
    let mut changed = false;
    let cleared = value.split(',').map(|text| {
        let text = text.trim();
        // The network of an element: before the port, and without the brackets.
        let inner = match text.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None if text.matches(':').count() == 1 => text.split(':').next().unwrap_or_default(),
            None => text,
        };
        match inner.parse::<Cidr>() {
            Ok(cidr) if cidr.net().trunc() != cidr.net() => {
                changed = true;
                text.replacen(inner, &cidr.net().trunc().to_string(), 1)
            }
            _ => text.to_owned(),
        }
    });
    let cleared = cleared.collect::<Vec<_>>().join(",");
    changed.then_some(cleared)
}

/// Returns the domains of a value with international names as A-labels. What is no domain stays.
pub fn with_a_labels(value: &str) -> String {
    let converted = elements(SourceType::Domain, value).into_iter().map(|text| {
        let prefix = ["=", "*."].into_iter().find(|prefix| text.starts_with(prefix)).unwrap_or_default();
        match DomainName::parse(&text[prefix.len()..]) {
            Ok(name) if !text.is_ascii() && !text.starts_with('~') => format!("{prefix}{name}"),
            _ => text.to_owned(),
        }
    });
    converted.collect::<Vec<_>>().join(",")
}

/// The elements between commas. A regular expression takes the rest, commas included.
fn elements(source_type: SourceType, value: &str) -> Vec<&str> {
    let mut elements = Vec::new();
    let mut rest = Some(value);
    while let Some(text) = rest {
        if source_type == SourceType::Domain && text.trim_start().starts_with('~') {
            elements.push(text.trim());
            break;
        }
        match text.split_once(',') {
            Some((element, more)) => {
                elements.push(element.trim());
                rest = Some(more);
            }
            None => {
                elements.push(text.trim());
                rest = None;
            }
        }
    }
    elements
}

fn parse_one(source_type: SourceType, text: &str) -> Result<Source, String> {
    let source = match source_type {
        SourceType::All => None,
        SourceType::Interface => text.parse().ok().map(Source::Interface),
        SourceType::Vlan => text.parse().ok().filter(|id| (1..=4094).contains(id)).map(Source::Vlan),
        SourceType::Subnet => text.parse::<Cidr>().ok().map(|cidr| Source::Subnet(cidr.net().trunc())),
        SourceType::Device => text.parse().ok().map(Source::Device),
        SourceType::DeviceGroup => text.parse().ok().map(Source::DeviceGroup),
        SourceType::Destination => destination(text),
        SourceType::Domain => domain(text)?.map(Source::Domain),
    };
    source.ok_or_else(|| format!("{text:?} is not {}.", wanted(source_type)))
}

fn destination(text: &str) -> Option<Source> {
    if let Ok(cidr) = text.parse::<Cidr>() {
        return Some(Source::Destination { net: cidr.net().trunc(), port: None });
    }
    let (host, port) = text.rsplit_once(':')?;
    let port = parse_port(port)?;
    let net = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?.parse::<Cidr>().ok()?.net(),
        None => host.parse::<Cidr>().ok()?.net(),
    };
    // An IPv6 address without brackets swallows its last group as a port: ambiguous, so refused.
    if matches!(net, IpNet::V6(_)) != host.starts_with('[') {
        return None;
    }
    Some(Source::Destination { net: net.trunc(), port: Some(port) })
}

/// A form of the contract that is refused.
const DOMAIN_LIST: &str = "A domain list";

/// Reports whether a message of [`parse`] refuses a value that the contract has.
pub fn is_refusal(message: &str) -> bool {
    message == refusal(DOMAIN_LIST)
}

fn domain(text: &str) -> Result<Option<DomainPattern>, String> {
    if text.starts_with("list:") {
        return Err(refusal(DOMAIN_LIST));
    }
    if let Some(regex) = text.strip_prefix('~') {
        if regex.is_empty() || regex.len() > 512 || regex.chars().any(char::is_control) {
            return Ok(None);
        }
        // One that the compiler cannot build would make a policy that matches nothing.
        return match regex::Regex::new(regex) {
            Ok(_) => Ok(Some(DomainPattern::Regex(regex.to_owned()))),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(format!("{text:?} is not a regular expression: {reason}."))
            }
        };
    }
    let name = |text: &str| is_host_name(text).then(|| text.trim_end_matches('.').to_ascii_lowercase());
    Ok(if let Some(rest) = text.strip_prefix('=') {
        name(rest).map(DomainPattern::Exact)
    } else if let Some(rest) = text.strip_prefix("*.") {
        name(rest).map(DomainPattern::Below)
    } else {
        name(text).map(DomainPattern::Suffix)
    })
}

fn wanted(source_type: SourceType) -> &'static str {
    match source_type {
        SourceType::All => "nothing",
        SourceType::Interface => "an interface name of at most 15 characters",
        SourceType::Vlan => "a VLAN id from 1 to 4094",
        SourceType::Subnet => "an address or network such as 192.168.1.0/24",
        SourceType::Device => "the id of a device (a UUID)",
        SourceType::DeviceGroup => "the id of a device group (a UUID)",
        SourceType::Destination => {
            "a network such as 203.0.113.0/24, with a port such as 203.0.113.7:443 or [2001:db8::7]:443 (for names use the source type domain)"
        }
        SourceType::Domain => "a domain: example.com, =example.com, *.example.com or ~expression",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(source_type: SourceType, text: &str) -> Option<String> {
        parse(source_type, text)
            .ok()
            .map(|sources| sources.iter().map(Source::to_string).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn destinations_are_networks_with_or_without_port() {
        let cases = [
            ("203.0.113.9", Some("203.0.113.9/32")),
            ("203.0.113.9/24", Some("203.0.113.0/24")),
            ("203.0.113.7:443", Some("203.0.113.7/32:443")),
            ("203.0.113.0/24:53", Some("203.0.113.0/24:53")),
            ("0.0.0.0/0:25", Some("0.0.0.0/0:25")),
            ("2001:db8::7", Some("2001:db8::7/128")),
            ("[2001:db8::7]:443", Some("[2001:db8::7/128]:443")),
            ("[2001:db8::/32]:443", Some("[2001:db8::/32]:443")),
            ("2001:db8::/32:443", None),
            ("203.0.113.7:0", None),
            ("203.0.113.7:99999", None),
            ("[203.0.113.7]:443", None),
            ("example.com:443", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(one(SourceType::Destination, text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn host_bits_are_cleared() {
        let cases = [
            (SourceType::Subnet, "10.0.0.5/8, 192.168.1.0/24", Some("10.0.0.0/8,192.168.1.0/24")),
            (SourceType::Subnet, "fd00::5/64", Some("fd00::/64")),
            (SourceType::Destination, "203.0.113.7/24:443", Some("203.0.113.0/24:443")),
            (SourceType::Destination, "[2001:db8::7/32]:443", Some("[2001:db8::/32]:443")),
            (SourceType::Destination, "203.0.113.7:443", None),
            (SourceType::Subnet, "10.0.0.0/8", None),
            (SourceType::Vlan, "10", None),
        ];
        for (source_type, value, want) in cases {
            assert_eq!(without_host_bits(source_type, value).as_deref(), want, "{value}");
        }
    }

    #[test]
    fn comma_lists_hold_several_elements_and_none_twice() {
        assert_eq!(one(SourceType::Vlan, "10, 20 ,30").as_deref(), Some("10,20,30"));
        assert_eq!(parse(SourceType::Vlan, "10,x,4095,0,10").unwrap_err().len(), 4);
        assert!(parse(SourceType::Vlan, "10,").is_err());
        assert!(parse(SourceType::Subnet, "10.0.0.1/8,10.0.0.2/8").is_err());
    }

    #[test]
    fn domains_have_four_forms_and_an_expression_may_have_commas() {
        assert_eq!(
            one(SourceType::Domain, "Example.com, =a.b, *.c.d, ~^x{1,2}$").as_deref(),
            Some("example.com,=a.b,*.c.d,~^x{1,2}$")
        );
        assert!(is_refusal(&parse(SourceType::Domain, "list:ads").unwrap_err()[0]));
        for text in ["~", "=", "*.", "a b", "10.0.0.1", "*", "~[", "~a{2,1}", "~(?=a)"] {
            assert!(parse(SourceType::Domain, text).is_err(), "{text}");
        }
    }

    #[test]
    fn international_names_become_a_labels() {
        let value = with_a_labels("Bücher.example, =straße.example,*.münchen.example, plain.example, ~^bü$");
        let wanted =
            "xn--bcher-kva.example,=xn--strae-oqa.example,*.xn--mnchen-3ya.example,plain.example,~^bü$";
        assert_eq!(value, wanted);
        assert!(parse(SourceType::Domain, &value).is_ok());
    }

    #[test]
    fn all_takes_no_value_and_every_other_type_needs_one() {
        assert!(parse(SourceType::All, "").is_ok());
        assert!(parse(SourceType::All, "x").is_err());
        for source_type in &SourceType::ALL[1..] {
            assert!(parse(*source_type, " ").is_err(), "{source_type}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_has_one_spelling(kind in 0usize..8, text in "[0-9a-f:./,\\[\\]~=*x-]{0,24}|\\PC{0,16}") {
            let source_type = SourceType::ALL[kind];
            if let Ok(sources) = parse(source_type, &text) {
                for source in sources {
                    prop_assert_eq!(parse(source_type, &source.to_string()), Ok(vec![source]));
                }
            }
        }
    }
}
