//! Resolvers that queries are sent to, and addresses of lists on the web.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Url;

use crate::domain::DomainName;
use crate::problem::{Problems, code};
use crate::validated::{parse_port, text_enum};

text_enum! {
    /// Transport of a query.
    #[derive(Default)]
    pub enum DnsProtocol {
        #[default]
        Udp = "udp",
        Tcp = "tcp",
        /// DNS over TLS.
        Tls = "tls",
        /// DNS over HTTPS.
        Https = "https",
        /// DNS over QUIC.
        Quic = "quic",
    }
}

impl DnsProtocol {
    pub const fn is_encrypted(self) -> bool {
        matches!(self, DnsProtocol::Tls | DnsProtocol::Https | DnsProtocol::Quic)
    }
}

/// One resolver: `9.9.9.9`, `9.9.9.9:5353`, `[2620:fe::fe]:853`, `dns.quad9.net`, `https://dns.quad9.net/dns-query`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Upstream {
    Address {
        address: IpAddr,
        port: Option<u16>,
    },
    Name {
        name: DomainName,
        port: Option<u16>,
    },
    /// In the spelling of the URL standard.
    Https(String),
}

/// Valid forms of an upstream.
const WANT: &str = "Expected the address of a resolver such as 9.9.9.9, [2620:fe::fe]:853, dns.example.net or https://dns.example.net/dns-query.";

impl FromStr for Upstream {
    type Err = ();

    fn from_str(text: &str) -> Result<Upstream, ()> {
        let text = text.trim();
        if text.contains("://") {
            return web_address(text, &["https"]).map(Upstream::Https).map_err(drop);
        }
        if let Ok(address) = text.parse() {
            return Ok(Upstream::Address { address, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(parse_port(port).ok_or(())?)),
            None => (text, None),
        };
        if let Some(inner) = host.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse().ok()).ok_or(())?;
            return Ok(Upstream::Address { address: IpAddr::V6(address), port });
        }
        match host.parse() {
            Ok(address) => Ok(Upstream::Address { address: IpAddr::V4(address), port }),
            Err(_) => Ok(Upstream::Name { name: DomainName::parse(host).map_err(drop)?, port }),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Address { address, port: None } => address.fmt(f),
            Upstream::Address { address: IpAddr::V4(address), port: Some(port) } => {
                write!(f, "{address}:{port}")
            }
            Upstream::Address { address: IpAddr::V6(address), port: Some(port) } => {
                write!(f, "[{address}]:{port}")
            }
            Upstream::Name { name, port: None } => name.fmt(f),
            Upstream::Name { name, port: Some(port) } => write!(f, "{name}:{port}"),
            Upstream::Https(url) => f.write_str(url),
        }
    }
}

/// Reports whether its address must be resolved first.
pub(crate) fn is_by_name(text: &str) -> bool {
    match text.parse() {
        Ok(Upstream::Name { .. }) => true,
        Ok(Upstream::Https(url)) => Url::parse(&url).is_ok_and(|url| url.domain().is_some()),
        _ => false,
    }
}

/// Brings each text that is an upstream into its one spelling.
pub(crate) fn normalise_upstreams(list: &mut [String]) {
    for text in list {
        if let Ok(upstream) = text.parse::<Upstream>() {
            *text = upstream.to_string();
        }
    }
}

