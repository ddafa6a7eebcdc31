//! Summaries of captured packets: addresses, the innermost known protocol, and a line of text about its content.
//!
//! Pure: it keeps the connections whose later packets do not show their protocol, and touches nothing else. Any bytes give
//! a summary. Headers of the link, IP and transport are read by `etherparse`, DNS by `hickory-proto`, DHCP by `dhcproto`.

#![forbid(unsafe_code)]

mod application;
mod arp;
mod connections;
mod dhcp;
mod dns;
mod icmp;
mod layers;
pub mod quic;
mod stun;
mod text;
mod tls;
mod transport;
mod wireguard;

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connections::Dissector;
pub use tls::{message_server_name, requested_server_name};

/// Format of the first header of a captured packet (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkType {
    Ethernet,
    /// IP packets without a header of the link: WireGuard, TUN.
    Raw,
    /// Cooked packets of Linux.
    LinuxSll,
    Ppp,
    /// BSD loopback.
    Null,
}

/// Innermost protocol of a packet that a summary tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CapturedProtocol")]
pub enum Protocol {
    #[serde(rename = "Ethernet")]
    Ethernet,
    #[serde(rename = "ARP")]
    Arp,
    #[serde(rename = "IPv4")]
    Ipv4,
    #[serde(rename = "IPv6")]
    Ipv6,
    #[serde(rename = "ICMP")]
    Icmp,
    #[serde(rename = "ICMPv6")]
    Icmpv6,
    #[serde(rename = "IGMP")]
    Igmp,
    #[serde(rename = "TCP")]
    Tcp,
    #[serde(rename = "UDP")]
    Udp,
    #[serde(rename = "DNS")]
    Dns,
    #[serde(rename = "mDNS")]
    Mdns,
    #[serde(rename = "DHCP")]
    Dhcp,
    #[serde(rename = "DHCPv6")]
    Dhcpv6,
    #[serde(rename = "TLS")]
    Tls,
    #[serde(rename = "QUIC")]
    Quic,
    #[serde(rename = "WireGuard")]
    Wireguard,
    #[serde(rename = "STUN")]
    Stun,
}

/// Summary of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// IP address, else the MAC address; empty if the packet has neither.
    pub source: String,
    pub destination: String,
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
    pub protocol: Protocol,
    /// Id of the outermost VLAN tag.
    pub vlan: Option<u16>,
    /// Text about the content, without control characters.
    pub info: String,
}

impl Summary {
    fn of(protocol: Protocol) -> Summary {
        Summary {
            source: String::new(),
            destination: String::new(),
            source_port: None,
            destination_port: None,
            protocol,
            vlan: None,
            info: String::new(),
        }
    }
}

/// Addresses and ports of a transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Endpoints {
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
}

impl Endpoints {
    fn has_port(&self, port: u16) -> bool {
        self.source.1 == port || self.destination.1 == port
    }

    /// Returns the same value for both directions of a connection.
    fn connection(&self) -> [(IpAddr, u16); 2] {
        let mut both = [self.source, self.destination];
        both.sort_unstable();
        both
    }
}
