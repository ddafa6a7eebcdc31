//! Withdrawal of IPv6 from hosts with `block_ipv6`: they use IPv4 at once, and need not wait for errors.
//!
//! It also takes back what another program, such as radvd, announces for the gateway. Other hosts keep that.

use std::net::Ipv6Addr;

use gateway_core::facts::Facts;
use gateway_core::router_advertisement::{MAX_PREFIXES, withdrawal};
use gateway_model::State;
use gateway_model::settings::groups::PrivacyBlocks;
use ipnet::{IpNet, Ipv6Net};

/// Multicast address of all hosts (RFC 2464, section 7).
pub(super) const ALL_HOSTS: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// Packet for hosts of an interface.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Withdrawal {
    /// Index of the interface.
    pub interface: u32,
    pub packet: Vec<u8>,
}

/// Returns the MAC addresses of hosts whose IPv6 is blocked.
pub(super) fn hosts(state: &State) -> Vec<[u8; 6]> {
    let blocks: PrivacyBlocks = state.group();
    if blocks.all.block_ipv6 {
        return vec![ALL_HOSTS];
    }
    let blocked = state.devices.iter().filter(|device| blocks.of(device, state).block_ipv6);
    blocked.filter_map(|device| Some(device.mac?.octets())).collect()
}

/// Returns a withdrawal for each LAN interface that can be a router. Prefixes of local addresses (RFC 4193) stay.
pub(super) fn withdrawals(lan: &[String], facts: &Facts) -> Vec<Withdrawal> {
    let of_interface = |name: &String| {
        let link = facts.links.get(name).filter(|link| link.up && link.mac.is_some())?;
        let addresses = facts.addresses.get(name)?;
        let nets = addresses.iter().filter_map(|net| match net {
            IpNet::V6(net) => Some(*net),
            IpNet::V4(_) => None,
        });
        let router = nets.clone().map(|net| net.addr()).find(Ipv6Addr::is_unicast_link_local)?;
        let global = |net: &Ipv6Net| !net.addr().is_unicast_link_local() && !net.addr().is_unique_local();
        let prefixes: Vec<Ipv6Net> = nets.filter(global).map(|net| net.trunc()).take(MAX_PREFIXES).collect();
        Some(Withdrawal { interface: link.index, packet: withdrawal(router, &prefixes) })
    };
    lan.iter().filter_map(of_interface).collect()
}

#[cfg(test)]
mod tests {
    use gateway_core::facts::Link;
    use gateway_core::router_advertisement::parse;

    use super::*;

    #[test]
    fn each_lan_interface_takes_back_its_global_prefixes() {
        let mut facts = Facts::default();
        for (name, index) in [("lan0", 2), ("lan1", 3), ("wan0", 4)] {
            let link = Link { index, up: true, mac: Some([2; 6]), ..Link::default() };
            facts.links.insert(name.to_owned(), link);
        }
        let addresses = ["192.168.1.1/24", "fe80::1/64", "2001:db8:1::1/64", "fd00:1::1/64"];
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        facts.addresses.insert("lan0".to_owned(), addresses);
        facts.addresses.insert("wan0".to_owned(), ["fe80::4/64".parse().unwrap()].into());
        let lan = ["lan0", "lan1", "lan2"].map(str::to_owned);
        let [withdrawal] = &withdrawals(&lan, &facts)[..] else { panic!("one interface is a router") };
        let shown = parse(&withdrawal.packet).unwrap();
        assert_eq!((withdrawal.interface, shown.lifetime), (2, 0));
        assert_eq!(shown.source, "fe80::1".parse::<Ipv6Addr>().unwrap());
        assert!(shown.nets().eq(["2001:db8:1::/64".parse().unwrap()]));
    }
}