/// The rules of a list of resolvers reached by one protocol.
pub(crate) fn check_upstreams(
    path: &str,
    list: &[String],
    protocol: DnsProtocol,
    tls_name: &Option<DomainName>,
    problems: &mut Problems,
) {
    if list.len() > 16 {
        problems.add(code::RANGE, path, "At most 16 resolvers.");
    }
    let mut bare = false;
    for (index, text) in list.iter().enumerate() {
        let at = format!("{path}[{index}]");
        if list[..index].contains(text) {
            problems.add(code::DUPLICATE, at, format!("{text} is given twice."));
            continue;
        }
        match text.parse::<Upstream>() {
            Err(()) => drop(problems.add(code::FORMAT, at, WANT)),
            Ok(Upstream::Https(_)) if protocol != DnsProtocol::Https => {
                let message = format!("An https:// address needs the protocol https, not {protocol}.");
                problems.add(code::CONFLICT, at, message);
            }
            Ok(Upstream::Address { address, .. }) => {
                bare = true;
                if address.is_unspecified() || address.is_multicast() {
                    problems.add(code::RANGE, at, format!("{address} is no address of a resolver."));
                }
            }
            Ok(Upstream::Name { .. } | Upstream::Https(_)) => {}
        }
    }
    if protocol.is_encrypted() && bare && tls_name.is_none() {
        problems.required("tls_name");
    }
}

/// Returns the normalised URL (WHATWG), without credentials, or a sentence about its fault.
pub fn web_address(text: &str, schemes: &[&str]) -> Result<String, String> {
    let wanted = schemes.join(":// or ");
    if text.len() > 2048 {
        return Err("At most 2048 characters.".to_owned());
    }
    let url = Url::parse(text.trim())
        .map_err(|error| format!("Expected an address such as {wanted}://example.com/: {error}."))?;
    if !schemes.contains(&url.scheme()) {
        return Err(format!("Expected an address that begins with {wanted}://."));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("A user name or password does not belong into the address.".to_owned());
    }
    if url.fragment().is_some() {
        return Err("The part after # has no meaning here.".to_owned());
    }
    Ok(url.into())
}

/// Reports a web address that is none.
pub fn check_web_address(path: &str, text: &str, schemes: &[&str], problems: &mut Problems) {
    if let Err(message) = web_address(text, schemes) {
        problems.add(code::FORMAT, path, message);
    }
}

/// Brings a web address into its one spelling; one that is none stays for `validate` to report.
pub fn normalise_web_address(text: &mut String, schemes: &[&str]) {
    if let Ok(url) = web_address(text, schemes) {
        *text = url;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn resolvers_of_every_spelling_are_read_and_shown() {
        let cases = [
            ("9.9.9.9", "9.9.9.9"),
            ("9.9.9.9:5353", "9.9.9.9:5353"),
            ("2620:FE::fe", "2620:fe::fe"),
            ("[2620:fe::fe]:853", "[2620:fe::fe]:853"),
            ("DNS.Example.net.", "dns.example.net"),
            ("dns.example.net:853", "dns.example.net:853"),
            ("https://DNS.quad9.net/dns-query", "https://dns.quad9.net/dns-query"),
            ("https://dns.nextdns.io", "https://dns.nextdns.io/"),
        ];
        for (text, want) in cases {
            assert_eq!(text.parse::<Upstream>().map(|up| up.to_string()), Ok(want.to_owned()), "{text}");
        }
        for text in [
            "",
            "9.9.9",
            "9.9.9.9:0",
            "9.9.9.9:x",
            "[9.9.9.9]:53",
            "http://a.b/",
            "https://u:p@a.b/",
            "a b",
            ".",
        ] {
            assert!(text.parse::<Upstream>().is_err(), "{text}");
        }
    }

    #[test]
    fn web_addresses_have_no_credentials_and_an_allowed_scheme() {
        assert_eq!(web_address("https://Example.com", &["https"]).as_deref(), Ok("https://example.com/"));
        for text in [
            "ftp://a.b/",
            "https://",
            "example.com",
            "https://a:b@c.d/",
            "file:///etc/passwd",
            "https://a.b/#c",
        ] {
            assert!(web_address(text, &["http", "https"]).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_has_one_spelling(text in "\\PC{0,40}|[0-9a-f:.\\[\\]]{0,30}|https://[a-z./?=]{0,20}") {
            if let Ok(upstream) = text.parse::<Upstream>() {
                prop_assert_eq!(upstream.to_string().parse::<Upstream>(), Ok(upstream));
            }
        }
    }
}
