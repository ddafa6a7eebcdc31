//! Addresses of interfaces: set by hand, by a DHCP client of the daemon, or left as the host has them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    /// Source of the addresses of an interface.
    #[derive(Default)]
    pub enum InterfaceMethod {
        /// The configuration.
        Static = "static",
        /// A DHCP client of the daemon.
        Dhcp = "dhcp",
        /// The host: the daemon changes nothing.
        #[default]
        None = "none",
    }
}

/// Configuration of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterfaceConfig {
    pub method: InterfaceMethod,
    /// Address of the method `static`, which needs it.
    pub address: Option<IpAddr>,
    /// Length of its prefix.
    pub prefix: Option<u8>,
    /// Router of the method `static`. At an uplink it is that of the default route; at other interfaces it serves what the
    /// host sends from the address of the interface.
    pub gateway: Option<IpAddr>,
    /// Name servers of the network. With the method `dhcp`, `state` has those of the lease.
    pub dns: Vec<IpAddr>,
    /// 576 to 65535; null keeps that of the interface.
    pub mtu: Option<u16>,
}

/// Configurations by interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct InterfacesConfig(pub BTreeMap<IfName, InterfaceConfig>);

/// Each needs rules of its own.
const MAX_INTERFACES: usize = 64;
const MAX_DNS: usize = 8;
/// IPv6 needs so much (RFC 8200, section 5).
const MIN_MTU_IPV6: u16 = 1280;

impl InterfaceConfig {
    /// Returns the address with its prefix of the method `static`.
    pub fn network(&self) -> Option<IpNet> {
        let is_static = self.method == InterfaceMethod::Static;
        IpNet::new(self.address.filter(|_| is_static)?, self.prefix?).ok()
    }

    /// Adds the problems of the fields.
    pub fn validate(&self, path: &str, problems: &mut Problems) {
        let at = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
        if self.method == InterfaceMethod::Static {
            self.validate_static(&at, problems);
        } else {
            for (field, is_given) in [
                ("address", self.address.is_some()),
                ("prefix", self.prefix.is_some()),
                ("gateway", self.gateway.is_some()),
            ] {
                if is_given {
                    problems.warn(at(field), format!("Not used with the method {}.", self.method));
                }
            }
        }
        if self.dns.len() > MAX_DNS {
            problems.add(code::RANGE, at("dns"), format!("At most {MAX_DNS} servers."));
        }
        for (index, server) in self.dns.iter().enumerate() {
            if !is_host(*server) {
                problems.add(code::FORMAT, at(&format!("dns[{index}]")), "Expected the address of a host.");
            }
        }
        if self.mtu.is_some_and(|mtu| mtu < 576) {
            problems.add(code::RANGE, at("mtu"), "Must be from 576 to 65535.");
        }
    }

    fn validate_static(&self, at: &impl Fn(&str) -> String, problems: &mut Problems) {
        let Some(address) = self.address else { return problems.required(at("address")) };
        let Some(prefix) = self.prefix else { return problems.required(at("prefix")) };
        let Ok(net) = IpNet::new(address, prefix).map_err(drop) else {
            let most = if address.is_ipv4() { 32 } else { 128 };
            problems.add(code::RANGE, at("prefix"), format!("Must be from 1 to {most}."));
            return;
        };
        if prefix == 0 {
            problems.add(code::RANGE, at("prefix"), "Must be at least 1.");
        }
        let is_edge = prefix < net.max_prefix_len() - 1
            && (address == net.network() || address.is_ipv4() && address == net.broadcast());
        if !is_host(address) || is_edge {
            problems.add(code::FORMAT, at("address"), "Expected the address of a host in its network.");
        }
        if address.is_ipv6() && self.mtu.is_some_and(|mtu| mtu < MIN_MTU_IPV6) {
            problems.add(code::RANGE, at("mtu"), format!("IPv6 needs at least {MIN_MTU_IPV6}."));
        }
        let Some(gateway) = self.gateway else { return };
        if gateway.is_ipv4() != address.is_ipv4() {
            problems.add(code::CONFLICT, at("gateway"), "The gateway is of another family than the address.");
        } else if gateway == address || !is_host(gateway) {
            problems.add(code::FORMAT, at("gateway"), "Expected the address of another host.");
        } else if !net.contains(&gateway) {
            problems
                .warn(at("gateway"), format!("{gateway} is not in {}; it must be a neighbour.", net.trunc()));
        }
    }
}

