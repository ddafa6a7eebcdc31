//! Refusals of requests about an alert.

use gateway_core::alerts::AlertStatus;

use crate::store::Error;

/// Reason why a request changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("there is no such alert")]
    NotFound,
    #[error("the alert is {}", .0.as_str())]
    State(AlertStatus),
    #[error("the alert is not muted")]
    NotMuted,
    #[error(transparent)]
    Store(#[from] Error),
}
