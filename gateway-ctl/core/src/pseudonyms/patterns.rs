//! Private values that their shape tells: addresses, domains, e-mail addresses, URLs, keys.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::LazyLock;

use gateway_model::MacAddr;
use ipnet::IpNet;
use regex::{Match, Regex};

use super::classes;
use super::key::PseudonymKey;
use super::shapes::{is_domain, is_opaque};

/// Candidates, the more specific ones first.
static CANDIDATES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        (?P<url> [A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>`\\|]+ )
        | (?P<email> [\w.%+-]+@[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)* )
        | (?P<mac> [0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5} | [0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5} )
        | (?P<ipv6> [0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8}(?:\.[0-9]{1,3}){0,3}(?:/[0-9]{1,3})? )
        | (?P<ipv4> [0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})? )
        | (?P<base64> [A-Za-z0-9+/]{42,}={0,2} )
        | (?P<word> \w(?:[\w.-]*\w)? )
        "#,
    )
    .expect("a test compiles it")
});
/// A word, a domain, a name of an interface.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w(?:[\w.-]*\w)?").expect("a test compiles it"));
static DASHED_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9]{1,3}(?:[-_][0-9]{1,3}){3}").expect("a test compiles it"));
static INTERFACE_WITH_MAC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:en|wl|ww)x[0-9a-f]{12}$").expect("a test compiles it"));

/// Returns the private values in a text, with their pseudonyms. Words of the vocabulary are none.
pub(super) fn find(
    text: &str,
    key: &PseudonymKey,
    is_vocabulary: &dyn Fn(&str) -> bool,
) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(captures) = CANDIDATES.captures_at(text, start) {
        let candidate = captures.get(0).expect("the match itself");
        let is = |name: &str| captures.name(name).is_some();
        let replaced = if is("url") {
            let url = candidate.as_str().trim_end_matches(|sign| ".,;:)]}".contains(sign));
            Some((candidate.start()..candidate.start() + url.len(), pseudonym_of_url(url, key)))
        } else if is("email") {
            Some((candidate.range(), classes::email(key, candidate.as_str())))
        } else if is("mac") {
            candidate.as_str().parse().ok().map(|mac: MacAddr| (candidate.range(), classes::mac(key, mac)))
        } else if is("ipv6") {
            ipv6(text, &candidate, key)
        } else if is("ipv4") {
            pseudonym_of_address(candidate.as_str(), key).map(|pseudonym| (candidate.range(), pseudonym))
        } else if is("base64") && is_opaque(candidate.as_str()) {
            Some((candidate.range(), classes::opaque(key, candidate.as_str())))
        } else {
            None
        };
        if let Some((span, pseudonym)) = replaced {
            start = span.end;
            found.push((span, pseudonym));
            continue;
        }
        if is("ipv6") {
            // Behind the first sign there may be a MAC address, or an address.
            start = candidate.start() + 1;
            continue;
        }
        let Some(word) = WORD.find_at(text, candidate.start()) else { break };
        start = word.end();
        if !is_vocabulary(word.as_str())
            && let Some(pseudonym) = pseudonym_of_word(word.as_str(), key)
        {
            found.push((word.range(), pseudonym));
        }
    }
    found
}

fn pseudonym_of_word(word: &str, key: &PseudonymKey) -> Option<String> {
    if is_domain(word) {
        return Some(classes::domain(key, word));
    }
    if is_opaque(word) {
        return Some(classes::opaque(key, word));
    }
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    if word.len() == 12
        && has_digit
        && let Ok(mac) = word.parse()
    {
        return Some(classes::mac(key, mac));
    }
    if INTERFACE_WITH_MAC.is_match(word)
        && let Ok(mac) = word[3..].parse()
    {
        return Some(format!("{}-{}", &word[..3], classes::mac(key, mac)));
    }
    DASHED_ADDRESS.is_match(word).then(|| classes::name(key, word))
}

/// Returns the address of a candidate, which may have a colon of the sentence at its end. None if it is a path of Rust, a
/// time of day, or a part of a word.
fn ipv6(text: &str, candidate: &Match<'_>, key: &PseudonymKey) -> Option<(Range<usize>, String)> {
    let before = &text[..candidate.start()];
    if before.ends_with("::") || before.ends_with(|sign: char| sign.is_alphanumeric() || sign == '_') {
        return None;
    }
    let mut address = candidate.as_str();
    loop {
        if let Some(pseudonym) = pseudonym_of_address(address, key) {
            return Some((candidate.start()..candidate.start() + address.len(), pseudonym));
        }
        address = address.strip_suffix(':')?;
    }
}

fn pseudonym_of_address(text: &str, key: &PseudonymKey) -> Option<String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(classes::address(key, address));
    }
    text.parse::<IpNet>().ok().map(|net| classes::net(key, net))
}

/// Keeps the scheme and the port of a URL.
fn pseudonym_of_url(url: &str, key: &PseudonymKey) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return classes::name(key, url) };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let port = host.rfind(':').filter(|at| host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    let (host, port) = host.split_at(port.unwrap_or(host.len()));
    let user = user.map(|user| format!("{}@", classes::name(key, user))).unwrap_or_default();
    let host = match host {
        "" | "localhost" => host.to_owned(),
        _ => match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => format!("[{}]", classes::whole(key, inner)),
            None => classes::whole(key, host),
        },
    };
    let path = match path {
        "" | "/" => path.to_owned(),
        _ => format!("/{}", classes::name(key, path)),
    };
    format!("{scheme}://{user}{host}{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        let key = PseudonymKey::new(&[1; 32]);
        let mut all = text.to_owned();
        for (span, pseudonym) in find(text, &key, &|word| word == "dns.local_domain").into_iter().rev() {
            all.replace_range(span, &pseudonym);
        }
        all
    }

    #[test]
    fn private_shapes_are_found_in_sentences() {
        for (text, private) in [
            ("to 203.0.113.7:51820, again", "203.0.113.7"),
            ("addr=2001:db8::1: refused", "2001:db8::1"),
            ("[2001:db8::2]:443", "2001:db8::2"),
            ("net 198.51.100.0/24.", "198.51.100.0"),
            ("mac 02:AB:cd:00:00:01 gone", "02:AB:cd:00:00:01"),
            ("mac 02-ab-cd-00-00-01 gone", "02-ab-cd-00-00-01"),
            ("mac 02abcd000001", "02abcd000001"),
            ("link enx02abcd000001 is up", "02abcd000001"),
            ("query for Kim.Example.ORG.", "Kim.Example"),
            ("mail kim.park@mail.example failed", "kim.park"),
            ("https://kim:pw@host.example:8443/kim?x=pw#z", "kim"),
            ("https://kim:pw@host.example:8443/kim?x=pw#z", "pw"),
            ("host-203-0-113-9 answered", "203-0-113-9"),
            ("key kH8mC1dGn2qZ7pYxT5bVw3sLr9aJf0eUoi4tRkMuNnE=", "kH8mC1dG"),
            ("psk 0123456789abcdef0123456789abcdef", "0123456789abcdef"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("b.a.9.8.ip6.arpa", "b.a.9.8"),
        ] {
            let text = replaced(text);
            assert!(!text.contains(private), "{text}");
        }
    }

    #[test]
    fn neutral_texts_stay() {
        for text in [
            "2026-11-30T12:00:00.123456Z  INFO gateway_ctl::services::dns: resolver started workers=2",
            "at 12:34:56 of the key dns.local_domain in /etc/gatewayd/config.yaml, e.g. this",
            "id 0199f1c2-0000-7000-8000-000000000001 on eth0.100 with gateway_xdp_packets_total 1.5",
            "gateway_ctl::bad and a::b::c",
        ] {
            assert_eq!(replaced(text), text);
        }
    }

    #[test]
    fn url_keeps_scheme_and_port() {
        let text = replaced("at https://dns.example:8443/dns-query.");
        assert!(text.starts_with("at https://domain-") && text.contains(".example:8443/name-"), "{text}");
        assert!(text.ends_with('.'), "{text}");
        assert_eq!(replaced("http://localhost:80/"), "http://localhost:80/");
    }
}
