//! Shapes of texts: domains, e-mail addresses, keys, and texts that say nothing about anybody.

use std::net::IpAddr;

use gateway_model::MacAddr;
use ipnet::IpNet;
use jiff::Timestamp;

/// Length from which a text of mixed letters and digits is a key, and one of hexadecimal digits.
const MIN_OPAQUE_LENGTH: usize = 20;
const MIN_HEX_LENGTH: usize = 32;
/// Maximum length of a domain.
const MAX_DOMAIN_LENGTH: usize = 253;

/// Top-level domains that say nothing about anybody, beside those of countries.
const COMMON_TOP_LEVEL: &[&str] = &[
    "arpa",
    "com",
    "edu",
    "example",
    "gov",
    "home",
    "info",
    "internal",
    "int",
    "invalid",
    "lan",
    "local",
    "localhost",
    "mil",
    "net",
    "onion",
    "org",
    "test",
];
/// Ends of file names. None of them is a top-level domain.
const FILE_EXTENSIONS: &[&str] = &[
    "conf", "crt", "db", "gz", "json", "lock", "log", "ndjson", "pcapng", "pem", "pid", "redb", "service",
    "sock", "socket", "target", "toml", "tsv", "txt", "yaml", "yml",
];

/// Reports whether a text is a domain: labels with a top-level domain of letters. Names of files are none.
pub(super) fn is_domain(text: &str) -> bool {
    let mut labels = text.split('.');
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '-' | '_'))
    };
    let Some(last) = labels.next_back() else { return false };
    let is_top_level =
        last.starts_with("xn--") || last.chars().count() >= 2 && last.chars().all(char::is_alphabetic);
    let mut count = 0;
    let labels = labels.all(|label| {
        count += 1;
        is_label(label)
    });
    text.len() <= MAX_DOMAIN_LENGTH
        && labels
        && count > 0
        && is_label(last)
        && is_top_level
        && !FILE_EXTENSIONS.contains(&last.to_lowercase().as_str())
}

/// Reports whether a text is an e-mail address.
pub(super) fn is_email(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    text.split_once('@').is_some_and(|(user, host)| is_part(user) && is_part(host) && !host.contains('@'))
}

/// Reports whether a text looks like a key or a token: long, of mixed letters and digits, and no id.
pub(super) fn is_opaque(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-".contains(&byte);
    if text.len() < MIN_OPAQUE_LENGTH || !text.bytes().all(is_sign) || is_id(text) {
        return false;
    }
    let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
    let is_hex = text.len() >= MIN_HEX_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex || has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

/// Reports whether a text says nothing about anybody: a number, a time, an id that the gateway made.
pub(super) fn is_neutral(text: &str) -> bool {
    text.parse::<f64>().is_ok() || text.parse::<Timestamp>().is_ok() || is_id(text)
}

fn is_id(text: &str) -> bool {
    text.len() == 36 && text.parse::<gateway_model::Id>().is_ok()
}

/// Reports whether a pattern finds the whole of a text, so that it need not be a private term.
pub(super) fn covers(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
        || text.parse::<IpNet>().is_ok()
        || text.parse::<MacAddr>().is_ok()
        || is_domain(text)
        || is_opaque(text)
        || is_neutral(text)
}

pub(super) fn is_common_top_level(label: &str) -> bool {
    COMMON_TOP_LEVEL.contains(&label)
        || label.len() == 2 && label.bytes().all(|byte| byte.is_ascii_lowercase())
}
