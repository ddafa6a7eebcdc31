//! Certificate names of well-known resolvers: those of the built-in presets, and a few others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use gateway_model::Resource;
use gateway_model::kinds::DnsPreset;
use gateway_model::settings::bootstrap::{Dns, UpstreamMode};
use jiff::Timestamp;

/// Resolvers without a preset, as their providers publish them.
const BESIDE: &[(&str, &[&str])] = &[
    ("dns.google", &["8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844"]),
    ("dns64.dns.google", &["2001:4860:4860::6464", "2001:4860:4860::64"]),
    ("dns11.quad9.net", &["9.9.9.11", "149.112.112.11", "2620:fe::11", "2620:fe::fe:11"]),
    ("dns12.quad9.net", &["9.9.9.12", "149.112.112.12", "2620:fe::12", "2620:fe::fe:12"]),
    ("dns.quad9.net", &["149.112.112.9", "2620:fe::fe:9"]),
    ("adblock.dns.mullvad.net", &["194.242.2.3", "2a07:e340::3"]),
    ("extended.dns.mullvad.net", &["194.242.2.5", "2a07:e340::5"]),
    ("all.dns.mullvad.net", &["194.242.2.9", "2a07:e340::9"]),
    ("dns64.cloudflare-dns.com", &["2606:4700:4700::64", "2606:4700:4700::6400"]),
    ("dns.opendns.com", &["208.67.222.222", "208.67.220.220", "2620:119:35::35", "2620:119:53::53"]),
    ("familyshield.opendns.com", &["208.67.222.123", "208.67.220.123"]),
];

static NAMES: LazyLock<HashMap<IpAddr, String>> = LazyLock::new(|| {
    let presets = DnsPreset::builtin(Timestamp::UNIX_EPOCH);
    let of_presets = presets.iter().filter_map(|preset| {
        let name = preset.tls_name.as_ref()?.as_str();
        Some((name, preset.upstreams.iter().map(String::as_str).collect::<Vec<_>>()))
    });
    let beside = BESIDE.iter().map(|(name, addresses)| (*name, addresses.to_vec()));
    // Presets come last and take precedence.
    beside
        .chain(of_presets)
        .flat_map(|(name, addresses)| {
            addresses.into_iter().filter_map(move |text| Some((text.parse().ok()?, name.to_owned())))
        })
        .collect()
});

/// Returns the name on the certificate of the resolver at this address.
pub(super) fn name_of(address: IpAddr) -> Option<&'static str> {
    NAMES.get(&address).map(String::as_str)
}

/// Returns the upstreams of the configuration that cannot be queried. Their transport is encrypted, and neither the
/// configuration nor the list of well-known resolvers contains the name on their certificate.
pub fn without_certificate_name(dns: &Dns) -> Vec<IpAddr> {
    if dns.upstream_mode == UpstreamMode::Plain {
        return Vec::new();
    }
    let nameless =
        |address: &&IpAddr| !dns.upstream_tls_names.contains_key(*address) && name_of(**address).is_none();
    dns.upstream_servers.iter().filter(nameless).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_resolvers_have_names() {
        let name = |text: &str| name_of(text.parse().unwrap());
        assert_eq!(name("9.9.9.9"), Some("dns.quad9.net"));
        assert_eq!(name("1.1.1.1"), Some("one.one.one.one"));
        assert_eq!(name("2001:4860:4860::8888"), Some("dns.google"));
        assert_eq!(name("194.242.2.2"), Some("dns.mullvad.net"));
        assert_eq!(name("94.140.14.14"), Some("dns.adguard-dns.com"));
        assert_eq!(name("192.0.2.1"), None);
    }

    #[test]
    fn every_address_beside_the_presets_is_one() {
        for (name, addresses) in BESIDE {
            for text in *addresses {
                assert!(text.parse().is_ok_and(|address| name_of(address).is_some()), "{name} {text}");
            }
        }
    }
}
