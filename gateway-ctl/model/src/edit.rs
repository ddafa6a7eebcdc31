//! Results of edits of the state, and reasons for refusals.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::id::{Id, Revision};
use crate::problem::{Problems, Warning};
use crate::references::References;

/// A row that was created or replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub id: Id,
    pub revision: Revision,
    /// The object in its shown form.
    pub value: Value,
    pub warnings: Vec<Warning>,
}

/// Answer to a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deleted {
    pub id: String,
    pub deleted: bool,
}

/// Reason for a refused edit, with the data for the error body of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Delete,
    Rename,
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// 422 `validation_failed` (or `unknown_reference`, when all problems are of that kind).
    #[error("the input is not valid: {0}")]
    Invalid(Problems),
    /// 404 `not_found`.
    #[error("there is no {resource_type} {id}")]
    NotFound { resource_type: &'static str, id: String },
    /// 409 `conflict`: something else has this value already.
    #[error("{message}")]
    Conflict { resource_type: &'static str, field: String, existing_id: Id, message: String },
    /// 409 `policy_conflict`.
    #[error("{reason}")]
    PolicyConflict { policies: Vec<Id>, reason: String },
    /// 409 `in_use`.
    #[error("the {resource_type} {id} is in use by {} other object(s)", references.firm + references.loose)]
    InUse { resource_type: &'static str, id: Id, attempt: Attempt, references: Box<References> },
    /// 409 `invalid_state`: a built-in object cannot be changed like this.
    #[error("{message}")]
    Protected { resource_type: &'static str, id: Id, message: String },
    /// 409 `invalid_state`: the object is in a state that does not allow it.
    #[error("{message}")]
    WrongState { resource_type: &'static str, id: Id, state: &'static str, message: String },
    /// 409 `limit_reached`.
    #[error("there can be at most {limit} objects of type {resource_type}")]
    LimitReached { resource_type: &'static str, limit: u32 },
    /// 409 `last_admin`: no user could administer the gateway.
    #[error("{username} is the last administrator")]
    LastAdmin { id: Id, username: String },
    /// 409 `already_configured`: a one-time action was already done.
    #[error("{message}")]
    AlreadyConfigured { message: String },
    /// 412 `precondition_failed`.
    #[error("the {resource_type} was changed meanwhile: its revision is {current}, not {expected}")]
    Stale { resource_type: &'static str, expected: Revision, current: Revision },
}
