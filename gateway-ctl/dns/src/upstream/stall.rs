//! Stall detection: replaces a connection that brings no answers before its end is noticed otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Time without answers, before a query is given up, after which a connection counts as broken.
const STALL_TIMEOUT: Duration = Duration::from_millis(1500);

#[derive(Debug, Default)]
pub(super) struct StallDetector {
    answers: AtomicU64,
    stopped: AtomicBool,
}

impl StallDetector {
    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn has_answered(&self) -> bool {
        self.answers.load(Ordering::Relaxed) > 0
    }

    /// Returns true after a query was given up on while no other was answered.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Starts the wait of a query; dropping the guard ends it.
    pub(super) fn wait(&self) -> PendingReply<'_> {
        PendingReply { stall: self, answers: self.answers.load(Ordering::Relaxed), since: Instant::now() }
    }
}

#[derive(Debug)]
pub(super) struct PendingReply<'a> {
    stall: &'a StallDetector,
    answers: u64,
    since: Instant,
}

impl Drop for PendingReply<'_> {
    fn drop(&mut self) {
        let quiet = self.stall.answers.load(Ordering::Relaxed) == self.answers;
        if quiet && self.since.elapsed() >= STALL_TIMEOUT {
            self.stall.stopped.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn abandoned_query_without_other_answers_marks_a_stall() {
        let stall = StallDetector::default();
        let short = stall.wait();
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(short);
        assert!(!stall.has_stopped(), "that says nothing yet");
        let slow = stall.wait();
        tokio::time::advance(Duration::from_secs(2)).await;
        stall.answered();
        drop(slow);
        assert!(!stall.has_stopped() && stall.has_answered(), "others are answered");
        let silent = stall.wait();
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(silent);
        assert!(stall.has_stopped());
    }
}
