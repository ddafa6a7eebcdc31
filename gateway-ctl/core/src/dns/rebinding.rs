//! Protection against DNS rebinding: public names must not lead to hosts that only the network can reach.
//!
//! A page of a public name whose address changes to one of the LAN may read what that host serves: for the browser it is
//! the same origin.
//!
//! An answer with such an address becomes NODATA, for all clients, also while blocking is off. Embedded IPv4 addresses
//! and hints of service records count; the unspecified addresses do not, because filters of upstreams answer blocked
//! names with them. Rejected: removing single addresses, because a mixed answer is an attack as well; an exemption of
//! upstreams with a private address, because they forward public names; one of 127.0.0.0/8 for block lists of mail,
//! because programs of the host listen there.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_model::State;
use gateway_model::domain::DomainName;
use gateway_model::settings::groups::DhcpConfig;

use super::name::{Name, NameRef};
use super::zones::special_use;

/// Addresses that public names may not have, and the domains that may have them.
#[derive(Clone, Debug, Default)]
pub struct Rebinding {
    /// Addresses of the gateway, in ascending order.
    own: Vec<IpAddr>,
    exempt: HashSet<Name>,
}

impl Rebinding {
    /// Local domains are exempt: zones, domains with a forwarder, the domain of the hosts, names for private use; and so
    /// are the `allowed` ones.
    pub fn new(state: &State, allowed: &[DomainName], own: impl Iterator<Item = IpAddr>) -> Rebinding {
        let zones = state.dns_zones.iter().filter(|zone| zone.enabled).map(|zone| &zone.name);
        let forwarders = state.dns_forwarders.iter().filter(|forwarder| forwarder.enabled);
        let forwarded = forwarders.map(|forwarder| &forwarder.domain);
        let mut exempt: HashSet<Name> = zones.chain(forwarded).chain(allowed).map(Name::from).collect();
        let hosts = state.group::<DhcpConfig>().domain;
        let for_private_use = special_use::NAMES.iter().copied().chain([hosts.as_str()]);
        exempt.extend(for_private_use.filter_map(|text| Some(Name::from(&DomainName::parse(text).ok()?))));
        // The root stands for all names.
        exempt.retain(|name| !name.as_ref().is_root());
        let mut own: Vec<IpAddr> = own.collect();
        own.sort_unstable();
        own.dedup();
        Rebinding { own, exempt }
    }

    /// Reports whether a public name may not have the address.
    pub fn is_local(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.is_local_v4(address),
            IpAddr::V6(address) => {
                is_private_v6(address)
                    || embedded_v4(address).into_iter().flatten().any(|inner| self.is_local_v4(inner))
                    || self.is_own(address.into())
            }
        }
    }

    fn is_local_v4(&self, address: Ipv4Addr) -> bool {
        is_private_v4(address) || self.is_own(address.into())
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.own.binary_search(&address).is_ok()
    }

    /// Reports whether the name may have local addresses.
    pub fn is_exempt(&self, name: NameRef<'_>) -> bool {
        name.suffixes().any(|suffix| self.exempt.contains(suffix.wire()))
    }
}

/// Reports whether an address is private (RFC 1918), shared (RFC 6598), link-local or loopback. The unspecified address
/// is the usual answer of filters for blocked names, so it is none.
fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    match a {
        0 => !address.is_unspecified(),
        10 | 127 => true,
        100 => b & 0xc0 == 64,
        169 => b == 254,
        172 => b & 0xf0 == 16,
        192 => b == 168,
        _ => false,
    }
}

/// Reports whether an address is unique local (RFC 4193), link-local, site-local (RFC 3879) or loopback.
fn is_private_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    address.is_loopback() || first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80
}

