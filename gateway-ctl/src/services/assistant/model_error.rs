//! Reason why the assistant has no answer.

use std::time::Duration;

use gateway_core::assistant::server_error::ReplyFormError;

/// Reason why the assistant has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the assistant is off")]
    Off,
    #[error("the endpoint is another host, which allow_remote does not allow")]
    Remote,
    #[error("no model is set")]
    NoModel,
    #[error("servers of this kind do not administer their models by an API")]
    NoAdministration,
    #[error("{0} is being downloaded already")]
    Pulling(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("it answered {status}: {message}")]
    Refused { status: u16, message: String },
    #[error(transparent)]
    Form(#[from] ReplyFormError),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("{0}")]
    PullFailed(String),
}
