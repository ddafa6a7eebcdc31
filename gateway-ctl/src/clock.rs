//! Clocks. Only this module calls the system clocks; all other code receives a time or a [`Clock`].

mod high_time;
mod manual;
mod source;
mod steady;
mod system;

pub use high_time::HighTime;
pub use manual::ManualClock;
pub use source::{Clock, SharedClock};
pub use steady::SteadyClock;
pub use system::{SystemClock, handshake_time};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_boot_clock_does_not_go_back() {
        let first = SystemClock.boot();
        assert!(SystemClock.boot() >= first && first > Duration::ZERO);
    }

    #[test]
    fn a_manual_clock_moves_only_on_request() {
        let start: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let clock = ManualClock::at(start);
        assert_eq!(clock.now(), start);
        clock.advance(Duration::from_secs(60));
        assert_eq!(clock.now().to_string(), "2026-11-20T12:01:00Z");
        clock.set(start);
        assert_eq!((clock.now(), clock.boot()), (start, Duration::from_secs(61)));
    }
}
