//! Protection from cross-site requests and DNS rebinding.
//!
//! A page on the web can make a browser send requests to the gateway (cross-site request forgery). It can also resolve
//! its own name to the address of the gateway (DNS rebinding). Neither attack can choose the `Host`, `Origin` and
//! `Sec-Fetch-Site` that the browser sends.

use std::net::{IpAddr, Ipv6Addr};

use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use subtle::ConstantTimeEq;

use crate::error::{ApiError, Code};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// Checks that the request names one host (RFC 9112, section 3.2): at most one `Host`, and no other in its target.
pub(super) fn check_target(parts: &Parts) -> Result<(), ApiError> {
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return Err(
            ApiError::bad_request("The request has more than one Host header.").detail("header", "Host")
        );
    }
    let (Some(host), Some(authority)) = (host, parts.uri.authority()) else { return Ok(()) };
    if authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()) {
        return Ok(());
    }
    Err(ApiError::bad_request("The target of the request names another host than its Host header.")
        .detail("header", "Host")
        .detail("target", authority.as_str()))
}

/// Checks that the host is an address, `localhost` or a configured name. That of the target wins over the header.
pub(super) fn check_host(parts: &Parts, is_configured: impl FnOnce(&str) -> bool) -> Result<(), ApiError> {
    let host = parts
        .uri
        .authority()
        .map(http::uri::Authority::as_str)
        .or_else(|| parts.headers.get(header::HOST).map(|value| value.to_str().unwrap_or("?")));
    let Some(host) = host else {
        return Err(ApiError::new(Code::OriginNotAllowed, "The request has no host."));
    };
    let is_known = |name: &str| {
        name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") || is_configured(name)
    };
    if host_name(host).is_some_and(is_known) {
        return Ok(());
    }
    Err(ApiError::new(
        Code::OriginNotAllowed,
        "This host name does not belong to the gateway; use its address, or add the name to listen.host_names.",
    )
    .detail("host", host))
}

/// Checks that a change does not come from a page of another site.
pub(super) fn check_origin(parts: &Parts) -> Result<(), ApiError> {
    let refuse = |header: &str, value: &str| {
        Err(ApiError::new(Code::OriginNotAllowed, "Cross-origin changes are rejected.").detail(header, value))
    };
    if let Some(site) = text(&parts.headers, &SEC_FETCH_SITE)
        && site.eq_ignore_ascii_case("cross-site")
    {
        return refuse("sec_fetch_site", site);
    }
    let Some(origin) = text(&parts.headers, &header::ORIGIN) else { return Ok(()) };
    let own = text(&parts.headers, &header::HOST)
        .or_else(|| parts.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or_default();
    // Browsers omit the default port in both headers; proxies and other clients do not always.
    let foreign = match origin.split_once("://") {
        Some((scheme @ ("http" | "https"), authority)) => {
            let port = if scheme == "http" { ":80" } else { ":443" };
            let bare =
                |authority: &str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
            own.is_empty() || bare(authority) != bare(own)
        }
        _ => true,
    };
    if foreign { refuse("origin", origin) } else { Ok(()) }
}

/// Checks the CSRF token of a change with a session cookie. It proves that the sender could read a response of the
/// gateway.
pub(super) fn check_csrf(parts: &Parts, token: Option<&str>) -> Result<(), ApiError> {
    let given = text(&parts.headers, &CSRF).unwrap_or_default();
    if token.is_some_and(|token| bool::from(token.as_bytes().ct_eq(given.as_bytes()))) {
        return Ok(());
    }
    let message = match given {
        "" => {
            "With a session cookie, changes need the header X-CSRF-Token: the csrf_token of the sign-in or of GET /auth/status."
        }
        _ => "X-CSRF-Token is not that of this session; GET /auth/status has it.",
    };
    Err(ApiError::new(Code::OriginNotAllowed, message).detail("header", "X-CSRF-Token"))
}

/// Returns a header as text. One that is not text counts as foreign.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Returns the host without its port: `[::1]:8080` gives `::1`, `localhost:8080` gives `localhost`. `None` if it is not
/// `host [":" port]` of RFC 3986, whose brackets hold nothing but an IPv6 address.
fn host_name(host: &str) -> Option<&str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        return (address.parse::<Ipv6Addr>().is_ok() && is_port(port)).then_some(address);
    }
    if host.parse::<Ipv6Addr>().is_ok() {
        return Some(host);
    }
    let end = host.find(':').unwrap_or(host.len());
    is_port(&host[end..]).then_some(&host[..end])
}