/// Reports whether a host may have this address.
fn is_host(address: IpAddr) -> bool {
    let is_broadcast =
        matches!(address, IpAddr::V4(address) if address.is_broadcast() || address.octets()[0] == 0);
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_broadcast)
}

impl Group for InterfacesConfig {
    const KEY: &'static str = "interfaces";
    const NOUN: &'static str = "interfaces";

    fn validate(&self, _: &State, problems: &mut Problems) {
        if self.0.len() > MAX_INTERFACES {
            problems.add(code::RANGE, "", format!("At most {MAX_INTERFACES} interfaces."));
        }
        let networks: Vec<(&IfName, IpNet)> =
            self.0.iter().filter_map(|(name, config)| Some((name, config.network()?))).collect();
        for (name, config) in &self.0 {
            config.validate(name.as_str(), problems);
            let Some(own) = config.network() else { continue };
            let overlaps = |net: &IpNet| net.contains(&own.trunc()) || own.trunc().contains(&net.trunc());
            let other = networks.iter().find(|(other, net)| *other != name && overlaps(net));
            if let Some((other, net)) = other {
                let message = format!("The network overlaps {} of {other}.", net.trunc());
                problems.add(code::CONFLICT, format!("{name}.address"), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(config: Value) -> Vec<String> {
        let config: InterfaceConfig = serde_json::from_value(config).unwrap();
        let mut problems = Problems::new();
        config.validate("", &mut problems);
        problems.list().iter().map(|problem| problem.path.clone()).collect()
    }

    #[test]
    fn static_addresses_need_all_of_their_fields() {
        assert_eq!(problems(json!({"method": "static"})), ["address"]);
        assert_eq!(problems(json!({"method": "static", "address": "192.0.2.1"})), ["prefix"]);
        let good =
            json!({"method": "static", "address": "192.0.2.1", "prefix": 24, "gateway": "192.0.2.254"});
        assert!(problems(good).is_empty());
        let point_to_point = json!({"method": "static", "address": "192.0.2.0", "prefix": 31});
        assert!(problems(point_to_point).is_empty());
    }

    #[test]
    fn addresses_that_no_host_has_are_refused() {
        for (address, prefix) in [
            ("192.0.2.0", 24),
            ("192.0.2.255", 24),
            ("127.0.0.1", 8),
            ("224.0.0.1", 4),
            ("0.0.0.0", 8),
            ("::1", 128),
        ] {
            let config = json!({"method": "static", "address": address, "prefix": prefix});
            assert_eq!(problems(config), ["address"], "{address}/{prefix}");
        }
        assert_eq!(problems(json!({"method": "static", "address": "192.0.2.1", "prefix": 33})), ["prefix"]);
        let gateway = |gateway: &str| json!({"method": "static", "address": "192.0.2.1", "prefix": 24, "gateway": gateway});
        assert_eq!(problems(gateway("fd00::1")), ["gateway"]);
        assert_eq!(problems(gateway("192.0.2.1")), ["gateway"]);
        assert_eq!(problems(json!({"mtu": 100, "dns": ["255.255.255.255"]})), ["dns[0]", "mtu"]);
    }

    #[test]
    fn networks_of_two_interfaces_do_not_overlap() {
        let one = json!({"method": "static", "address": "192.0.2.1", "prefix": 24});
        let two = json!({"method": "static", "address": "192.0.2.130", "prefix": 25});
        let group: InterfacesConfig = serde_json::from_value(json!({"eth2": one, "eth3": two})).unwrap();
        let mut problems = Problems::new();
        group.validate(&State::default(), &mut problems);
        assert!(problems.has("eth2.address") && problems.has("eth3.address"), "{problems}");
    }
}
