//! TLS of the daemon against independent peers: OpenSSL as a classic client and server, rustls configured independently
//! of the factory, curl, and deliberately slow clients.
//!
//! Most tests serve a gateway without a kernel on loopback; `daemon` runs the real one and needs root.

mod certificates;
mod daemon;
mod modes;
mod outbound;
mod peers;
mod slow;
mod testbed;

use std::time::Duration;

/// Timeout of expected events.
const SOON: Duration = Duration::from_secs(15);
