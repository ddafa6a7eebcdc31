//! TLS of the daemon against peers that are not ours: OpenSSL as a classic client and server, rustls configured apart
//! from the factory, curl, and clients that are slow on purpose.
//!
//! Most of it serves a gateway without a kernel on loopback; `daemon` runs the real one and needs root.

mod certificates;
mod daemon;
mod modes;
mod outbound;
mod peers;
mod slow;
mod testbed;

use std::time::Duration;

/// How long anything may take that is to happen.
const SOON: Duration = Duration::from_secs(15);
