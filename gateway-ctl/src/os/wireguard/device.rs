//! A WireGuard device and its peers: wanted configuration and present status.

use std::net::SocketAddr;
use std::time::SystemTime;

use gateway_model::wgconf::Key;
use ipnet::IpNet;

/// Engine that processes the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Kernel,
    Userspace,
}

/// Wanted configuration of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Interface name, at most 15 bytes.
    pub name: String,
    pub private_key: Key,
    /// UDP port. `None` means any free port, kept for the life of the device.
    pub listen_port: Option<u16>,
    /// Fwmark of the outer packets, 0 for none.
    pub fwmark: u32,
    pub mtu: u16,
    pub peers: Vec<PeerConfig>,
}

/// Wanted configuration of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    pub public_key: [u8; 32],
    pub preshared_key: Option<Key>,
    /// Endpoint of the peer until it sends from another address. `None` keeps the known endpoint.
    pub endpoint: Option<SocketAddr>,
    /// Inner networks of the peer. A network that several peers claim belongs to the last of them.
    pub allowed_ips: Vec<IpNet>,
    pub persistent_keepalive: Option<u16>,
}

/// Present status of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStatus {
    pub engine: Engine,
    pub public_key: [u8; 32],
    /// UDP port, 0 until the kernel has chosen one (when the link goes up).
    pub listen_port: u16,
    /// Peers in the order of their public keys.
    pub peers: Vec<PeerStatus>,
}

/// Present status of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerStatus {
    pub public_key: [u8; 32],
    /// Last observed endpoint of the peer, else the configured one.
    pub endpoint: Option<SocketAddr>,
    pub last_handshake: Option<SystemTime>,
    /// Outer bytes received, authenticated packets only.
    pub rx_bytes: u64,
    /// Outer bytes sent.
    pub tx_bytes: u64,
}

/// Cover traffic of a userspace device. Counters grow while cover is on. Bytes are those of the datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoverStatus {
    /// True if there is a peer that can receive cover.
    pub session: bool,
    /// Packets sent with real traffic.
    pub normal_packets: u64,
    pub normal_bytes: u64,
    /// Packets sent as cover.
    pub padding_packets: u64,
    pub padding_bytes: u64,
    /// Cover packets that the budget held back.
    pub throttled: u64,
}

/// Dropped packets of a userspace device, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Not WireGuard, or not IP.
    pub malformed: u64,
    /// WireGuard, but forged, replayed, stale or under load without a cookie.
    pub rejected: u64,
    /// No peer has the inner destination, or none with an endpoint. Or no peer has the claimed key or session.
    pub no_peer: u64,
    /// The inner source address does not belong to the peer that sent it.
    pub wrong_source: u64,
    /// The packet filter of the mesh does not let the inner packet in.
    pub filtered: u64,
    /// The network refused the outer packet.
    pub send_failed: u64,
    /// The TUN device refused the inner packet (its link is down), or supplied one that cannot be split.
    pub device_failed: u64,
}
