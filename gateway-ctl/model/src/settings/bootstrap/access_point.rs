//! The key `network.ap` of the configuration: the network of an access point, and the access point itself.

mod wireless;

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use wireless::{Band, ChannelWidth, WirelessSecurity};

use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::uplink::Wan;
use crate::settings::virtual_link::{BridgeLink, VlanLink};
use crate::validated::Cidr;

/// Network of an access point, and the access point that the gateway runs.
///
/// Decision 0219 says why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPoint {
    /// LAN interface of the access point, or a port of a bridge that is one.
    pub interface: IfName,
    pub subnet: Cidr,
    /// Address of the gateway in the subnet.
    pub ip: IpAddr,
    /// The gateway runs the access point. Otherwise it only has the address.
    #[serde(default)]
    pub enabled: bool,
    /// Name of the wireless network.
    #[serde(default)]
    pub ssid: String,
    #[serde(default, rename(serialize = "has_passphrase", deserialize = "passphrase"))]
    pub passphrase: Secret,
    #[serde(default)]
    pub security: WirelessSecurity,
    #[serde(default)]
    pub band: Band,
    /// Number of the channel. Without one: 6, or 36 in the band of 5 GHz.
    #[serde(default)]
    pub channel: Option<u8>,
    #[serde(default)]
    pub width_mhz: ChannelWidth,
    /// ISO 3166 code of the country whose rules hold for the radio.
    #[serde(default)]
    pub country: Option<String>,
    /// Stations do not reach one another.
    #[serde(default)]
    pub isolation: bool,
    /// The gateway gives out addresses: the upper three quarters of the subnet.
    #[serde(default = "yes")]
    pub dhcp: bool,
    #[serde(default)]
    pub guest: Option<GuestNetwork>,
}

/// Second wireless network, whose stations reach the internet alone: not one another, nor another network of the LAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNetwork {
    #[serde(default = "yes")]
    pub enabled: bool,
    pub ssid: String,
    #[serde(default, rename(serialize = "has_passphrase", deserialize = "passphrase"))]
    pub passphrase: Secret,
    /// Name of the interface, which comes and goes with the access point. It is a LAN interface.
    #[serde(default = "guest_interface")]
    pub interface: IfName,
    pub subnet: Cidr,
    pub ip: IpAddr,
    #[serde(default = "yes")]
    pub dhcp: bool,
}

/// Other settings of the network, with which those of an access point must agree.
pub(super) struct Surroundings<'a> {
    pub lans: &'a [IfName],
    /// The access point is a LAN without being listed.
    pub is_portable: bool,
    pub wan: &'a IfName,
    pub wans: &'a [Wan],
    pub bridges: &'a [BridgeLink],
    pub vlans: &'a [VlanLink],
}

const fn yes() -> bool {
    true
}

fn guest_interface() -> IfName {
    "ap-guest".parse().expect("a valid interface name")
}

impl AccessPoint {
    /// Returns the address with the length of the subnet.
    pub fn address(&self) -> IpNet {
        with_length(self.ip, self.subnet)
    }

    /// Returns the interface that has the address: the bridge whose port the access point is, or its own one.
    pub fn lan_interface<'a>(&'a self, bridges: &'a [BridgeLink]) -> &'a IfName {
        self.bridge(bridges).unwrap_or(&self.interface)
    }

    /// Returns the bridge whose port the access point is.
    pub fn bridge<'a>(&self, bridges: &'a [BridgeLink]) -> Option<&'a IfName> {
        bridges.iter().find(|bridge| bridge.ports.contains(&self.interface)).map(|bridge| &bridge.name)
    }

    /// Returns the channel in use.
    pub fn used_channel(&self) -> u8 {
        self.channel.unwrap_or_else(|| self.band.default_channel())
    }

    /// Returns the first channel of the block of 80 MHz around the channel, and the index of the channel in it.
    pub fn channel_block(&self) -> Option<(u8, u8)> {
        wireless::block_of(self.used_channel())
    }

    /// Returns the guest network while it is on.
    pub fn guest_network(&self) -> Option<&GuestNetwork> {
        self.guest.as_ref().filter(|guest| self.enabled && guest.enabled)
    }

    /// Reports what is wrong.
    pub(super) fn validate(&self, network: &Surroundings<'_>, problems: &mut Problems) {
        let lans = network.lans;
        let interface = self.lan_interface(network.bridges);
        if !lans.contains(interface) && !network.is_portable {
            let message = format!("{interface} is no LAN interface.");
            problems.add(code::UNKNOWN_REFERENCE, "network.ap.interface", message).allowed =
                Some(lans.iter().map(ToString::to_string).collect());
        }
        validate_network("network.ap", self.ip, self.subnet, network.wans, problems);
        if self.enabled {
            let channel = self.used_channel();
            wireless::validate(self.band, channel, self.width_mhz, self.country.as_deref(), problems);
            validate_wireless("network.ap", &self.ssid, &self.passphrase, problems);
        }
        if let Some(guest) = &self.guest {
            guest.validate(self, network, problems);
        }
    }
}