/// Reports whether a text is empty, or a colon with the digits of a port.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("request").into_parts().0
    }

    #[test]
    fn addresses_localhost_and_configured_names_are_accepted_hosts() {
        let is_configured = |name: &str| name.eq_ignore_ascii_case("gateway.lan");
        for good in
            ["127.0.0.1:8080", "[::1]:8080", "[fd00::1]", "localhost", "LOCALHOST:1", "Gateway.lan:8080"]
        {
            assert!(check_host(&parts(&[("host", good)]), is_configured).is_ok(), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "[::1]evil.example",
            "[::1]evil.example:8080",
            "[::1]:8080.evil.example",
            "[::1",
            "[localhost]",
            "[127.0.0.1]",
            "localhost:evil.example",
            "localhost:80:evil.example",
            "127.0.0.1:8080@evil.example",
            "",
        ] {
            assert!(check_host(&parts(&[("host", bad)]), is_configured).is_err(), "{bad}");
        }
        assert!(check_host(&parts(&[]), is_configured).is_err());
    }

    #[test]
    fn a_request_names_one_host() {
        let with = |uri: &str, headers: &[(&str, &str)]| {
            let mut found = parts(headers);
            found.uri = uri.parse().expect("a target");
            found
        };
        let host = ("host", "127.0.0.1:8080");
        assert!(check_target(&with("/", &[host])).is_ok());
        assert!(check_target(&with("http://127.0.0.1:8080/", &[host])).is_ok());
        assert!(check_target(&with("http://gateway.lan/", &[])).is_ok());
        for (uri, headers) in [
            ("/", vec![host, ("host", "evil.example")]),
            ("/", vec![host, host]),
            ("http://evil.example/", vec![host]),
        ] {
            let error = check_target(&with(uri, &headers)).expect_err("refused");
            assert_eq!(error.code, Code::BadRequest, "{uri} {headers:?}");
        }
        assert!(check_host(&with("http://evil.example/", &[host]), |_| false).is_err());
    }

    #[test]
    fn changes_from_foreign_pages_are_refused_and_plain_clients_pass() {
        let host = ("host", "127.0.0.1:8080");
        assert!(check_origin(&parts(&[host])).is_ok());
        assert!(check_origin(&parts(&[host, ("origin", "http://127.0.0.1:8080")])).is_ok());
        assert!(check_origin(&parts(&[host, ("sec-fetch-site", "same-origin")])).is_ok());
        for bad in
            ["http://evil.example", "null", "http://127.0.0.1:9090", "http://127.0.0.1:8080.evil.example"]
        {
            assert!(check_origin(&parts(&[host, ("origin", bad)])).is_err(), "{bad}");
        }
        assert!(check_origin(&parts(&[host, ("sec-fetch-site", "cross-site")])).is_err());
        let behind = ("host", "gateway.example");
        assert!(check_origin(&parts(&[behind, ("origin", "https://gateway.example:443")])).is_ok());
        assert!(check_origin(&parts(&[behind, ("origin", "https://Gateway.example")])).is_ok());
        assert!(check_origin(&parts(&[behind, ("origin", "http://gateway.example:443")])).is_err());
        assert!(check_origin(&parts(&[("origin", "http://")])).is_err());
    }

    #[test]
    fn changes_with_a_cookie_need_the_token_of_that_session() {
        assert!(check_csrf(&parts(&[("x-csrf-token", "abc")]), Some("abc")).is_ok());
        for (given, token) in
            [("", Some("abc")), ("abd", Some("abc")), ("abc", None), ("", None), ("ab", Some("abc"))]
        {
            let error = check_csrf(&parts(&[("x-csrf-token", given)]), token).expect_err("refused");
            assert_eq!(error.code, Code::OriginNotAllowed);
        }
        assert!(check_csrf(&parts(&[]), Some("abc")).is_err());
    }
}
