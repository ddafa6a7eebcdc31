//! The dead-man switch: without a check-in of an administrator for too long, the gateway is wiped.
//!
//! Time is counted with the clock that runs since boot, which cannot be set. The wall clock is read only to determine
//! how long the machine was off, and only once it is synchronised. Before that the switch never fires. Uncertain time
//! always counts as less.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Percent of the period at which to warn.
pub const WARN_AT: [u8; 3] = [50, 80, 95];

/// The time, by every clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub wall: Timestamp,
    /// Since boot, sleep included.
    pub boot: Duration,
    /// True if the wall clock is synchronised.
    pub synced: bool,
}

/// Last check-in, as stored over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckIn {
    pub at: Timestamp,
    /// The wall clock was synchronised when it was read.
    pub certain: bool,
}

/// Action of the dead-man switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This percentage of the period is over.
    Warn(u8),
    /// The check-in is certain at last: keep this one.
    Keep(CheckIn),
    Fire,
}

/// Counts from the last check-in.
#[derive(Clone, Debug)]
pub struct Deadman {
    /// None: off.
    period: Option<Duration>,
    check_in: Option<CheckIn>,
    /// Start of the count in this boot, and the time that had elapsed by then.
    counting: Option<(Duration, Duration)>,
    synced: bool,
    warned: u8,
    fired: bool,
}

impl Deadman {
    /// Creates the state machine after a start with the stored `check_in`.
    pub fn new(check_in: Option<CheckIn>) -> Deadman {
        Deadman { period: None, check_in, counting: None, synced: false, warned: 0, fired: false }
    }

    /// Applies the settings. Enabling it is a check-in, unless one is stored from before a restart.
    pub fn handle_period(&mut self, period: Option<Duration>, now: Now) -> Option<Action> {
        let was_off = self.period.is_none();
        self.period = period;
        self.warned = 0;
        match (period, was_off, self.check_in) {
            (Some(_), true, None) => Some(Action::Keep(self.handle_check_in(now))),
            (None, _, _) => {
                self.check_in = None;
                self.counting = None;
                None
            }
            _ => None,
        }
    }

    /// Records a check-in. Returns the state to keep.
    pub fn handle_check_in(&mut self, now: Now) -> CheckIn {
        self.synced |= now.synced;
        let kept = CheckIn { at: now.wall, certain: self.synced };
        self.check_in = Some(kept);
        self.counting = Some((now.boot, Duration::ZERO));
        self.warned = 0;
        kept
    }

    /// To be called every few seconds.
    pub fn poll(&mut self, now: Now) -> Option<Action> {
        let period = self.period?;
        let check_in = self.check_in?;
        if now.synced && !self.synced {
            self.synced = true;
            if let Some((since, over)) = self.counting {
                // The clock was not right before: its time then means nothing.
                let ago = over + now.boot.saturating_sub(since);
                let kept = CheckIn { at: before(now.wall, ago), certain: true };
                self.check_in = Some(kept);
                return Some(Action::Keep(kept));
            }
        }
        if !self.synced {
            return None;
        }
        if self.counting.is_none() {
            // How long the machine was off. A time that lies ahead, or is uncertain, counts as no time.
            let ago =
                if check_in.certain { now.wall.duration_since(check_in.at) } else { SignedDuration::ZERO };
            let ago = Duration::try_from(ago).unwrap_or(Duration::ZERO);
            self.counting = Some((now.boot, ago));
            if !check_in.certain || check_in.at > now.wall {
                let kept = CheckIn { at: now.wall, certain: true };
                self.check_in = Some(kept);
                return Some(Action::Keep(kept));
            }
        }
        let over = self.over(now)?;
        if over >= period {
            return (!std::mem::replace(&mut self.fired, true)).then_some(Action::Fire);
        }
        let due = WARN_AT.into_iter().rev().find(|percent| over >= share(period, *percent));
        let due = due.filter(|percent| *percent > self.warned)?;
        self.warned = due;
        Some(Action::Warn(due))
    }

    pub fn check_in(&self) -> Option<CheckIn> {
        self.check_in
    }

    /// Returns the elapsed part of the period. `None` while it is not known.
    pub fn over(&self, now: Now) -> Option<Duration> {
        let (since, over) = self.counting?;
        Some(over + now.boot.saturating_sub(since))
    }

    /// Returns the wall-clock time at which it fires without a check-in.
    pub fn deadline(&self, now: Now) -> Option<Timestamp> {
        let left = match self.over(now) {
            Some(over) => self.period?.saturating_sub(over),
            None => return self.check_in?.at.checked_add(self.period?).ok(),
        };
        now.wall.checked_add(left).ok()
    }
}

fn share(period: Duration, percent: u8) -> Duration {
    period * u32::from(percent) / 100
}

