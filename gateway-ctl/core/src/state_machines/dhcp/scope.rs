//! Scopes: networks with the addresses and parameters that their clients get.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use gateway_model::MacAddr;
use gateway_model::settings::groups::AddressRange;
use ipnet::Ipv4Net;

/// Everything that is configured. The server compares it to know whether something changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    pub scopes: Vec<Scope>,
    /// Reservations by MAC address.
    pub reservations: BTreeMap<MacAddr, Reservation>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub address: Ipv4Addr,
    pub hostname: Option<String>,
}

/// One network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Name of the interface, or of the segment.
    pub name: String,
    pub interface: String,
    /// Index of the interface.
    pub index: u32,
    /// MAC address of the interface.
    pub mac: [u8; 6],
    pub network: Ipv4Net,
    /// Address of the gateway, by which clients identify the server.
    pub server: Ipv4Addr,
    /// The network is the one of the interface. Others are behind a relay (RFC 1542).
    pub on_link: bool,
    pub range: AddressRange,
    pub exclusions: Vec<AddressRange>,
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    pub domain: String,
    pub lease_sec: u32,
    /// Further options as bytes, by code.
    pub options: BTreeMap<u8, Vec<u8>>,
    pub authoritative: bool,
    /// Probe an address before it is offered.
    pub probes: bool,
}

impl Scope {
    /// Reports whether a host of the network may have the address.
    pub fn has_host(&self, address: Ipv4Addr) -> bool {
        self.network.contains(&address)
            && address != self.network.network()
            && address != self.network.broadcast()
            && address != self.server
            && Some(address) != self.router
    }

    pub fn is_excluded(&self, address: Ipv4Addr) -> bool {
        self.exclusions.iter().any(|range| range.contains(address))
    }

    /// Reports whether the address can be given to any client, unless it is reserved.
    pub(super) fn is_allocatable(&self, address: Ipv4Addr) -> bool {
        self.range.contains(address) && self.has_host(address) && !self.is_excluded(address)
    }
}
