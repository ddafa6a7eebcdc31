//! Connection limits: for all clients together and for each client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;

use super::settings::Streams;

/// Number of connections of each client. An IPv6 client is its /64, because it can use any address in it.
#[derive(Debug, Default)]
pub struct ConnectionLimiter(Mutex<HashMap<IpAddr, usize>>);

impl ConnectionLimiter {
    /// Counts a connection from this address. Returns false, without counting it, if a limit is reached.
    pub(super) fn enter(&self, from: IpAddr, limits: &Streams) -> bool {
        let from = client(from);
        let mut connections = self.0.lock();
        let all: usize = connections.values().sum();
        let own = connections.entry(from).or_insert(0);
        if all >= limits.connections || *own >= limits.per_client {
            if *own == 0 {
                connections.remove(&from);
            }
            return false;
        }
        *own += 1;
        true
    }

    /// Ends a counted connection from this address.
    pub(super) fn release(&self, from: IpAddr) {
        let from = client(from);
        let mut connections = self.0.lock();
        if let Some(own) = connections.get_mut(&from) {
            *own -= 1;
            if *own == 0 {
                connections.remove(&from);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.0.lock().values().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the address that identifies a client: the IPv4 address, or the IPv6 /64.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_address_or_by_slash_64() {
        let same = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|text| client(text.parse().expect("an address")));
            a == b
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:1:2:3"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
    }
}
