//! Numbers of packets, and the packets for the end of the daemon.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::withdrawal;
use crate::handles::in_memory;
use crate::os::router_socket::RouterSocket;

/// Counters and last announcements of the LANs, shared with the end of the daemon and the metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouterAnnouncements(Arc<Mutex<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    counters: AnnouncementCounters,
    /// Packets by which the gateway ends to be a router, by interface index.
    farewells: BTreeMap<u32, Vec<u8>>,
}

/// Numbers of packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnnouncementCounters {
    pub advertisements: u64,
    /// Advertisements that could not be sent.
    pub failed: u64,
    pub solicitations: u64,
    /// Packets that took IPv6 back from blocked hosts.
    pub withdrawals: u64,
    /// Replies to information requests of DHCPv6.
    pub information_replies: u64,
}

in_memory!(RouterAnnouncements);

impl RouterAnnouncements {
    pub(crate) fn counters(&self) -> AnnouncementCounters {
        self.0.lock().counters
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut AnnouncementCounters)) {
        add(&mut self.0.lock().counters);
    }

    pub(super) fn set_farewells(&self, farewells: BTreeMap<u32, Vec<u8>>) {
        self.0.lock().farewells = farewells;
    }

    /// Ends the use of the gateway as a router, at the end of the daemon. Hosts keep their addresses.
    pub(crate) fn end(&self) {
        let farewells = std::mem::take(&mut self.0.lock().farewells);
        if farewells.is_empty() {
            return;
        }
        let sent = RouterSocket::open().and_then(|socket| {
            let send = |(interface, packet): (&u32, &Vec<u8>)| {
                socket.send(packet, *interface, withdrawal::ALL_HOSTS)
            };
            farewells.iter().map(send).fold(Ok(()), io::Result::and)
        });
        if let Err(error) = sent {
            tracing::warn!(%error, "failed to withdraw the gateway as an IPv6 router");
        }
    }
}
