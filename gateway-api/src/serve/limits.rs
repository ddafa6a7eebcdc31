//! Limits of the listeners.

use std::time::Duration;

/// Limits of the clients of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Timeout from the connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// Timeout of the headers of a request. For HTTP/1 it includes the pause before the request.
    pub headers: Duration,
    /// Timeout between the requests of an HTTP/2 connection.
    pub idle: Duration,
    /// Timeout of unacknowledged data. A client that accepts no data for this time is disconnected.
    pub unacknowledged: Duration,
    /// Maximum number of concurrent connections. A further one takes the place of the longest idle one of the address with
    /// the most.
    pub connections: usize,
    /// Maximum number of concurrent connections per address.
    pub per_address: usize,
    /// Maximum number of concurrent connections of loopback or the local socket, beside the others. A reverse proxy serves
    /// many clients.
    pub loopback: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(20),
            idle: Duration::from_secs(60),
            unacknowledged: Duration::from_secs(60),
            connections: 512,
            per_address: 64,
            loopback: 512,
        }
    }
}