impl GuestNetwork {
    /// Returns the address with the length of the subnet.
    pub fn address(&self) -> IpNet {
        with_length(self.ip, self.subnet)
    }

    fn validate(&self, of: &AccessPoint, network: &Surroundings<'_>, problems: &mut Problems) {
        validate_network("network.ap.guest", self.ip, self.subnet, network.wans, problems);
        let (one, other) = (self.subnet.net().trunc(), of.subnet.net().trunc());
        if one.contains(&other) || other.contains(&one) {
            let message = format!("Overlaps network.ap.subnet ({other}).");
            problems.add(code::CONFLICT, "network.ap.guest.subnet", message);
        }
        let name = &self.interface;
        let made =
            network.bridges.iter().map(|link| &link.name).chain(network.vlans.iter().map(|link| &link.name));
        let is_taken = network.lans.contains(name)
            || *name == of.interface
            || name == network.wan
            || network.wans.iter().any(|wan| wan.interface == *name)
            || made.into_iter().any(|made| made == name)
            || ["wg-", "ov-"].iter().any(|prefix| name.as_str().starts_with(prefix));
        if is_taken {
            let message = format!("{name} is the name of another interface, or of a tunnel.");
            problems.add(code::CONFLICT, "network.ap.guest.interface", message);
        }
        if of.enabled && self.enabled {
            validate_wireless("network.ap.guest", &self.ssid, &self.passphrase, problems);
            if self.ssid == of.ssid {
                let message = "Both wireless networks have this name.";
                problems.add(code::DUPLICATE, "network.ap.guest.ssid", message);
            }
        }
    }
}

fn with_length(ip: IpAddr, subnet: Cidr) -> IpNet {
    IpNet::new(ip, subnet.net().prefix_len()).unwrap_or_else(|_| ip.into())
}

/// Returns why the address cannot be one of the subnet.
fn refusal(path: &str, ip: IpAddr, subnet: Cidr) -> Option<String> {
    let net = subnet.net().trunc();
    if !net.contains(&ip) {
        return Some(format!("Must be inside of {path}.subnet ({net})."));
    }
    if net.max_prefix_len() - net.prefix_len() < 2 {
        return None;
    }
    if ip == net.network() {
        return Some(format!("{ip} is the address of the network {net} itself."));
    }
    (ip.is_ipv4() && ip == net.broadcast()).then(|| format!("{ip} is the broadcast address of {net}."))
}

/// Reports what is wrong with a subnet and the address in it.
fn validate_network(path: &str, ip: IpAddr, subnet: Cidr, uplinks: &[Wan], problems: &mut Problems) {
    let of_subnet = format!("{path}.subnet");
    let net = subnet.net();
    if net.prefix_len() == 0 || net.addr().is_multicast() || net.addr().is_loopback() {
        problems.add(code::RANGE, &of_subnet, "Expected a network of hosts.");
    } else if net.prefix_len() == net.max_prefix_len() {
        problems.add(code::RANGE, &of_subnet, "Has no room for hosts.");
    }
    if let Some(why) = refusal(path, ip, subnet) {
        problems.add(code::RANGE, format!("{path}.ip"), why);
    }
    let mut gateways = uplinks.iter().filter_map(Wan::gateway_address);
    if let Some(gateway) = gateways.find(|gateway| net.contains(gateway)) {
        let message = format!("{} holds {gateway}, the router of an uplink.", net.trunc());
        problems.add(code::CONFLICT, &of_subnet, message);
    }
}

/// Reports what is wrong with the name and the passphrase of a wireless network.
fn validate_wireless(path: &str, ssid: &str, passphrase: &Secret, problems: &mut Problems) {
    let of_ssid = format!("{path}.ssid");
    if ssid.is_empty() {
        problems.required(&of_ssid);
    } else if ssid.len() > 32 || ssid.chars().any(char::is_control) {
        problems.add(code::RANGE, &of_ssid, "Has 1 to 32 bytes, and no control characters.");
    }
    let of_passphrase = format!("{path}.passphrase");
    if !passphrase.is_set() {
        problems.required(&of_passphrase);
    } else if passphrase.is_readable() && !is_passphrase(passphrase.expose()) {
        problems.add(code::RANGE, &of_passphrase, "Has 8 to 63 printable characters of ASCII.");
    }
}

/// IEEE 802.11 calls this the ASCII pass-phrase.
fn is_passphrase(text: &str) -> bool {
    (8..=63).contains(&text.len()) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

#[cfg(test)]
mod tests;
