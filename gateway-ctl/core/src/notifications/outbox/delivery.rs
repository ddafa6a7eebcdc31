//! Delivery of one notification to one receiver.
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::Notification;
use super::super::receivers::Receiver;
use crate::hexadecimal::hex;

/// Delivery that was not accepted yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Position in the outbox.
    pub number: u64,
    pub receiver: Receiver,
    /// Id of the message, the same in each attempt.
    pub message_id: String,
    pub notification: Notification,
    pub queued_at: Timestamp,
    /// It is the beginning of the alert for the receiver.
    #[serde(default)]
    pub opens: bool,
    /// Number of failed attempts.
    pub failures: u32,
    pub retry: Option<Retry>,
}

/// Time of the next attempt, as a delay after the last failure: a clock that was set back must not make it longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    pub failed_at: Timestamp,
    pub delay: SignedDuration,
    /// Time until which the receiver wants no delivery at all.
    pub receiver_paused_until: Option<Timestamp>,
}

/// Alert whose beginning a receiver got, or will get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenAlert {
    pub receiver: Receiver,
    pub fingerprint: String,
}

impl Delivery {
    pub(super) fn new(
        number: u64,
        receiver: Receiver,
        notification: &Notification,
        now: Timestamp,
    ) -> Delivery {
        Delivery {
            number,
            receiver,
            message_id: message_id(receiver, notification),
            notification: notification.clone(),
            queued_at: now,
            opens: false,
            failures: 0,
            retry: None,
        }
    }

    /// Returns the time until the next attempt. It is zero if the clock was set back behind the last failure.
    pub(super) fn wait(&self, now: Timestamp) -> SignedDuration {
        let Some(retry) = &self.retry else { return SignedDuration::ZERO };
        if now < retry.failed_at {
            return SignedDuration::ZERO;
        }
        retry.delay.saturating_sub(now.duration_since(retry.failed_at)).max(SignedDuration::ZERO)
    }
}

/// Returns the id of a message. It depends on the transition and the receiver alone, so it survives the loss of the
/// outbox.
fn message_id(receiver: Receiver, notification: &Notification) -> String {
    let Notification { sequence, transition, alert, .. } = notification;
    let text = format!("{receiver}\n{}\n{sequence}\n{}\n{}", alert.id, transition.as_str(), alert.first_seen);
    format!("msg_{}", hex(&Sha256::digest(text.as_bytes())[..16]))
}
