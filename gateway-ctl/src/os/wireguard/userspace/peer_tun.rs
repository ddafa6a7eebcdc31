//! TUN devices of single peers: all packets of such a device go to its peer, whichever peer has their destination.
//!
//! Several exits claim the same destinations, so they cannot share one table of networks. Each has a device of its own, while
//! identity, sockets and sessions are those of the main device.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ipnet::IpNet;
use tun_rs::AsyncDevice;

use super::super::allowed_ips::AllowedIps;

/// Wanted TUN device of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerTunConfig {
    /// Interface name, at most 15 bytes.
    pub name: String,
    pub public_key: [u8; 32],
    /// Networks behind the peer. They need not be those of the main device.
    pub networks: Vec<IpNet>,
    pub mtu: u16,
}

/// TUN device of a peer.
pub(super) struct PeerTun {
    pub(super) key: [u8; 32],
    pub(super) tun: AsyncDevice,
    networks: ArcSwap<AllowedIps<()>>,
}

impl PeerTun {
    pub(super) fn new(config: &PeerTunConfig, tun: AsyncDevice) -> PeerTun {
        let networks = ArcSwap::from_pointee(table(&config.networks));
        PeerTun { key: config.public_key, tun, networks }
    }

    /// Sets the networks behind the peer.
    pub(super) fn set_networks(&self, networks: &[IpNet]) {
        self.networks.store(Arc::new(table(networks)));
    }

    /// Reports whether an address is in a network behind the peer.
    pub(super) fn leads_to(&self, address: IpAddr) -> bool {
        self.networks.load().find(address).is_some()
    }
}

/// TUN devices by the keys of their peers.
pub(super) type PeerTuns = BTreeMap<[u8; 32], Arc<PeerTun>>;

fn table(networks: &[IpNet]) -> AllowedIps<()> {
    AllowedIps::new(networks.iter().map(|net| (*net, ())))
}
