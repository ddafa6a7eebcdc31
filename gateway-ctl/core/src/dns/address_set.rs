//! Networks of an address list, with a lookup of the network that contains an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::domain_set::Effect;

/// Networks, each with its effect.
#[derive(Clone, Debug, Default)]
pub struct Nets {
    groups: Vec<Group>,
}

/// Networks with the same effect, in ascending order. None lies within another.
#[derive(Clone, Debug)]
struct Group {
    effect: Effect,
    four: Vec<Ipv4Net>,
    six: Vec<Ipv6Net>,
}

/// Collector of networks in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetCollector {
    groups: Vec<Group>,
}

impl NetCollector {
    pub(crate) fn add(&mut self, net: IpNet, effect: Effect) {
        let known = self.groups.iter().position(|group| group.effect == effect);
        let group = match known {
            Some(index) => &mut self.groups[index],
            None => {
                self.groups.push(Group { effect, four: Vec::new(), six: Vec::new() });
                self.groups.last_mut().expect("it was just put there")
            }
        };
        match net {
            IpNet::V4(net) => group.four.push(net.trunc()),
            IpNet::V6(net) => group.six.push(net.trunc()),
        }
    }

    pub(crate) fn finish(mut self) -> Nets {
        for group in &mut self.groups {
            group.four.sort_unstable_by_key(|net| (net.network(), net.prefix_len()));
            group.six.sort_unstable_by_key(|net| (net.network(), net.prefix_len()));
            // A network that begins within the previous one lies in it.
            group.four.dedup_by(|next, kept| kept.contains(&*next));
            group.six.dedup_by(|next, kept| kept.contains(&*next));
            group.four.shrink_to_fit();
            group.six.shrink_to_fit();
        }
        Nets { groups: self.groups }
    }
}

impl Nets {
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.four.len() + group.six.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the longest network that contains the address. An IPv4 address embedded in an IPv6 one is looked up as
    /// IPv4.
    pub fn find(&self, address: IpAddr) -> Option<(IpNet, Effect)> {
        let found = match address.to_canonical() {
            IpAddr::V4(address) => self.four(address),
            IpAddr::V6(address) => {
                let six = self.groups.iter().filter_map(|group| {
                    let after = group.six.partition_point(|net| net.network() <= address);
                    let net = group.six[..after].last().filter(|net| net.contains(&address))?;
                    Some((IpNet::V6(*net), group.effect))
                });
                longest(six).or_else(|| embedded(address).and_then(|address| self.four(address)))
            }
        };
        found.filter(|_| !self.groups.is_empty())
    }

    fn four(&self, address: Ipv4Addr) -> Option<(IpNet, Effect)> {
        longest(self.groups.iter().filter_map(|group| {
            let after = group.four.partition_point(|net| net.network() <= address);
            let net = group.four[..after].last().filter(|net| net.contains(&address))?;
            Some((IpNet::V4(*net), group.effect))
        }))
    }
}

/// Returns the longest network; of equal ones, the one that allows.
fn longest(found: impl Iterator<Item = (IpNet, Effect)>) -> Option<(IpNet, Effect)> {
    found.max_by_key(|(net, effect)| (net.prefix_len(), effect.allows()))
}

/// Returns the IPv4 address behind the well-known prefix of NAT64 (RFC 6052).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = address.octets().strip_prefix(&[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0])?.try_into();
    last.ok().map(|octets: [u8; 4]| Ipv4Addr::from(octets))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nets(entries: &[(&str, Effect)]) -> Nets {
        let mut collect = NetCollector::default();
        entries.iter().for_each(|(net, effect)| collect.add(net.parse().expect("a network"), *effect));
        collect.finish()
    }

    #[test]
    fn the_longest_network_decides() {
        let nets = nets(&[
            ("192.0.2.0/24", Effect::Block),
            ("192.0.2.7/32", Effect::Allow),
            ("192.0.2.128/25", Effect::Block),
            ("2001:db8::/32", Effect::Nxdomain),
        ]);
        assert_eq!(nets.len(), 3, "a network within another is not kept");
        let find = |text: &str| {
            nets.find(text.parse().expect("an address")).map(|(net, effect)| (net.to_string(), effect))
        };
        assert_eq!(find("192.0.2.200"), Some(("192.0.2.0/24".to_owned(), Effect::Block)));
        assert_eq!(find("192.0.2.7"), Some(("192.0.2.7/32".to_owned(), Effect::Allow)));
        assert_eq!(find("192.0.3.0"), None);
        assert_eq!(find("2001:db8::1"), Some(("2001:db8::/32".to_owned(), Effect::Nxdomain)));
        assert_eq!(find("2001:db9::1"), None);
    }

    #[test]
    fn an_ipv4_address_within_an_ipv6_one_is_found() {
        let nets = nets(&[("192.0.2.0/24", Effect::Block)]);
        for text in ["::ffff:192.0.2.1", "64:ff9b::192.0.2.1"] {
            assert!(nets.find(text.parse().expect("an address")).is_some(), "{text}");
        }
        assert!(nets.find("64:ff9c::192.0.2.1".parse().expect("an address")).is_none());
    }

    proptest! {
        #[test]
        fn lookup_agrees_with_a_linear_search_of_networks(
            entries in prop::collection::vec((any::<bool>(), 0u32..64, 20u8..=32, any::<bool>()), 0..40),
            asked in prop::collection::vec((any::<bool>(), 0u32..64), 1..40),
        ) {
            let address = |six: bool, low: u32| match six {
                true => IpAddr::V6(Ipv6Addr::from(0x2001_u128 << 112 | u128::from(low))),
                false => IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | low)),
            };
            let mut collect = NetCollector::default();
            let mut plain = Vec::new();
            for (six, low, length, allow) in entries {
                let length = if six { length + 96 } else { length };
                let net = IpNet::new(address(six, low), length).expect("a network").trunc();
                let effect = if allow { Effect::Allow } else { Effect::Block };
                collect.add(net, effect);
                plain.push((net, effect));
            }
            let nets = collect.finish();
            for (six, low) in asked {
                let address = address(six, low);
                // Only the outermost network of each effect is kept.
                let outermost = |wanted: Effect| plain.iter()
                    .filter(|(net, effect)| *effect == wanted && net.contains(&address))
                    .map(|(net, _)| net.prefix_len()).min();
                let want = [Effect::Allow, Effect::Block].into_iter()
                    .filter_map(|effect| Some((outermost(effect)?, effect.allows()))).max();
                let have = nets.find(address).map(|(net, effect)| (net.prefix_len(), effect.allows()));
                prop_assert_eq!(have, want);
            }
        }
    }
}
