//! DHCP reservations: a fixed address for a MAC address.

use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::device::Device;
use crate::bulk_edit::Names;
use crate::id::{Id, MacAddr};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::settings::groups::DhcpConfig;
use crate::state::State;
use crate::validated::{check_free_text, is_host_name};

/// Reservation, identified by the MAC address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DhcpReservation {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub mac: Option<MacAddr>,
    pub ip: Option<Ipv4Addr>,
    /// Host name of the client, whatever name it sends.
    pub hostname: Option<String>,
    pub comment: String,
    /// The device it belongs to.
    pub device_id: Option<Id>,
}

impl Resource for DhcpReservation {
    const NOUN: &'static str = "dhcp_reservation";
    const COLLECTION: &'static str = "dhcp_reservations";
    const REQUIRED: &'static [&'static str] = &["mac", "ip"];
    const LABEL_IS_NAME: bool = false;

    fn label(&self) -> &str {
        self.hostname.as_deref().unwrap_or(&self.comment)
    }

    fn is_named(&self, name: &str) -> bool {
        self.mac.is_some_and(|mac| mac.to_string() == name)
    }

    fn spelling(name: &str) -> String {
        name.parse::<MacAddr>().map_or_else(|_| name.to_owned(), |mac| mac.to_string())
    }

    fn prepare(&mut self) {
        if let Some(hostname) = &mut self.hostname {
            *hostname = hostname.trim_end_matches('.').to_ascii_lowercase();
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        match self.mac {
            None => problems.required("mac"),
            Some(mac) if mac.is_multicast() || mac.octets() == [0; 6] => {
                problems.add(code::RANGE, "mac", "This is no address of a single card.");
            }
            Some(_) => {}
        }
        match self.ip {
            None => problems.required("ip"),
            Some(ip) => check_address(ip, state, problems),
        }
        if let Some(hostname) = &self.hostname
            && (!is_host_name(hostname) || hostname.contains('_'))
        {
            let message = "Expected a host name: letters, digits and hyphens, parts separated by dots.";
            problems.add(code::FORMAT, "hostname", message);
        }
        check_free_text("comment", &self.comment, 1000, problems);
        match self.device_id.map(|id| (id, state.devices.get(id))) {
            Some((id, None)) => {
                problems.add(code::UNKNOWN_REFERENCE, "device_id", format!("There is no device {id}."));
            }
            Some((_, Some(device))) if self.mac.is_some_and(|mac| !device.all_macs().contains(&mac)) => {
                problems.warn("device_id", format!("The device {} does not have this card.", device.name));
            }
            _ => {}
        }
    }

    fn refs(&self) -> Vec<Ref> {
        self.device_id.iter().map(|id| Ref::new(Device::NOUN, id, "device_id", Hold::Firm)).collect()
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        if let Some(device) = input.get_mut("device_id") {
            names.resolve(Device::NOUN, device);
        }
    }

    fn keys(&self, keys: &mut Keys) {
        if let Some(mac) = self.mac {
            keys.unique("mac", mac.to_string());
        }
        if let Some(ip) = self.ip {
            keys.unique("ip", ip.to_string());
        }
        if let Some(hostname) = &self.hostname {
            keys.unique("hostname", format!("name:{hostname}"));
        }
    }
}

fn check_address(ip: Ipv4Addr, state: &State, problems: &mut Problems) {
    if ip.is_unspecified() || ip.is_broadcast() || ip.is_multicast() || ip.is_loopback() {
        problems.add(code::RANGE, "ip", "This is no address of a single card.");
        return;
    }
    let config = state.group::<DhcpConfig>();
    let segment = state.segments.iter().filter(|segment| segment.dhcp);
    let segment = segment.filter_map(|segment| segment.cidr).map(|cidr| cidr.net());
    if let Some(net) = segment.into_iter().find(|net| net.contains(&IpAddr::V4(ip))) {
        if [net.network(), net.broadcast()].contains(&IpAddr::V4(ip)) {
            problems.add(
                code::RANGE,
                "ip",
                format!("{ip} stands for the whole network and belongs to no card."),
            );
        }
        return;
    }
    if config.contains(ip) == Some(false) {
        let message = format!("{ip} is outside of the network whose addresses the DHCP server gives out.");
        problems.add(code::RANGE, "ip", message);
        return;
    }
    let host = u32::from(ip) & !u32::from(config.mask);
    if config.gateway == Some(ip) {
        problems.add(code::CONFLICT, "ip", format!("{ip} is the address of the gateway."));
    } else if config.range_start.is_some() && (host == 0 || host == !u32::from(config.mask)) {
        problems.add(code::RANGE, "ip", format!("{ip} stands for the whole network and belongs to no card."));
    }
}

#[cfg(test)]
mod tests;
