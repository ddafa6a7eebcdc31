//! Time for which a tap observes. The kernel copies each packet for it, so a burst ends the observation.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Interval at which packets are counted during an observation.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Observation that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub duration: Duration,
    pub packets: u64,
}

/// Waits for a time, or until more packets than the budget of that time have passed. `count` returns the number of packets
/// so far.
pub(super) async fn observe(duration: Duration, budget: u64, count: impl Fn() -> u64) -> Observed {
    let (begun, before) = (Instant::now(), count());
    loop {
        let left = duration.saturating_sub(begun.elapsed());
        // No thread waits: the daemon would not end before it.
        sleep(left.min(CHECK_INTERVAL)).await;
        let observed = Observed { duration: begun.elapsed(), packets: count().saturating_sub(before) };
        if observed.duration >= duration || observed.packets > budget {
            return observed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observes a second with a budget of 1 000 packets, while so many pass in each second.
    async fn at_rate(packets: u64) -> Observed {
        let start = Instant::now();
        let count = move || u64::try_from(start.elapsed().as_millis()).unwrap() * packets / 1000;
        observe(Duration::from_secs(1), 1000, count).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_an_observation() {
        let whole = Observed { duration: Duration::from_secs(1), packets: 900 };
        assert_eq!(at_rate(900).await, whole);
        let cut = Observed { duration: Duration::from_millis(200), packets: 200_000 };
        assert_eq!(at_rate(1_000_000).await, cut);
        assert_eq!(at_rate(2_000).await.duration, Duration::from_millis(600));
    }
}
