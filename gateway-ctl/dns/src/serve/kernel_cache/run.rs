//! Loop that logs the hits of the kernel cache and of the kernel filter, and removes expired entries.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::serve::Shared;

/// Interval between two collections of hits; up to [`IDLE_INTERVAL`] while there are neither hits nor entries.
const COLLECT_INTERVAL: Duration = Duration::from_millis(25);
const IDLE_INTERVAL: Duration = Duration::from_millis(200);
/// Shortest interval.
const BUSY_INTERVAL: Duration = Duration::from_millis(4);
/// Number of hits for which the interval is chosen. A collection shares a core with the queries, so it must be short,
/// and the ring buffers must not fill up in between: without a record for its hit, the kernel leaves a query to a worker.
/// Only the first interval after an idle time may be too long.
const BATCH: u32 = 64;
/// Interval between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_millis(800);

impl Shared {
    /// Collects hits, sweeps the cache and brings the filter up to date until [`KernelCache::end`](super::KernelCache::end).
    pub fn run_kernel_cache(&self) {
        crate::lower_priority();
        let (mut interval, mut since_sweep) = (IDLE_INTERVAL, Duration::ZERO);
        while !self.kernel_cache.ended.load(Ordering::Acquire) {
            std::thread::sleep(interval);
            since_sweep += interval;
            let hits = self.kernel_cache.collect() + self.collect_filter_hits();
            self.kernel_filter.sync(&self.kernel_cache, &self.state);
            interval = match hits {
                0 if self.kernel_cache.lock().len() == 0 => IDLE_INTERVAL,
                hits => next_interval(interval, hits),
            };
            if since_sweep >= SWEEP_INTERVAL {
                since_sweep = Duration::ZERO;
                self.kernel_cache.sweep();
            }
        }
        self.kernel_cache.collect();
        self.collect_filter_hits();
    }
}

/// Returns the interval in which [`BATCH`] hits are expected, after that number of hits in the last interval.
fn next_interval(last: Duration, hits: usize) -> Duration {
    let hits = u32::try_from(hits).unwrap_or(u32::MAX).max(1);
    (last * BATCH / hits).clamp(BUSY_INTERVAL, COLLECT_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_follows_the_rate_of_hits() {
        let after = |last, hits| next_interval(last, hits).as_micros();
        assert_eq!(after(IDLE_INTERVAL, 0), 25_000);
        assert_eq!(after(IDLE_INTERVAL, 1), 25_000);
        assert_eq!(after(COLLECT_INTERVAL, 250), 6400);
        assert_eq!(after(Duration::from_micros(6400), 64), 6400);
        assert_eq!(after(BUSY_INTERVAL, 0), 25_000);
        assert_eq!(after(IDLE_INTERVAL, usize::MAX), 4000);
    }
}
