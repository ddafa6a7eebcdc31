//! The key `network.ap` of the configuration.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::settings::uplink::Wan;
use crate::validated::Cidr;

/// Address of the gateway on the network of an access point, or on any other network of the LAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPoint {
    /// LAN interface of the access point.
    pub interface: IfName,
    pub subnet: Cidr,
    /// Address of the gateway in the subnet.
    pub ip: IpAddr,
}

impl AccessPoint {
    /// Returns the address with the length of the subnet.
    pub fn address(&self) -> IpNet {
        IpNet::new(self.ip, self.subnet.net().prefix_len()).unwrap_or_else(|_| self.ip.into())
    }

    /// Returns why the address cannot be one of the subnet.
    fn refusal(&self) -> Option<String> {
        let net = self.subnet.net().trunc();
        if !net.contains(&self.ip) {
            return Some(format!("Must be inside of network.ap.subnet ({net})."));
        }
        if net.max_prefix_len() - net.prefix_len() < 2 {
            return None;
        }
        if self.ip == net.network() {
            return Some(format!("{} is the address of the network {net} itself.", self.ip));
        }
        (self.ip.is_ipv4() && self.ip == net.broadcast())
            .then(|| format!("{} is the broadcast address of {net}.", self.ip))
    }

    /// Reports what is wrong.
    pub(super) fn validate(&self, lans: &[IfName], uplinks: &[Wan], problems: &mut Problems) {
        if !lans.contains(&self.interface) {
            let message = format!("{} is no LAN interface.", self.interface);
            problems.add(code::UNKNOWN_REFERENCE, "network.ap.interface", message).allowed =
                Some(lans.iter().map(ToString::to_string).collect());
        }
        let net = self.subnet.net();
        if net.prefix_len() == 0 || net.addr().is_multicast() || net.addr().is_loopback() {
            problems.add(code::RANGE, "network.ap.subnet", "Expected a network of hosts.");
        } else if net.prefix_len() == net.max_prefix_len() {
            problems.add(code::RANGE, "network.ap.subnet", "Has no room for hosts.");
        }
        if let Some(why) = self.refusal() {
            problems.add(code::RANGE, "network.ap.ip", why);
        }
        let mut gateways = uplinks.iter().filter_map(Wan::gateway_address);
        if let Some(gateway) = gateways.find(|gateway| net.contains(gateway)) {
            let message = format!("{} holds {gateway}, the router of an uplink.", net.trunc());
            problems.add(code::CONFLICT, "network.ap.subnet", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    fn file(ap: &str) -> String {
        format!("network: {{ lan_iface: [eth1, wlan0], wan_iface: eth0, ap: {ap} }}")
    }

    #[test]
    fn address_is_one_of_a_host_inside_of_the_subnet_of_a_lan_interface() {
        for valid in [
            "null",
            "{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.1 }",
            "{ interface: eth1, subnet: 10.9.0.0/31, ip: 10.9.0.0 }",
            "{ interface: wlan0, subnet: 'fd09::/64', ip: 'fd09::1' }",
        ] {
            parse(&file(valid)).unwrap_or_else(|errors| panic!("{valid}: {errors:?}"));
        }
        for (wrong, path) in [
            ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.1.1 }", "ip"),
            ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 'fd09::1' }", "ip"),
            ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.0 }", "ip"),
            ("{ interface: wlan0, subnet: 10.9.0.0/24, ip: 10.9.0.255 }", "ip"),
            ("{ interface: wlan0, subnet: 'fd09::/64', ip: 'fd09::' }", "ip"),
            ("{ interface: eth0, subnet: 10.9.0.0/24, ip: 10.9.0.1 }", "interface"),
            ("{ interface: wlan0, subnet: 10.9.0.1/32, ip: 10.9.0.1 }", "subnet"),
            ("{ interface: wlan0, subnet: 224.0.0.0/24, ip: 224.0.0.1 }", "subnet"),
            ("{ interface: wlan0, ip: 10.9.0.1 }", "subnet"),
        ] {
            let errors = parse(&file(wrong)).unwrap_err();
            assert_eq!(errors[0].path, format!("network.ap.{path}"), "{wrong}: {errors:?}");
        }
    }

    #[test]
    fn subnet_does_not_hold_the_router_of_an_uplink() {
        let ap = "ap: { interface: eth1, subnet: 192.0.2.0/24, ip: 192.0.2.1 }";
        let wans = "wans: [{ interface: eth0, gateway: 192.0.2.254 }]";
        let errors = parse(&format!("network: {{ lan_iface: eth1, {wans}, {ap} }}")).unwrap_err();
        assert_eq!(errors[0].path, "network.ap.subnet", "{errors:?}");
    }
}
