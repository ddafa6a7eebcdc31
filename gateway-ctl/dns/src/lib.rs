//! DNS resolver: listeners, local answers, cache and upstreams.
//!
//! `gateway_core::dns` decides the answers. The daemon provides clients, query routes and the FQDN policy through the
//! traits of [`hooks`].
//!
//! It needs neither store nor kernel, so it is built, fuzzed and measured without the daemon.
//!
//! Decision 0133 says why it is not hickory-server.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use clocks and sockets of their own"))]

pub(crate) mod cache;
mod downloads;
pub mod extfilter;
pub mod hooks;
pub mod lists;
pub mod query_log;
pub mod resolver;
pub mod serve;
pub mod signing;
mod threads;
pub mod transfer;
pub mod upstream;
pub(crate) mod wall_clock;
pub mod wire;

// Former name of [`hooks`], which `lists` and `transfer` still use.

pub use resolver::Resolver;
pub use serve::Settings;
pub use wall_clock::WallClock;

/// Lowers the priority of the calling thread below the threads that answer queries.
fn lower_priority() {
    const NICE: i32 = 5;
    // A failure only costs speed.
    let _ = rustix::process::setpriority_process(None, NICE);
}
