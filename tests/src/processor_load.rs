//! Load of the processors since a sample, from `/proc/stat`. Tests start networks while the processors are idle, and wait
//! longer while they are not.

use std::time::{Duration, Instant};

/// Counts at one time.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    taken: Instant,
    ticks: Ticks,
}

/// Ticks of all processors since the start of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    total: u64,
    idle: u64,
    /// Time of processes at a low priority.
    nice: u64,
}

impl Sample {
    /// Returns none on a system without `/proc/stat`.
    pub fn take() -> Option<Self> {
        let ticks = Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { taken: Instant::now(), ticks })
    }

    pub fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    /// Returns the share of the processors' time that work took since this sample: 0 to 1.
    pub fn busy(&self) -> f64 {
        Self::take().map_or(1.0, |now| now.ticks.since(self.ticks, 0))
    }

    /// Returns [`Sample::busy`] without the work of processes at a low priority, which give way to others. A process
    /// that has a low priority itself competes with them.
    pub fn busy_for_us(&self) -> f64 {
        let Some(now) = Self::take() else { return 1.0 };
        let gives_way = if is_nice() { 0 } else { now.ticks.nice.saturating_sub(self.ticks.nice) };
        now.ticks.since(self.ticks, gives_way)
    }
}

impl Ticks {
    /// Parses the first line, `cpu user nice system idle iowait irq softirq steal guest guest_nice`. The times of guests
    /// are in those of user and nice already.
    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = fields.take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let [_, nice, _, idle, iowait, ..] = ticks.as_slice() else { return None };
        Some(Self { total: ticks.iter().sum(), idle: idle + iowait, nice: *nice })
    }

    /// Returns the busy share since earlier ticks, without `less` of them.
    fn since(self, earlier: Self, less: u64) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        let idle = self.idle.saturating_sub(earlier.idle) + less;
        if total == 0 { 1.0 } else { 1.0 - (idle as f64 / total as f64).min(1.0) }
    }
}

/// Reports whether this process has a lower priority than usual (setpriority(2)).
fn is_nice() -> bool {
    rustix::process::getpriority_process(None).is_ok_and(|nice| nice > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "cpu  100 50 100 700 50 0 0 0 10 0\ncpu0 1 2 3\n";
    const LATER: &str = "cpu  130 70 110 730 60 0 0 0 10 0\ncpu0 1 2 3\n";

    #[test]
    fn share_of_idle_and_of_low_priority_is_not_busy() {
        let (earlier, later) = (Ticks::parse(EARLIER).expect("ticks"), Ticks::parse(LATER).expect("ticks"));
        assert_eq!((earlier.total, earlier.idle, earlier.nice), (1000, 750, 50));
        let share = |less| (later.since(earlier, less) * 100.0).round();
        assert_eq!((share(0), share(20)), (60.0, 40.0));
    }

    #[test]
    fn without_a_tick_the_processors_count_as_busy() {
        let ticks = Ticks::parse(EARLIER).expect("ticks");
        assert!(ticks.since(ticks, 0) >= 1.0);
        assert_eq!(Ticks::parse("intr 5\n"), None);
    }

    #[test]
    fn work_is_busy() {
        let sample = Sample::take().expect("Linux");
        while sample.age() < Duration::from_millis(300) {
            std::hint::black_box(0);
        }
        assert!(sample.busy() > 0.0, "{sample:?}");
    }
}
