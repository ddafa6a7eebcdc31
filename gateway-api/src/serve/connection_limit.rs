//! Limits of open connections, in total and per address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::peer::Peer;

pub(super) struct ConnectionLimit {
    free: Arc<Semaphore>,
    per_address: usize,
    counts: Arc<ConnectionCounts>,
}

type ConnectionCounts = Mutex<BTreeMap<IpAddr, usize>>;

/// Slot of a connection. Dropping it frees the slot.
pub(super) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    address: Option<(IpAddr, Arc<ConnectionCounts>)>,
}

impl ConnectionLimit {
    pub fn new(connections: usize, per_address: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(connections)), per_address, counts: Arc::default() }
    }

    /// Waits for a free slot.
    pub async fn free(&self) -> OwnedSemaphorePermit {
        self.free.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Takes a slot for a peer. `None` if its address has reached its limit.
    pub fn take(&self, permit: OwnedSemaphorePermit, peer: &Peer) -> Option<ConnectionSlot> {
        let counted = peer.ip().filter(|address| !address.is_loopback()).map(network);
        let Some(address) = counted else { return Some(ConnectionSlot { _permit: permit, address: None }) };
        let mut counts = lock(&self.counts);
        let count = counts.entry(address).or_default();
        if *count >= self.per_address {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot { _permit: permit, address: Some((address, self.counts.clone())) })
    }
}

/// Returns the counted network: an IPv4 address, or the /64 of an IPv6 address. A host can use any address of its /64.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::from(std::net::Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some((address, counts)) = &self.address else { return };
        let mut counts = lock(counts);
        if let Some(count) = counts.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(address);
            }
        }
    }
}

fn lock(counts: &ConnectionCounts) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Remote { address: std::net::SocketAddr::new(address.parse().unwrap(), 1), tls: false }
    }

    #[tokio::test]
    async fn an_address_has_its_share_and_gets_it_back() {
        let slots = ConnectionLimit::new(10, 2);
        let take = async |address: &str| slots.take(slots.free().await, &peer(address));
        let first = take("192.0.2.1").await;
        let _second = take("192.0.2.1").await.unwrap();
        assert!(first.is_some() && take("192.0.2.1").await.is_none());
        assert!(take("::ffff:192.0.2.1").await.is_none());
        let _other = take("192.0.2.2").await.unwrap();
        drop(first);
        assert!(take("192.0.2.1").await.is_some());
        let _six = (take("2001:db8::1").await.unwrap(), take("2001:db8::2").await.unwrap());
        assert!(take("2001:db8::3").await.is_none() && take("2001:db8:0:1::3").await.is_some());
    }

    #[tokio::test]
    async fn loopback_and_the_local_socket_are_only_counted_together() {
        let slots = ConnectionLimit::new(4, 1);
        let mut kept = Vec::new();
        for peer in [peer("127.0.0.1"), peer("127.0.0.1"), peer("::1"), Peer::Local] {
            kept.push(slots.take(slots.free().await, &peer).unwrap());
        }
        assert!(slots.free.clone().try_acquire_owned().is_err());
        kept.pop();
        assert!(slots.free.clone().try_acquire_owned().is_ok());
    }
}
