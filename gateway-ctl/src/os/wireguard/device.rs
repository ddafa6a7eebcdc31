//! A WireGuard device and its peers: as they shall be, and as they are.

use std::net::SocketAddr;
use std::time::SystemTime;

use gateway_model::wgconf::Key;
use ipnet::IpNet;

/// What carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Kernel,
    Userspace,
}

/// A device as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Interface name, at most 15 bytes.
    pub name: String,
    pub private_key: Key,
    /// `None`: any free port, kept for the life of the device.
    pub listen_port: Option<u16>,
    /// Mark of the outer packets; 0 for none.
    pub fwmark: u32,
    pub mtu: u16,
    pub peers: Vec<PeerConfig>,
}

/// A peer as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    pub public_key: [u8; 32],
    pub preshared_key: Option<Key>,
    /// Where to reach the peer until it is heard from elsewhere; `None` leaves what is known.
    pub endpoint: Option<SocketAddr>,
    /// A network that several peers claim belongs to the last of them.
    pub allowed_ips: Vec<IpNet>,
    pub persistent_keepalive: Option<u16>,
}

/// A device as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStatus {
    pub engine: Engine,
    pub public_key: [u8; 32],
    /// 0 while the kernel has not chosen one (it does when the link goes up).
    pub listen_port: u16,
    /// In the order of their public keys.
    pub peers: Vec<PeerStatus>,
}

/// A peer as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerStatus {
    pub public_key: [u8; 32],
    /// Where the peer was heard from last, else where it is configured to be.
    pub endpoint: Option<SocketAddr>,
    pub last_handshake: Option<SystemTime>,
    /// Outer bytes received, authenticated packets only.
    pub rx_bytes: u64,
    /// Outer bytes sent.
    pub tx_bytes: u64,
}

/// The cover traffic of a userspace device. Counts grow while cover is on; bytes are those of the datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoverStatus {
    /// There is a peer that cover can go to.
    pub session: bool,
    /// Sent for somebody.
    pub normal_packets: u64,
    pub normal_bytes: u64,
    /// Sent as cover.
    pub padding_packets: u64,
    pub padding_bytes: u64,
    /// Packets of cover that the budget held back.
    pub throttled: u64,
}

/// Packets of a userspace device that went nowhere, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Not WireGuard, or not IP.
    pub malformed: u64,
    /// WireGuard, but forged, replayed, stale or under load without a cookie.
    pub rejected: u64,
    /// No peer has the inner destination, or none with an endpoint; no peer has the claimed key or session.
    pub no_peer: u64,
    /// The inner source address does not belong to the peer that sent it.
    pub wrong_source: u64,
    /// The network refused the outer packet.
    pub send_failed: u64,
    /// The TUN device refused the inner packet (its link is down), or gave one that cannot be split.
    pub device_failed: u64,
}
