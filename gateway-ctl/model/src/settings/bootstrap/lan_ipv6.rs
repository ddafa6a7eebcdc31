//! The section `network.ipv6` of the configuration.

use std::net::Ipv6Addr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::validated::Cidr;

/// Lifetimes that hosts may be given. RFC 9096, section 3.4, limits them: hosts forget a stale prefix soon enough.
const LIFETIMES_SEC: std::ops::RangeInclusive<u16> = 60..=2700;
/// Smallest MTU of IPv6 (RFC 8200, section 5).
const MIN_MTU: u32 = 1280;
/// Largest number of resolvers in an advertisement.
const MAX_RESOLVERS: usize = 8;

/// IPv6 of the LANs: router advertisements, stateless DHCPv6 and prefix delegation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LanIpv6 {
    pub enabled: bool,
    /// Requests prefixes from the uplinks (RFC 8415).
    pub delegation: bool,
    /// Takes delegated prefixes that are shorter than /48 or networks of public services, too.
    pub trust_delegation: bool,
    /// Prefix that the LANs have whatever the uplinks delegate; each LAN gets a /64 of it, in their order.
    pub prefix: Option<Cidr>,
    /// Resolvers for hosts. Empty: the gateway.
    pub rdnss: Vec<Ipv6Addr>,
    /// MTU for hosts. None: that of their own interfaces.
    pub mtu: Option<u32>,
    /// Seconds for which hosts use the gateway, its resolvers and its prefixes without a further advertisement.
    pub lifetime_sec: u16,
}

impl Default for LanIpv6 {
    fn default() -> LanIpv6 {
        LanIpv6 {
            enabled: false,
            delegation: true,
            trust_delegation: false,
            prefix: None,
            rdnss: Vec::new(),
            mtu: None,
            lifetime_sec: 1800,
        }
    }
}

impl LanIpv6 {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if let Some(prefix) = &self.prefix {
            match prefix.net() {
                IpNet::V4(_) => {
                    problems.add(code::FORMAT, "network.ipv6.prefix", "Expected an IPv6 prefix.");
                }
                IpNet::V6(net) if net.prefix_len() > 64 => {
                    problems.add(code::RANGE, "network.ipv6.prefix", "Must be a /64 or shorter.");
                }
                IpNet::V6(net) if !is_for_hosts(net.addr()) => {
                    let message = "Expected a unique local prefix (fd00::/8) or a global one (2000::/3).";
                    problems.add(code::RANGE, "network.ipv6.prefix", message);
                }
                IpNet::V6(_) => {}
            }
        }
        if self.rdnss.len() > MAX_RESOLVERS {
            let message = format!("At most {MAX_RESOLVERS} resolvers.");
            problems.add(code::RANGE, "network.ipv6.rdnss", message);
        }
        for (index, address) in self.rdnss.iter().enumerate() {
            if address.is_multicast() || address.is_unspecified() || address.is_loopback() {
                let path = format!("network.ipv6.rdnss[{index}]");
                problems.add(code::FORMAT, path, "Expected the address of a host.");
            }
        }
        if self.mtu.is_some_and(|mtu| !(MIN_MTU..=65_535).contains(&mtu)) {
            problems.add(code::RANGE, "network.ipv6.mtu", "Must be from 1280 to 65535.");
        }
        if !LIFETIMES_SEC.contains(&self.lifetime_sec) {
            problems.add(code::RANGE, "network.ipv6.lifetime_sec", "Must be from 60 to 2700.");
        }
    }
}

/// Reports whether hosts have addresses there: a unique local address (RFC 4193) or a global one (RFC 4291).
pub fn is_for_hosts(address: Ipv6Addr) -> bool {
    address.is_unique_local() || address.segments()[0] >> 13 == 1
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn only_prefixes_for_hosts_and_bounded_lifetimes_are_valid() {
        for valid in [
            "enabled: true",
            "prefix: fd12:3456:789a::/48, mtu: 1280, lifetime_sec: 60",
            "prefix: '2001:db8:1::/64', rdnss: ['fd00::53'], mtu: null",
        ] {
            parse(&format!("network: {{ ipv6: {{ {valid} }} }}"))
                .unwrap_or_else(|errors| panic!("{valid}: {errors:?}"));
        }
        for (wrong, key) in [
            ("prefix: 10.0.0.0/8", "prefix"),
            ("prefix: 'fd00::/65'", "prefix"),
            ("prefix: 'fe80::/64'", "prefix"),
            ("prefix: 'ff00::/8'", "prefix"),
            ("rdnss: ['ff02::1']", "rdnss[0]"),
            ("mtu: 1279", "mtu"),
            ("lifetime_sec: 2701", "lifetime_sec"),
        ] {
            let errors = parse(&format!("network: {{ ipv6: {{ {wrong} }} }}")).unwrap_err();
            assert_eq!(errors[0].path, format!("network.ipv6.{key}"), "{wrong}");
        }
    }
}
