//! The presets every installation has: addresses and names as their providers publish them.

use jiff::Timestamp;

use super::{DnsPreset, Filtering, PresetMode};
use crate::domain::DomainName;
use crate::resource::Meta;

/// Name, provider, name on the certificates, filtering, addresses.
type Row = (&'static str, &'static str, &'static str, Filtering, &'static [&'static str]);

/// In the order of their slots: only ever append.
const PRESETS: &[Row] = &[
    (
        "Quad9",
        "Quad9",
        "dns.quad9.net",
        Filtering::Malware,
        &["9.9.9.9", "149.112.112.112", "2620:fe::fe", "2620:fe::9"],
    ),
    (
        "Quad9 unfiltered",
        "Quad9",
        "dns10.quad9.net",
        Filtering::None,
        &["9.9.9.10", "149.112.112.10", "2620:fe::10", "2620:fe::fe:10"],
    ),
    ("Mullvad DNS", "Mullvad", "dns.mullvad.net", Filtering::None, &["194.242.2.2", "2a07:e340::2"]),
    ("Mullvad DNS base", "Mullvad", "base.dns.mullvad.net", Filtering::Ads, &["194.242.2.4", "2a07:e340::4"]),
    (
        "Mullvad DNS family",
        "Mullvad",
        "family.dns.mullvad.net",
        Filtering::Family,
        &["194.242.2.6", "2a07:e340::6"],
    ),
    (
        "Cloudflare",
        "Cloudflare",
        "one.one.one.one",
        Filtering::None,
        &["1.1.1.1", "1.0.0.1", "2606:4700:4700::1111", "2606:4700:4700::1001"],
    ),
    (
        "Cloudflare security",
        "Cloudflare",
        "security.cloudflare-dns.com",
        Filtering::Malware,
        &["1.1.1.2", "1.0.0.2", "2606:4700:4700::1112", "2606:4700:4700::1002"],
    ),
    (
        "Cloudflare family",
        "Cloudflare",
        "family.cloudflare-dns.com",
        Filtering::Family,
        &["1.1.1.3", "1.0.0.3", "2606:4700:4700::1113", "2606:4700:4700::1003"],
    ),
    (
        "AdGuard DNS",
        "AdGuard",
        "dns.adguard-dns.com",
        Filtering::Ads,
        &["94.140.14.14", "94.140.15.15", "2a10:50c0::ad1:ff", "2a10:50c0::ad2:ff"],
    ),
    (
        "AdGuard DNS unfiltered",
        "AdGuard",
        "unfiltered.adguard-dns.com",
        Filtering::None,
        &["94.140.14.140", "94.140.14.141", "2a10:50c0::1:ff", "2a10:50c0::2:ff"],
    ),
    (
        "AdGuard DNS family",
        "AdGuard",
        "family.adguard-dns.com",
        Filtering::Family,
        &["94.140.14.15", "94.140.15.16", "2a10:50c0::bad1:ff", "2a10:50c0::bad2:ff"],
    ),
    (
        "NextDNS",
        "NextDNS",
        "dns.nextdns.io",
        Filtering::None,
        &["45.90.28.0", "45.90.30.0", "2a07:a8c0::", "2a07:a8c1::"],
    ),
    (
        "ControlD",
        "Control D",
        "p0.freedns.controld.com",
        Filtering::None,
        &["76.76.2.0", "76.76.10.0", "2606:1a40::", "2606:1a40:1::"],
    ),
    (
        "ControlD malware",
        "Control D",
        "p1.freedns.controld.com",
        Filtering::Malware,
        &["76.76.2.1", "76.76.10.1", "2606:1a40::1", "2606:1a40:1::1"],
    ),
    (
        "ControlD ads",
        "Control D",
        "p2.freedns.controld.com",
        Filtering::Ads,
        &["76.76.2.2", "76.76.10.2", "2606:1a40::2", "2606:1a40:1::2"],
    ),
];

fn privacy_note(provider: &str) -> &'static str {
    match provider {
        "Quad9" => "A Swiss foundation; keeps no addresses of those who ask.",
        "Mullvad" => "Swedish; keeps no logs. Answers encrypted queries only.",
        "Cloudflare" => {
            "American; keeps queries without full addresses for at most 25 hours, samples of packets apart."
        }
        "AdGuard" => "Cypriot; keeps aggregated figures without addresses.",
        "NextDNS" => {
            "American. Filters and logs are those of an account: for yours make a preset with the mode doh and the \
             upstream https://dns.nextdns.io/ followed by the id of your configuration."
        }
        _ => "Canadian; keeps no logs of its free resolvers.",
    }
}

pub(super) fn presets(now: Timestamp) -> Vec<DnsPreset> {
    let preset = |(slot, (name, provider, tls_name, filtering, addresses)): (u32, &Row)| DnsPreset {
        meta: Meta::builtin(3, slot, now),
        name: (*name).to_owned(),
        provider: (*provider).to_owned(),
        upstreams: addresses.iter().map(|address| (*address).to_owned()).collect(),
        mode: PresetMode::Dot,
        tls_name: DomainName::parse(tls_name).ok(),
        filtering: *filtering,
        privacy_note: privacy_note(provider).to_owned(),
        builtin: true,
    };
    (1..).zip(PRESETS).map(preset).collect()
}
