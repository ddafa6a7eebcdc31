//! LAN interfaces that come and go: those of the access point, and the VLAN interfaces of segments.

use gateway_core::network::{ApNetwork, InterfaceSettings, Network};
use gateway_core::segment_links;
use gateway_model::State;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::groups::InterfaceMethod;
use ipnet::IpNet;

/// Returns the interfaces with an address by `network.ap`: that of the access point, and that of its guest network.
pub(super) fn access_point_addresses(config: &Bootstrap) -> Vec<(String, IpNet, bool)> {
    let Some(ap) = &config.network.ap else { return Vec::new() };
    let own = (ap.lan_interface(&config.network.bridges).to_string(), ap.address(), false);
    let guest = ap.guest_network().map(|guest| (guest.interface.to_string(), guest.address(), true));
    [own].into_iter().chain(guest).collect()
}

/// Returns the networks of the access point that the gateway runs.
pub(super) fn access_point(config: &Bootstrap) -> Vec<ApNetwork> {
    let Some(ap) = config.network.ap.as_ref().filter(|ap| ap.enabled) else { return Vec::new() };
    let dhcp_of_guest = ap.guest_network().is_some_and(|guest| guest.dhcp);
    let network = |(interface, address, is_guest)| ApNetwork {
        interface,
        address,
        dhcp: if is_guest { dhcp_of_guest } else { ap.dhcp },
        is_guest,
    };
    access_point_addresses(config).into_iter().map(network).collect()
}

/// Adds the VLAN interfaces of segments. They are LANs, and have an address unless they are configured.
pub(super) fn add_segments(network: &mut Network, state: &State, config: &Bootstrap) {
    network.segment_links = segment_links::of_segments(state, &config.network.vlans);
    let uplinks = config.uplinks();
    network.segment_links.retain(|name, _| !uplinks.iter().any(|uplink| uplink.as_str() == name));
    for (name, link) in &network.segment_links {
        if !network.lan.contains(name) {
            network.lan.push(name.clone());
        }
        let address = link.address;
        network.interfaces.entry(name.clone()).or_insert_with(|| InterfaceSettings {
            method: InterfaceMethod::Static,
            address,
            on_demand: true,
            yields: true,
            ..InterfaceSettings::default()
        });
    }
}