/// Returns the IPv4 addresses that an IPv6 address may stand for: mapped and compatible ones (RFC 4291), those of NAT64
/// (RFC 6052 and RFC 8215) and of 6to4 (RFC 3056).
fn embedded_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let segments = address.segments();
    let [.., a, b, c, d] = address.octets();
    let last = Some(Ipv4Addr::new(a, b, c, d));
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] => [last, None],
        [0, 0, 0, 0, 0xffff, 0, ..] => [last, None],
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => [last, None],
        // A prefix of 96 bits in it, or that of 48 bits, which leaves out bits 64 to 71.
        [0x64, 0xff9b, 1, high, middle, low, ..] => {
            let ([a, b], [_, c], [d, _]) = (high.to_be_bytes(), middle.to_be_bytes(), low.to_be_bytes());
            [last, Some(Ipv4Addr::new(a, b, c, d))]
        }
        [0x2002, high, low, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            [Some(Ipv4Addr::new(a, b, c, d)), None]
        }
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::{DnsForwarder, DnsZone};
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn protection(allowed: &[&str], own: &[&str]) -> Rebinding {
        let now = Timestamp::UNIX_EPOCH;
        let mut state = State::new(now).begin(now);
        let name = "zone.example".parse().expect("a name");
        state.create(DnsZone { name, ..Default::default() }).expect("a zone");
        for (domain, enabled) in [("corp.example", true), ("off.example", false)] {
            let domain = domain.parse().expect("a name");
            let upstreams = vec!["192.0.2.53".to_owned()];
            let forwarder = DnsForwarder { domain, upstreams, enabled, ..Default::default() };
            state.create(forwarder).expect("a forwarder");
        }
        let allowed: Vec<DomainName> = allowed.iter().map(|text| text.parse().expect("a name")).collect();
        Rebinding::new(&state, &allowed, own.iter().map(|text| text.parse().expect("an address")))
    }

    #[test]
    fn local_addresses_in_every_form_are_recognised() {
        let protection = protection(&[], &["203.0.113.9", "2001:db8:1::9"]);
        let local = [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "127.0.0.1",
            "127.1.2.3",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.1",
            "203.0.113.9",
            "fd00::1",
            "fc00::1",
            "fe80::1",
            "fec0::1",
            "::1",
            "::ffff:192.168.1.1",
            "::ffff:127.0.0.1",
            "::192.168.1.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::192.168.1.1",
            "64:ff9b:1:c0a8:1:100::",
            "2002:c0a8:101::1",
            "::ffff:203.0.113.9",
            "64:ff9b::203.0.113.9",
            "2001:db8:1::9",
        ];
        for text in local {
            assert!(protection.is_local(text.parse().expect("an address")), "{text}");
        }
        let public = [
            "0.0.0.0",
            "::",
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "169.253.0.1",
            "203.0.113.8",
            "2606:4700::1111",
            "64:ff9b::1.1.1.1",
            "::ffff:1.1.1.1",
            "2002:101:101::1",
            "2001:db8:1::8",
        ];
        for text in public {
            assert!(!protection.is_local(text.parse().expect("an address")), "{text}");
        }
    }

    #[test]
    fn local_domains_and_allowed_ones_are_exempt() {
        let protection = protection(&["plex.direct", "."], &[]);
        let is_exempt = |text: &str| {
            let name = Name::from(&DomainName::parse(text).expect("a name"));
            protection.is_exempt(name.as_ref())
        };
        for exempt in
            ["a.zone.example", "corp.example", "x.corp.example", "nas.lan", "a.home.arpa", "a-b.plex.direct"]
        {
            assert!(is_exempt(exempt), "{exempt}");
        }
        for public in ["example", "off.example", "notcorp.example", "direct", "example.com"] {
            assert!(!is_exempt(public), "{public}");
        }
    }

    proptest! {
        /// No form of an IPv6 address hides a local IPv4 address.
        #[test]
        fn embedded_addresses_are_as_local_as_they_are_alone(octets in any::<[u8; 4]>(), local in any::<bool>()) {
            let mut octets = octets;
            if local {
                octets[0] = 10;
            }
            let inner = Ipv4Addr::from(octets);
            let protection = protection(&[], &[]);
            let [a, b, c, d] = octets.map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            let forms = [
                Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ];
            for form in forms {
                prop_assert_eq!(protection.is_local(form.into()), protection.is_local(inner.into()), "{}", form);
            }
        }
    }
}
