//! Pseudonym of one value, by its class.

use std::net::IpAddr;

use gateway_model::MacAddr;
use ipnet::IpNet;

use super::key::{DIGEST_DIGITS, PseudonymKey};
use super::{address, shapes};

pub(super) fn secret(key: &PseudonymKey, text: &str) -> String {
    key.token("secret", text)
}

pub(super) fn name(key: &PseudonymKey, text: &str) -> String {
    key.token("name", &text.to_lowercase())
}

pub(super) fn email(key: &PseudonymKey, text: &str) -> String {
    key.token("email", &text.to_lowercase())
}

/// Returns the pseudonym of an opaque text: a key, a token, a digest.
pub(super) fn opaque(key: &PseudonymKey, text: &str) -> String {
    key.token("opaque", text)
}

/// Returns the pseudonym of a MAC address. Groups, and the address of zeros, identify no host.
pub(super) fn mac(key: &PseudonymKey, mac: MacAddr) -> String {
    if mac.0[0] & 1 == 1 || mac.0 == [0; 6] {
        return mac.to_string();
    }
    format!("mac-{}", key.digits("mac", &mac.0, DIGEST_DIGITS))
}

pub(super) fn address(key: &PseudonymKey, address: IpAddr) -> String {
    address::pseudonym(key, address, None)
}

pub(super) fn net(key: &PseudonymKey, net: IpNet) -> String {
    format!("{}/{}", address::pseudonym(key, net.addr(), Some(net.prefix_len())), net.prefix_len())
}

/// Returns the pseudonym of a domain, label by label, so that subdomains stay recognisable. The last label stays if it
/// says nothing about anybody.
pub(super) fn domain(key: &PseudonymKey, domain: &str) -> String {
    let domain = domain.to_lowercase();
    let labels: Vec<&str> = domain.split('.').collect();
    let pseudonym = |index: usize| {
        let suffix = labels[index..].join(".");
        match index + 1 == labels.len() && shapes::is_common_top_level(labels[index]) {
            true => labels[index].to_owned(),
            false => format!("domain-{}", key.digits("domain", suffix.as_bytes(), DIGEST_DIGITS)),
        }
    };
    (0..labels.len()).map(pseudonym).collect::<Vec<_>>().join(".")
}

/// Returns the pseudonym of a whole text, by its shape.
pub(super) fn whole(key: &PseudonymKey, text: &str) -> String {
    let trimmed = text.trim();
    if let Ok(parsed) = trimmed.parse() {
        return address(key, parsed);
    }
    if let Ok(parsed) = trimmed.parse() {
        return net(key, parsed);
    }
    if let Ok(parsed) = trimmed.parse() {
        return mac(key, parsed);
    }
    let without_dot = trimmed.trim_end_matches('.');
    match trimmed {
        _ if shapes::is_email(trimmed) => email(key, trimmed),
        _ if shapes::is_domain(without_dot) => domain(key, without_dot),
        _ if shapes::is_opaque(trimmed) => opaque(key, trimmed),
        _ => name(key, trimmed),
    }
}
