//! IPv6 networks of large public services. No provider delegates a part of them to a customer's gateway.
//!
//! From the registries of addresses, and from what the operators publish. It need not be complete: it holds what the
//! traffic of most hosts is for.
//!
//! Decision 0180 says why.

use ipnet::{IpNet, Ipv6Net};

use crate::doh_servers;

const SERVICES: &[(&str, &[&str])] = &[
    ("Akamai", &["2600:1400::/24", "2a02:26f0::/29"]),
    ("Amazon", &["2400:6500::/32", "2406:da00::/24", "2600:1f00::/24", "2600:9000::/28", "2a05:d000::/25"]),
    ("Apple", &["2403:300::/32", "2620:149::/36", "2a01:b740::/29"]),
    (
        "Cloudflare",
        &[
            "2400:cb00::/32",
            "2405:8100::/32",
            "2405:b500::/32",
            "2606:4700::/32",
            "2803:f800::/32",
            "2a06:98c0::/29",
            "2c0f:f248::/32",
        ],
    ),
    ("Fastly", &["2a04:4e40::/32", "2a04:4e42::/32"]),
    ("GitHub", &["2606:50c0::/32", "2a0a:a440::/29"]),
    (
        "Google",
        &[
            "2001:4860::/32",
            "2404:6800::/32",
            "2404:f340::/32",
            "2600:1900::/28",
            "2605:ef80::/32",
            "2606:40::/32",
            "2606:73c0::/32",
            "2607:f8b0::/32",
            "2620:11a:a000::/40",
            "2620:120:e000::/40",
            "2800:3f0::/32",
            "2a00:1450::/32",
            "2c0f:fb50::/32",
        ],
    ),
    ("Meta", &["2401:db00::/32", "2620:0:1c00::/40", "2803:6080::/32", "2a03:2880::/32", "2c0f:ef78::/32"]),
    ("Microsoft", &["2406:e500::/32", "2603:1000::/24", "2620:1ec::/36", "2a01:110::/31"]),
    ("Netflix", &["2607:fb10::/32", "2620:10c:7000::/44", "2a00:86c0::/32"]),
    ("Quad9", &["2620:fe::/48"]),
    ("Telegram", &["2001:67c:4e8::/48", "2001:b28:f23c::/46", "2a0a:f280::/32"]),
    ("Wikimedia", &["2001:df2:e500::/48", "2620:0:860::/46", "2a02:ec80::/29"]),
    (
        "root name servers",
        &["2001:500::/30", "2001:7fd::/32", "2001:7fe::/32", "2001:dc3::/32", "2801:1b8:10::/48"],
    ),
    // Teredo and 6to4: each address stands for one of IPv4.
    ("tunnels of IPv6 over IPv4", &["2001::/32", "2002::/16"]),
];

const RESOLVERS: &str = "public resolvers";

/// Returns the service that has a part of this prefix.
pub(super) fn owner_of(net: Ipv6Net) -> Option<&'static str> {
    let overlaps = |known: Ipv6Net| known.contains(&net) || net.contains(&known);
    let listed =
        SERVICES.iter().find(|(_, networks)| networks.iter().any(|text| text.parse().is_ok_and(overlaps)));
    listed.map(|(owner, _)| *owner).or_else(|| {
        let mut resolvers = doh_servers::networks();
        resolvers.any(|known| matches!(known, IpNet::V6(known) if overlaps(known))).then_some(RESOLVERS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_is_read_and_listed_once() {
        let texts: Vec<&str> = SERVICES.iter().flat_map(|(_, networks)| networks.iter().copied()).collect();
        let nets: Vec<Ipv6Net> = texts.iter().map(|text| text.parse().expect(text)).collect();
        for (index, net) in nets.iter().enumerate() {
            assert_eq!(net.addr(), net.network(), "{net} has bits behind its length");
            let others = nets.iter().enumerate().filter(|(other, _)| *other != index);
            assert!(others.clone().all(|(_, other)| !other.contains(net)), "{net} is in another one");
        }
    }

    #[test]
    fn prefixes_around_and_inside_of_a_network_have_its_owner() {
        let owner = |text: &str| owner_of(text.parse().unwrap());
        assert_eq!(owner("2a00:1450:1:2::/64"), Some("Google"));
        assert_eq!(owner("2a00::/12"), Some("Akamai"));
        assert_eq!(owner("2a00:1451::/48"), None);
        assert_eq!(owner("2001:db8::/32"), None);
        assert_eq!(owner("2a07:a8c1:7fff::/48"), Some(RESOLVERS));
    }
}
