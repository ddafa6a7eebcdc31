//! Whether a connection still brings answers: one that brings none is replaced, before its end is noticed otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A connection that brought nothing for so long before a question is given up on is broken.
const STUCK: Duration = Duration::from_millis(1500);

#[derive(Debug, Default)]
pub struct Pulse {
    answers: AtomicU64,
    stopped: AtomicBool,
}

impl Pulse {
    pub fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    pub fn has_answered(&self) -> bool {
        self.answers.load(Ordering::Relaxed) > 0
    }

    /// A question was given up on, and there were no answers to others meanwhile.
    pub fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A question begins to wait. Dropping what is returned ends that.
    pub fn wait(&self) -> Waiting<'_> {
        Waiting { pulse: self, answers: self.answers.load(Ordering::Relaxed), since: Instant::now() }
    }
}

#[derive(Debug)]
pub struct Waiting<'a> {
    pulse: &'a Pulse,
    answers: u64,
    since: Instant,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let quiet = self.pulse.answers.load(Ordering::Relaxed) == self.answers;
        if quiet && self.since.elapsed() >= STUCK {
            self.pulse.stopped.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stops_when_a_question_is_given_up_on_and_no_other_was_answered() {
        let pulse = Pulse::default();
        let short = pulse.wait();
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(short);
        assert!(!pulse.has_stopped(), "that says nothing yet");
        let slow = pulse.wait();
        tokio::time::advance(Duration::from_secs(2)).await;
        pulse.answered();
        drop(slow);
        assert!(!pulse.has_stopped() && pulse.has_answered(), "others are answered");
        let silent = pulse.wait();
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(silent);
        assert!(pulse.has_stopped());
    }
}
