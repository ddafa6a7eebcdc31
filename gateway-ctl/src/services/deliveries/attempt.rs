//! Results of attempts.

use std::fmt::Display;
use std::time::Duration;

use gateway_core::notifications::outbox::Outcome;
use gateway_core::notifications::receivers::Receiver;

/// Result of an attempt.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Status code, if the receiver answered.
    pub status: Option<u16>,
    pub outcome: Outcome,
}

impl Attempt {
    /// Returns the result for a receiver whose settings are not usable.
    pub(super) fn refused(error: &impl Display) -> Attempt {
        Attempt { status: None, outcome: Outcome::Refused { error: error.to_string() } }
    }

    pub(super) fn failed(error: String) -> Attempt {
        Attempt { status: None, outcome: Outcome::Failed { error, retry_after: None } }
    }

    pub(super) fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Accepted => None,
            Outcome::Failed { error, .. } | Outcome::Refused { error } => Some(error),
            Outcome::Gone => Some("the receiver answered 410: it wants no more deliveries"),
        }
    }
}

/// End of an attempt.
pub(super) struct Done {
    pub receiver: Receiver,
    /// Number of the delivery; `None` if active alerts were sent again.
    pub number: Option<u64>,
    pub attempt: Attempt,
    /// Maximum number of attempts after the first.
    pub retries: u64,
}

/// Result of a test.
#[derive(Clone, Debug)]
pub struct TestResult {
    pub delivered: bool,
    /// Status code, if the receiver answered.
    pub status: Option<u16>,
    pub latency: Duration,
    pub error: Option<String>,
}