fn before(now: Timestamp, ago: Duration) -> Timestamp {
    now.checked_sub(ago).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn start() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    /// That long after the start, with clocks that agree.
    fn at(hours: f64) -> Now {
        let past = HOUR.mul_f64(hours);
        Now { wall: start().checked_add(past).unwrap(), boot: past + HOUR, synced: true }
    }

    fn armed() -> Deadman {
        let mut switch = Deadman::new(None);
        assert!(matches!(switch.handle_period(Some(10 * HOUR), at(0.0)), Some(Action::Keep(_))));
        switch
    }

    #[test]
    fn it_warns_three_times_and_fires_once() {
        let mut switch = armed();
        let mut seen = Vec::new();
        for minute in 0..700 {
            if let Some(action) = switch.poll(at(f64::from(minute) / 60.0)) {
                seen.push((minute, action));
            }
        }
        assert_eq!(
            seen,
            [(300, Action::Warn(50)), (480, Action::Warn(80)), (570, Action::Warn(95)), (600, Action::Fire)]
        );
    }

    #[test]
    fn a_check_in_begins_again() {
        let mut switch = armed();
        assert_eq!(switch.poll(at(9.0)), Some(Action::Warn(80)), "only the last of those that are due");
        switch.handle_check_in(at(9.9));
        assert_eq!((switch.poll(at(14.8)), switch.poll(at(14.95))), (None, Some(Action::Warn(50))));
        assert_eq!(switch.deadline(at(15.0)), Some(at(19.9).wall));
        assert_eq!(switch.poll(at(19.91)), Some(Action::Fire));
    }

    #[test]
    fn off_means_off() {
        let mut switch = armed();
        switch.handle_period(None, at(1.0));
        assert_eq!((switch.poll(at(1000.0)), switch.deadline(at(1.0))), (None, None));
        switch.handle_period(Some(HOUR), at(2000.0));
        assert_eq!(switch.poll(at(2000.4)), None, "turning it on counts from then");
    }

    #[test]
    fn setting_the_wall_clock_neither_fires_nor_stops_it() {
        let mut switch = armed();
        let ahead = Now { wall: "2036-01-01T00:00:00Z".parse().unwrap(), ..at(1.0) };
        assert_eq!(switch.poll(ahead), None);
        let back = Now { wall: "1990-01-01T00:00:00Z".parse().unwrap(), ..at(10.1) };
        assert_eq!(switch.poll(back), Some(Action::Fire));
    }

    #[test]
    fn after_a_boot_it_waits_for_the_clock_and_then_counts_the_time_that_the_machine_was_off() {
        let kept = CheckIn { at: start(), certain: true };
        let mut switch = Deadman::new(Some(kept));
        let boot = |hours: f64, synced: bool| Now { boot: Duration::from_secs(60), synced, ..at(hours) };
        assert_eq!(switch.handle_period(Some(10 * HOUR), boot(11.0, false)), None);
        let later = Now { boot: 100 * HOUR, ..boot(11.0, false) };
        assert_eq!(switch.poll(later), None, "not before the clock is right");
        assert_eq!(switch.poll(boot(11.0, true)), Some(Action::Fire));
        let mut switch = Deadman::new(Some(kept));
        switch.handle_period(Some(10 * HOUR), boot(6.0, true));
        assert_eq!(switch.poll(boot(6.0, true)), Some(Action::Warn(50)));
        assert_eq!(switch.over(boot(6.0, true)), Some(6 * HOUR));
    }

    #[test]
    fn a_check_in_under_a_wrong_clock_never_makes_it_fire_early() {
        let wrong = Now {
            wall: "1970-01-01T00:10:00Z".parse().unwrap(),
            boot: Duration::from_secs(600),
            synced: false,
        };
        // Synchronised in the same boot: corrected.
        let mut switch = Deadman::new(None);
        switch.handle_period(Some(10 * HOUR), wrong);
        let synced = Now { boot: wrong.boot + HOUR, ..at(0.0) };
        let corrected = CheckIn { at: before(start(), HOUR), certain: true };
        assert_eq!(switch.poll(synced), Some(Action::Keep(corrected)));
        assert_eq!(switch.over(synced), Some(HOUR));
        // Restarted before: counts from the time at which the clock is right.
        let mut switch = Deadman::new(Some(CheckIn { at: wrong.wall, certain: false }));
        switch.handle_period(Some(10 * HOUR), at(0.0));
        assert_eq!(switch.poll(at(0.0)), Some(Action::Keep(CheckIn { at: start(), certain: true })));
        assert_eq!(
            (switch.poll(at(9.0)), switch.poll(at(10.0))),
            (Some(Action::Warn(80)), Some(Action::Fire))
        );
        // A time that lies ahead was a wrong one.
        let mut switch = Deadman::new(Some(CheckIn { at: at(50.0).wall, certain: true }));
        switch.handle_period(Some(10 * HOUR), at(0.0));
        assert!(matches!(switch.poll(at(0.0)), Some(Action::Keep(_))));
        assert_eq!(switch.poll(at(10.0)), Some(Action::Fire));
    }
}
