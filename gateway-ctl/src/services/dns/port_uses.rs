//! Other programs at the ports of the resolver.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gateway_core::health::{PortUse, Protocol};
use parking_lot::Mutex;

use crate::os::port_use;

/// Loss of hosts without the resolver.
pub const LOST: &str = "hosts get no answers to DNS queries";
/// Time for which the list of other programs at the port is valid. It reads the descriptors of all processes.
const PORT_USES_AGE: Duration = Duration::from_secs(5);

/// Other programs at the ports of the resolver, as they were found last.
#[derive(Debug, Default)]
pub(super) struct PortUses(Mutex<KnownUses>);

#[derive(Debug, Default)]
struct KnownUses {
    at: Option<Instant>,
    uses: BTreeMap<(Protocol, u16), Vec<PortUse>>,
}

impl PortUses {
    pub(super) fn at(&self, protocol: Protocol, port: u16) -> Vec<PortUse> {
        let mut known = self.0.lock();
        if known.at.is_none_or(|at| at.elapsed() > PORT_USES_AGE) {
            *known = KnownUses { at: Some(Instant::now()), uses: BTreeMap::new() };
        }
        let read = || {
            let others = port_use::others_at(protocol, port);
            others
                .inspect_err(|error| tracing::debug!(%error, "failed to read the sockets of this host"))
                .ok()
        };
        known.uses.entry((protocol, port)).or_insert_with(|| read().unwrap_or_default()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_are_listed_again_after_a_while() {
        let uses = PortUses::default();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = socket.local_addr().expect("bound").port();
        assert!(uses.at(Protocol::Udp, port).is_empty(), "own sockets are none of others");
        assert_eq!(uses.0.lock().uses.len(), 1);
    }
}
