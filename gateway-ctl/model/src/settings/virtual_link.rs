//! Bridges and VLAN interfaces that the gateway makes.

use serde::{Deserialize, Serialize};

use crate::id::IfName;
use crate::problem::{Problems, code};

/// A bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeLink {
    pub name: IfName,
    /// Interfaces that are its ports. They have no addresses of their own.
    #[serde(default)]
    pub ports: Vec<IfName>,
}

/// A VLAN interface (IEEE 802.1Q).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanLink {
    pub name: IfName,
    pub parent: IfName,
    /// 1 to 4094.
    pub id: u16,
}

const MAX_LINKS: usize = 128;

/// Adds the problems of the lists. `routed` are the interfaces of the LAN and the uplinks.
pub(crate) fn validate(
    bridges: &[BridgeLink],
    vlans: &[VlanLink],
    routed: &[IfName],
    problems: &mut Problems,
) {
    for (path, length) in [("network.bridges", bridges.len()), ("network.vlans", vlans.len())] {
        if length > MAX_LINKS {
            problems.add(code::RANGE, path, format!("At most {MAX_LINKS}."));
        }
    }
    let mut names: Vec<&IfName> = Vec::new();
    let bridge_names =
        (0..).zip(bridges).map(|(i, bridge)| (format!("network.bridges[{i}].name"), &bridge.name));
    let vlan_names = (0..).zip(vlans).map(|(i, vlan)| (format!("network.vlans[{i}].name"), &vlan.name));
    for (path, name) in bridge_names.chain(vlan_names) {
        if ["wg-", "ov-"].iter().any(|prefix| name.as_str().starts_with(prefix)) || name.as_str() == "lo" {
            problems.add(code::CONFLICT, path, "Names of this form are those of tunnels and of loopback.");
        } else if names.contains(&name) {
            problems.add(code::DUPLICATE, path, format!("The name {name} is given twice."));
        } else {
            names.push(name);
        }
    }
    let mut ports: Vec<&IfName> = Vec::new();
    for (index, bridge) in bridges.iter().enumerate() {
        for (position, port) in bridge.ports.iter().enumerate() {
            let path = format!("network.bridges[{index}].ports[{position}]");
            if *port == bridge.name || bridges.iter().any(|other| other.name == *port) {
                problems.add(code::CONFLICT, path, format!("{port} is a bridge: bridges are no ports."));
            } else if routed.contains(port) {
                let message =
                    format!("{port} is a LAN interface or an uplink: name the bridge there instead.");
                problems.add(code::CONFLICT, path, message);
            } else if ports.contains(&port) {
                problems.add(code::DUPLICATE, path, format!("{port} is a port already."));
            } else {
                ports.push(port);
            }
        }
    }
    for (index, vlan) in vlans.iter().enumerate() {
        let path = |field: &str| format!("network.vlans[{index}].{field}");
        if !(1..=4094).contains(&vlan.id) {
            problems.add(code::RANGE, path("id"), "Must be from 1 to 4094.");
        }
        if vlans.iter().any(|other| other.name == vlan.parent) {
            problems.add(code::CONFLICT, path("parent"), "The parent of a VLAN is no VLAN.");
        }
        if vlans[..index].iter().any(|other| other.parent == vlan.parent && other.id == vlan.id) {
            let message = format!("VLAN {} of {} is given twice.", vlan.id, vlan.parent);
            problems.add(code::DUPLICATE, path("id"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::bootstrap::parse;

    fn paths(yaml: &str) -> Vec<String> {
        parse(yaml).err().unwrap_or_default().into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn bridges_and_vlans_are_read() {
        let config = parse(
            "network:\n  wan_iface: eth0\n  lan_iface: [br0, eth2.30]\n  bridges: [{name: br0, ports: [eth1, eth3]}]\n  \
             vlans: [{name: eth2.30, parent: eth2, id: 30}]\n",
        )
        .expect("valid");
        assert_eq!((config.network.bridges[0].ports.len(), config.network.vlans[0].id), (2, 30));
    }

    #[test]
    fn links_that_exclude_each_other_are_refused() {
        let bridges =
            |list: &str| paths(&format!("network: {{wan_iface: eth0, lan_iface: eth1, bridges: {list}}}"));
        assert_eq!(
            bridges("[{name: br0, ports: [eth1]}]"),
            ["network.bridges[0].ports[0]"],
            "a LAN interface"
        );
        assert_eq!(bridges("[{name: br0, ports: [br0]}]"), ["network.bridges[0].ports[0]"]);
        assert_eq!(
            bridges("[{name: br0, ports: [eth5]}, {name: br1, ports: [eth5]}]"),
            ["network.bridges[1].ports[0]"]
        );
        assert_eq!(bridges("[{name: br0}, {name: br0}]"), ["network.bridges[1].name"]);
        assert_eq!(bridges("[{name: wg-x}]"), ["network.bridges[0].name"]);
        let vlans =
            |list: &str| paths(&format!("network: {{wan_iface: eth0, lan_iface: eth1, vlans: {list}}}"));
        assert_eq!(vlans("[{name: a, parent: eth2, id: 0}]"), ["network.vlans[0].id"]);
        assert_eq!(
            vlans("[{name: a, parent: eth2, id: 7}, {name: b, parent: eth2, id: 7}]"),
            ["network.vlans[1].id"]
        );
        assert_eq!(
            vlans("[{name: a, parent: b, id: 7}, {name: b, parent: eth2, id: 8}]"),
            ["network.vlans[0].parent"]
        );
    }
}
