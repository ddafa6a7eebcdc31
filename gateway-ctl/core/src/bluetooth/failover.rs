//! The network of a phone as the uplink of last resort: when it is joined and left.
//!
//! The manager of uplinks decides by which uplink traffic leaves; this machine only makes the uplink exist, because each
//! connection costs the battery of the phone, and often money.

use std::time::Duration;

/// Time after which an uplink that the manager has left is given up.
pub const RELEASE_DELAY: Duration = Duration::from_secs(60);
const FIRST_RETRY: Duration = Duration::from_secs(15);
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// State of the surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanInput {
    /// The settings allow it.
    pub enabled: bool,
    /// Another uplink works; `None` if no probe says so yet.
    pub others_work: Option<bool>,
    /// The network is joined.
    pub joined: bool,
    /// Traffic leaves by it.
    pub active: bool,
    /// Time for which all other uplinks must have failed.
    pub start_after: Duration,
}

/// Change that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanChange {
    Join,
    Leave,
}

/// Decides when the network is joined and left. Times are those since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanFailover {
    /// Others work or do not, since a time.
    others: Option<(bool, Duration)>,
    /// Choice of a user: joined until left by one, or left until another uplink works again.
    choice: Option<bool>,
    failures: u32,
    retry_at: Option<Duration>,
}

impl PanFailover {
    /// Follows the choice of a user.
    pub fn choose(&mut self, joined: bool) {
        self.choice = Some(joined);
        (self.failures, self.retry_at) = (0, None);
    }

    /// Returns the change that is due.
    pub fn evaluate(&mut self, input: PanInput, now: Duration) -> Option<PanChange> {
        if !input.enabled {
            *self = PanFailover::default();
            return input.joined.then_some(PanChange::Leave);
        }
        self.note_others(input.others_work, now);
        // The choice to leave lasts for one outage.
        if self.choice == Some(false) && input.others_work == Some(true) && !input.joined {
            self.choice = None;
        }
        if input.joined {
            (self.failures, self.retry_at) = (0, None);
        }
        match (self.wants(&input, now), input.joined) {
            (Some(true), false) if self.retry_at.is_none_or(|at| now >= at) => Some(PanChange::Join),
            (Some(false), true) => Some(PanChange::Leave),
            _ => None,
        }
    }

    /// Notes that the network could not be joined. Each further attempt waits twice as long as the one before.
    pub fn note_failure(&mut self, now: Duration) {
        let pause = FIRST_RETRY.saturating_mul(1 << self.failures.min(16)).min(LONGEST_RETRY);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(now + pause);
    }

    /// Returns the time at which a change can be due without other news.
    pub fn next(&self, start_after: Duration) -> Option<Duration> {
        let by_others =
            self.others.map(|(work, since)| since + if work { RELEASE_DELAY } else { start_after });
        [by_others, self.retry_at].into_iter().flatten().min()
    }

    fn note_others(&mut self, work: Option<bool>, now: Duration) {
        if self.others.map(|(work, _)| work) != work {
            self.others = work.map(|work| (work, now));
        }
    }

    /// Returns whether the network should be joined. `None`: it stays as it is.
    fn wants(&self, input: &PanInput, now: Duration) -> Option<bool> {
        if self.choice.is_some() {
            return self.choice;
        }
        let (work, since) = self.others?;
        let time = now.saturating_sub(since);
        match work {
            false if time >= input.start_after => Some(true),
            true if time >= RELEASE_DELAY && !input.active => Some(false),
            _ => None,
        }
    }
}
