//! Address of the gateway: `GATEWAY_ADDR`.

use std::fmt;

pub(crate) const VARIABLE: &str = "GATEWAY_ADDR";
pub(crate) const DEFAULT: &str = "http://localhost:8080";
/// Port of the API, for addresses without a port and a scheme.
const PORT: u16 = 8080;
const ROOT: &str = "/api/v1";

/// Error for text that is no address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub message: String,
}

impl Invalid {
    /// Accepted forms of an address.
    pub(crate) const ADVICE: &str =
        "It takes host:port, http://host:port or https://host:port, such as 192.168.1.1:8080.";
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    base: String,
    pub https: bool,
}

impl Address {
    /// Parses `host`, `host:port`, `http://host[:port]` or `https://host[:port]`, with or without a trailing slash.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if text.is_empty() {
            return Self::parse(DEFAULT);
        }
        let wrong = |what: &str| Invalid { message: format!("{VARIABLE}={text}: {what}") };
        let lower = text.to_ascii_lowercase();
        let (scheme, rest) = match lower.find("://") {
            None => (None, text),
            Some(end) => (Some(&lower[..end]), &text[end + 3..]),
        };
        let https = match scheme {
            None | Some("http") => false,
            Some("https") => true,
            Some(other) => return Err(wrong(&format!("the scheme {other} is not http or https"))),
        };
        let rest = rest.trim_end_matches('/');
        if rest.contains('/') || rest.contains('?') || rest.contains('#') {
            return Err(wrong("there must be no path after the port"));
        }
        if rest.contains('@') {
            return Err(wrong("there must be no user or password in it: the client carries no credential"));
        }
        let (host, port) = split(rest).ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?;
        if !is_host(host) {
            return Err(wrong("the host is not a name, an IPv4 address or an IPv6 address in brackets"));
        }
        let port = match (port, scheme) {
            (Some(port), _) => Some(port),
            // A URL without a port has the default port of its scheme.
            (None, Some(_)) => None,
            (None, None) => Some(PORT),
        };
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = if https { "https" } else { "http" };
        Ok(Self { base: format!("{scheme}://{host}{port}"), https })
    }

    /// Returns the whole URL of a path below the root of the API.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{ROOT}{path}", self.base)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// Splits into host and port. Returns none if the text after the colon is no port.
fn split(text: &str) -> Option<(&str, Option<u16>)> {
    let colon = match text.rfind(']') {
        Some(bracket) => text[bracket..].find(':').map(|colon| bracket + colon),
        None => text.rfind(':'),
    };
    let Some(colon) = colon else { return Some((text, None)) };
    let port: u16 = text[colon + 1..].parse().ok().filter(|port| *port != 0)?;
    Some((&text[..colon], Some(port)))
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn base(text: &str) -> String {
        Address::parse(text).map(|address| address.to_string()).unwrap_or_else(|invalid| invalid.message)
    }

    #[test]
    fn every_form_is_taken() {
        assert_eq!(base(""), "http://localhost:8080");
        assert_eq!(base("gw.lan"), "http://gw.lan:8080");
        assert_eq!(base("192.168.1.1:8081"), "http://192.168.1.1:8081");
        assert_eq!(base("http://gw:8080/"), "http://gw:8080");
        assert_eq!(base("HTTPS://gw"), "https://gw");
        assert_eq!(base("[fd00::1]:8080"), "http://[fd00::1]:8080");
        assert_eq!(base("https://[fd00::1]/"), "https://[fd00::1]");
    }

    #[test]
    fn anything_else_is_refused_with_what_would_be_right() {
        for wrong in [
            "ftp://gw",
            "gw:",
            "gw:x",
            "gw:0",
            "gw:99999",
            "gw:8080/api",
            "me:pw@gw",
            "http://",
            "a b",
            "fd00::1",
        ] {
            let failure = Failure::from(Address::parse(wrong).expect_err(wrong));
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.text().contains("host:port"), "{}", failure.text());
        }
    }

    #[test]
    fn paths_lie_below_the_root_of_the_api() {
        assert_eq!(Address::parse("gw:1").unwrap().url("/status"), "http://gw:1/api/v1/status");
    }
}
