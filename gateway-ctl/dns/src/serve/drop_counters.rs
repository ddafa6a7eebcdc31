//! Drop counters of the resolver since the start.

use std::sync::atomic::AtomicU64;

#[derive(Debug, Default)]
pub struct Counts {
    /// Queries dropped because the queue of the slow path was full.
    pub overloaded: AtomicU64,
    /// Answers that the kernel did not accept.
    pub unsent: AtomicU64,
    /// Queries and connections without an answer because the host is not known.
    pub unidentified: AtomicU64,
    /// Connections closed because of a connection limit.
    pub crowded: AtomicU64,
}
