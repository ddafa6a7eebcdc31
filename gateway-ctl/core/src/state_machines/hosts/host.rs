//! A host and its observed names and addresses.

use std::net::IpAddr;

use gateway_model::validated::is_format;
use gateway_model::{Id, MacAddr};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time after the last observation in which a host is online. The service asks quiet hosts in between.
const ONLINE_FOR: SignedDuration = SignedDuration::from_mins(4);
/// Time after the last observation in which the verdict on the gateway counts a host.
const PRESENT_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of addresses of a host. Privacy addresses (RFC 8981) come and go.
const MAX_ADDRESSES: usize = 16;
const MAX_NAMES: usize = 4;
const MAX_NAME_LENGTH: usize = 64;
/// Prefix of ids of hosts, which distinguishes them from those of stored objects.
const ID_PREFIX: u128 = 0x686f_7374_0000_8000_8000 << 48;

/// Origin of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    /// Name that the host sent to the DHCP server.
    Dhcp,
    /// Name that the host announces by multicast DNS (RFC 6762).
    Mdns,
    /// Product that the host announces by SSDP.
    Ssdp,
    /// Name that an own zone or a reservation gives to an address of the host. The administrator gave it, not the host.
    Dns,
}

/// Name of a host, and its origin. A host can announce any name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostName {
    pub name: String,
    pub from: NameSource,
}

/// Host that was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub mac: MacAddr,
    pub interface: String,
    /// VLAN of the interface.
    pub vlan: Option<u16>,
    /// Addresses with the time of their last observation, the newest last.
    pub addresses: Vec<(IpAddr, Timestamp)>,
    /// One name of each origin.
    pub names: Vec<HostName>,
    /// Vendor class that the host sent to the DHCP server.
    pub vendor_class: Option<String>,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    /// Time of the last answer to the gateway. `None`: the host has never answered, and may be forged.
    pub confirmed_at: Option<Timestamp>,
}

impl Host {
    pub(super) fn new(interface: &str, mac: MacAddr, vlan: Option<u16>, at: Timestamp) -> Host {
        Host {
            mac,
            interface: interface.to_owned(),
            vlan,
            addresses: Vec::new(),
            names: Vec::new(),
            vendor_class: None,
            first_seen: at,
            last_seen: at,
            confirmed_at: None,
        }
    }

    /// Returns the id, which depends on MAC address and interface only.
    pub fn id(&self) -> Id {
        // FNV-1a; 16 bits of it distinguish the interfaces of a gateway.
        let hash = self
            .interface
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let [a, b, c, d, e, f] = self.mac.octets();
        let mac = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let interface = u128::from((hash >> 16) ^ (hash & 0xffff)) << 96;
        Id::from_u128(ID_PREFIX ^ interface | u128::from(mac))
    }

    pub fn is_confirmed(&self) -> bool {
        self.confirmed_at.is_some()
    }

    pub fn is_online(&self, now: Timestamp) -> bool {
        now.duration_since(self.last_seen) <= ONLINE_FOR
    }

    /// Reports whether the host is there as far as the verdict is concerned: it has answered, and was seen in the last day.
    pub fn is_present(&self, now: Timestamp) -> bool {
        self.is_confirmed() && now.duration_since(self.last_seen) <= PRESENT_FOR
    }

    pub fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().map(|(address, _)| *address)
    }

    /// Returns the name that describes the host best.
    pub fn best_name(&self) -> Option<&str> {
        let of = |from: NameSource| self.names.iter().find(move |name| name.from == from);
        let best = of(NameSource::Dhcp).or_else(|| of(NameSource::Mdns)).or_else(|| of(NameSource::Ssdp));
        best.map(|name| name.name.as_str())
    }

    /// Notes an observation. `is_older`: the host may have been there before it was first observed.
    pub(super) fn see(&mut self, at: Timestamp, is_older: bool) {
        self.last_seen = self.last_seen.max(at);
        if is_older {
            self.first_seen = self.first_seen.min(at);
        }
    }

    pub(super) fn add_address(&mut self, address: IpAddr, at: Timestamp) {
        let known = self.addresses.iter().position(|(known, _)| *known == address);
        let at = match known {
            Some(index) => self.addresses.remove(index).1.max(at),
            None => at,
        };
        let index = self.addresses.partition_point(|(_, seen)| *seen <= at);
        self.addresses.insert(index, (address, at));
        if self.addresses.len() > MAX_ADDRESSES {
            self.addresses.remove(0);
        }
    }

    /// Takes a name. Returns `false` if it is none that can be shown.
    pub(super) fn add_name(&mut self, name: &str, from: NameSource) -> bool {
        let Some(name) = readable(name) else { return false };
        self.names.retain(|known| known.from != from);
        self.names.push(HostName { name, from });
        self.names.sort_by_key(|known| known.from);
        self.names.truncate(MAX_NAMES);
        true
    }

    /// Takes what an earlier run knew of the host. What was observed since is newer.
    pub(super) fn join(&mut self, earlier: Host) {
        for (address, at) in earlier.addresses {
            self.add_address(address, at);
        }
        let unknown = |name: &HostName| self.names.iter().all(|known| known.from != name.from);
        let mut names: Vec<HostName> = earlier.names.into_iter().filter(unknown).collect();
        self.names.append(&mut names);
        self.names.sort_by_key(|known| known.from);
        self.vendor_class = self.vendor_class.take().or(earlier.vendor_class);
        self.first_seen = self.first_seen.min(earlier.first_seen);
        self.last_seen = self.last_seen.max(earlier.last_seen);
        self.confirmed_at = self.confirmed_at.max(earlier.confirmed_at);
    }

    pub(super) fn set_vendor_class(&mut self, class: &str) {
        self.vendor_class = readable(class).or_else(|| self.vendor_class.take());
    }
}

/// Returns a text from the network as it may be shown: without control and format characters, and not too long. `None` if
/// nothing is left.
fn readable(text: &str) -> Option<String> {
    let is_shown = |c: &char| !c.is_control() && !is_format(*c);
    let text: String = text.chars().filter(is_shown).take(MAX_NAME_LENGTH).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
