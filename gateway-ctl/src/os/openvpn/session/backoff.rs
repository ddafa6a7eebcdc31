//! Retry delays. Pure but for the clock.
//!
//! Each attempt to sign in may lock an account. So a server that does not answer is tried again within seconds, one
//! that refused the password after a minute and then ever more rarely. A changed tunnel, or the action `up`, starts at
//! once.

use std::time::Duration;

use gateway_outbound::backoff::{Backoff as Waits, give_or_take_a_quarter};

/// Reason for the end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExitReason {
    /// The session ended it because the wanted state changed.
    Requested,
    /// It ended by itself, or was killed.
    Gone(Option<String>),
    /// It could not be started, or its management socket failed.
    Broken(String),
    /// The server or the key rejected the credentials. A quick retry would only lock accounts.
    Denied(String),
}

impl ExitReason {
    pub(super) fn words(&self) -> Option<String> {
        match self {
            ExitReason::Requested => None,
            ExitReason::Gone(words) => words.clone(),
            ExitReason::Broken(words) | ExitReason::Denied(words) => Some(words.clone()),
        }
    }
}

const FIRST: Duration = Duration::from_secs(1);
const ENDED: Waits = Waits::new(FIRST, Duration::from_secs(60));
const DENIED: Waits = Waits::new(Duration::from_secs(60), Duration::from_secs(3600));
/// Delay between two attempts of one process.
const ATTEMPT: Waits = Waits::new(FIRST, Duration::from_secs(15));

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    ended: u32,
    denied: u32,
    attempts: u32,
    /// True if it has been connected since the last end.
    was_connected: bool,
}

impl Backoff {
    pub(super) fn connected(&mut self) {
        *self = Backoff { was_connected: true, ..Backoff::default() };
    }

    /// Returns the delay before the next process, or `None` to continue at once.
    pub(super) fn after(&mut self, ending: &ExitReason) -> Option<Duration> {
        let was_connected = std::mem::take(&mut self.was_connected);
        self.attempts = 0;
        let pause = match ending {
            ExitReason::Requested => return None,
            // A token of the server may have expired, so the first refusal after a connection is not significant.
            ExitReason::Denied(_) if was_connected => FIRST,
            ExitReason::Denied(_) => {
                self.denied += 1;
                DENIED.after(self.denied)
            }
            ExitReason::Gone(_) | ExitReason::Broken(_) => {
                self.ended += 1;
                ENDED.after(self.ended)
            }
        };
        Some(give_or_take_a_quarter(pause))
    }

    /// Returns the delay before the next attempt of a process that lost its connection.
    pub(super) fn attempt(&mut self) -> Duration {
        self.attempts += 1;
        match self.attempts {
            1 => give_or_take_a_quarter(Duration::from_millis(100)),
            attempts => give_or_take_a_quarter(ATTEMPT.after(attempts - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(ending: &ExitReason, count: usize) -> Vec<u64> {
        let mut backoff = Backoff::default();
        (0..count).map(|_| backoff.after(ending).expect("a pause").as_secs()).collect()
    }

    #[test]
    fn a_crash_loop_slows_down_to_a_minute() {
        let pauses = pauses(&ExitReason::Gone(None), 40);
        assert!(pauses[0] <= 1 && pauses[39] >= 44 && pauses[39] <= 75, "{pauses:?}");
    }

    #[test]
    fn a_refusal_is_retried_after_minutes_and_then_hours() {
        let pauses = pauses(&ExitReason::Denied(String::new()), 40);
        assert!(pauses[0] >= 44 && pauses[39] >= 2600, "{pauses:?}");
    }

    #[test]
    fn the_first_refusal_after_a_connection_is_retried_at_once() {
        let mut backoff = Backoff::default();
        backoff.connected();
        let denied = ExitReason::Denied(String::new());
        assert!(backoff.after(&denied).expect("a pause") < Duration::from_secs(2));
        assert!(backoff.after(&denied).expect("a pause") > Duration::from_secs(40));
    }

    #[test]
    fn a_requested_start_does_not_wait() {
        assert_eq!(Backoff::default().after(&ExitReason::Requested), None);
        let mut backoff = Backoff::default();
        let attempts: Vec<u64> = (0..12).map(|_| backoff.attempt().as_secs()).collect();
        assert!(attempts[0] == 0 && attempts[11] >= 11 && attempts[11] <= 19, "{attempts:?}");
    }
}
