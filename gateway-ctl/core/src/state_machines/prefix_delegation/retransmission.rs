//! Times of retransmissions (RFC 8415, section 15).

use std::time::Duration;

/// Share by which intervals differ, so that clients do not send at once.
const RANDOM_SHARE: f64 = 0.1;

/// Parameters of an exchange (RFC 8415, section 7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub first: Duration,
    pub longest: Duration,
    /// Number of messages after which the exchange has failed.
    pub max_count: Option<u32>,
    /// Time after which the exchange has failed.
    pub max_duration: Option<Duration>,
}

impl Schedule {
    pub(super) const SOLICIT: Schedule = Schedule::of(1, 3600);
    pub(super) const REQUEST: Schedule = Schedule { max_count: Some(10), ..Schedule::of(1, 30) };
    pub(super) const VERIFY: Schedule =
        Schedule { max_duration: Some(Duration::from_secs(10)), ..Schedule::of(1, 4) };
    pub(super) const RENEW: Schedule = Schedule::of(10, 600);
    pub(super) const REBIND: Schedule = Schedule::of(10, 600);

    const fn of(first: u64, longest: u64) -> Schedule {
        Schedule {
            first: Duration::from_secs(first),
            longest: Duration::from_secs(longest),
            max_count: None,
            max_duration: None,
        }
    }
}

/// Times of one exchange.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    schedule: Schedule,
    start: Duration,
    count: u32,
    interval: Duration,
    next: Duration,
}

impl Retransmission {
    /// Begins an exchange: its first message is due.
    pub(super) fn new(schedule: Schedule, now: Duration) -> Retransmission {
        Retransmission { schedule, start: now, count: 0, interval: Duration::ZERO, next: now }
    }

    pub(super) fn next(&self) -> Duration {
        let end = self.schedule.max_duration.map(|duration| self.start + duration);
        end.map_or(self.next, |end| self.next.min(end))
    }

    /// Reports whether no message was sent yet.
    pub(super) fn is_first(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of messages that were sent.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Reports whether the exchange has failed.
    pub(super) fn has_ended(&self, now: Duration) -> bool {
        let Schedule { max_count, max_duration, .. } = self.schedule;
        max_count.is_some_and(|most| self.count >= most && now >= self.next)
            || max_duration.is_some_and(|duration| now >= self.start + duration)
    }

    /// Notes that a message is sent. `random` is from 0 to 1.
    pub(super) fn advance(&mut self, random: f64, now: Duration) {
        let share = (random.clamp(0.0, 1.0) * 2.0 - 1.0) * RANDOM_SHARE;
        if self.count == 0 {
            self.start = now;
            self.interval = self.schedule.first.mul_f64(1.0 + share.abs());
        } else {
            self.interval = self.interval.mul_f64(2.0 + share);
        }
        if self.interval > self.schedule.longest {
            self.interval = self.schedule.longest.mul_f64(1.0 + share);
        }
        self.count += 1;
        self.next = now + self.interval;
    }

    /// Returns the time since the first message in hundredths of a second (RFC 8415, section 21.9).
    pub(super) fn elapsed(&self, now: Duration) -> u16 {
        let elapsed = now.saturating_sub(self.start).as_millis() / 10;
        u16::try_from(elapsed).unwrap_or(u16::MAX)
    }
}
