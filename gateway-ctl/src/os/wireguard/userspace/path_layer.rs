//! Layer between a device and its sockets, on devices whose peers are reached in several ways: directly, or by a relay.
//!
//! A relayed peer has an address of the discard-only prefix (RFC 6666), to which the sockets send nothing: the layer gets
//! those datagrams. It also gets datagrams that are not of WireGuard, and filters the packets of peers.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

/// First bytes of the discard-only prefix 100::/64.
const DISCARD: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];
const PORT: u16 = 1;

/// Layer of a device. Its functions are called for each packet and do not wait.
pub trait PathLayer: Send + Sync {
    /// Takes a datagram that arrived, if it is not one of WireGuard. Returns whether it did.
    fn take(&self, datagram: &[u8], from: SocketAddr) -> bool;

    /// Sends a datagram to a relayed peer.
    fn relay(&self, to: SocketAddr, datagram: &[u8]);

    /// Reports whether a packet of a peer may come in. `is_behind`: it is from a network behind the peer, by the device of that
    /// peer, whose flows the kernel knows.
    fn admits(&self, packet: &[u8], is_behind: bool) -> bool;

    /// Notes a packet that goes out to a peer by the main device.
    fn sent(&self, packet: &[u8]);
}

/// Datagrams that a relay delivers, each with the address of its peer.
pub(in super::super) type RelayedDatagrams = Arc<Mutex<mpsc::Receiver<(SocketAddr, Vec<u8>)>>>;

/// Layer of a device, and the datagrams of relays.
#[derive(Clone)]
pub(in super::super) struct Paths {
    pub(in super::super) layer: Arc<dyn PathLayer>,
    pub(in super::super) datagrams: RelayedDatagrams,
}

/// Returns the address that means a relayed peer.
pub fn relayed_address(number: u64) -> SocketAddr {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&DISCARD);
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    SocketAddr::new(Ipv6Addr::from(bytes).into(), PORT)
}

/// Reports whether an address means a relayed peer.
pub(super) fn is_relayed(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if ip.octets().starts_with(&DISCARD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_relayed_peers_are_no_others() {
        assert!(is_relayed(relayed_address(0)) && is_relayed(relayed_address(u64::MAX)));
        assert_ne!(relayed_address(1), relayed_address(2));
        for address in ["192.0.2.1:1", "[2001:db8::1]:1", "[100:0:0:1::1]:1"] {
            assert!(!is_relayed(address.parse().unwrap()), "{address}");
        }
    }
}
