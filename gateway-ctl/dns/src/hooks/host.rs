//! Host that sent a query, and the packet by which it is identified.

use std::net::{IpAddr, SocketAddr};

/// Packet to a socket of the resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub source: SocketAddr,
    pub kind: ArrivalKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// Query over UDP, with the first two bytes of the message: its id.
    Datagram([u8; 2]),
    /// Connection over TCP.
    Connection,
}

/// Host that sent a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub address: IpAddr,
    /// None: the query did not enter by an interface of the LAN.
    pub ingress: Option<Ingress>,
}

/// Identity of a packet at the interface by which it entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ingress {
    /// Source MAC address.
    pub mac: [u8; 6],
    /// Index of the interface; 0 if it was not observed.
    pub interface: u32,
    /// Tag of the packet at that interface, 0 without one.
    pub vlan: u16,
}

impl Host {
    pub fn mac(&self) -> Option<[u8; 6]> {
        self.ingress.map(|ingress| ingress.mac)
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Host {
        Host { address: address.to_canonical(), ingress: None }
    }
}
