//! Loop that logs the hits of the kernel cache and removes expired entries.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::serve::Shared;

/// Interval between two collections of hits; [`IDLE_INTERVAL`] while the cache is empty.
const COLLECT_INTERVAL: Duration = Duration::from_millis(25);
const IDLE_INTERVAL: Duration = Duration::from_millis(200);
/// Collections between two sweeps.
const SWEEP_ROUNDS: u32 = 32;

impl Shared {
    /// Collects hits, sweeps the cache and brings the filter up to date until [`KernelCache::end`](super::KernelCache::end).
    pub fn run_kernel_cache(&self) {
        crate::lower_priority();
        let mut rounds: u32 = 0;
        while !self.kernel_cache.ended.load(Ordering::Acquire) {
            let idle = self.kernel_cache.lock().len() == 0;
            std::thread::sleep(if idle { IDLE_INTERVAL } else { COLLECT_INTERVAL });
            self.kernel_cache.collect();
            self.sync_kernel_filter();
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(SWEEP_ROUNDS) {
                self.kernel_cache.sweep();
            }
        }
        self.kernel_cache.collect();
        self.collect_filter_hits();
    }
}
