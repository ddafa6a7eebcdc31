//! Limits of the listeners.

use std::time::Duration;

/// Limits of one client.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// For the headers of a request; over HTTP/1 also the pause before it.
    pub headers: Duration,
    /// Between the requests of one HTTP/2 connection.
    pub idle: Duration,
    /// A client that takes no data for so long is cut.
    pub unacknowledged: Duration,
    /// Connections at a time; more of them wait.
    pub connections: usize,
    /// Connections at a time of one address, loopback excepted: a reverse proxy is many clients.
    pub per_address: usize,
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
        }
    }
}
