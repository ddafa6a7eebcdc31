//! What was lost, since the start.

use std::sync::atomic::AtomicU64;

#[derive(Debug, Default)]
pub struct Counts {
    /// Questions that were dropped because too many waited.
    pub overloaded: AtomicU64,
    /// Answers that the kernel did not take.
    pub unsent: AtomicU64,
    /// Connections that were closed because there were too many.
    pub crowded: AtomicU64,
}
