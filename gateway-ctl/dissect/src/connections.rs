//! Memory of a capture: connections whose later packets do not show their protocol.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::Endpoints;

/// Maximum number of connections whose protocol is remembered, of each protocol. All are forgotten beyond it.
const MAX_CONNECTIONS: usize = 8192;

/// Reader of the packets of a capture, in their order.
#[derive(Debug, Default)]
pub struct Dissector {
    pub(crate) quic: Connections,
    pub(crate) tls: Connections,
    pub(crate) stun: Connections,
}

/// Connections of a protocol whose later packets do not show it.
#[derive(Debug, Default)]
pub(crate) struct Connections(HashSet<[(IpAddr, u16); 2]>);

impl Connections {
    pub(crate) fn add(&mut self, endpoints: &Endpoints) {
        if self.0.len() >= MAX_CONNECTIONS {
            self.0.clear();
        }
        self.0.insert(endpoints.connection());
    }

    pub(crate) fn contains(&self, endpoints: &Endpoints) -> bool {
        self.0.contains(&endpoints.connection())
    }
}
