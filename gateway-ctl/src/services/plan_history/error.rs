//! Reasons for which a plan of the past cannot be had.

use gateway_core::plan_history::{NotKept, RestoreError};

/// Reason for which the plan of a time cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    #[error(transparent)]
    NotKept(#[from] NotKept),
    #[error("the record of the plan cannot be read")]
    Damaged,
    #[error("the inputs of the plan cannot be put together")]
    Restore(#[from] RestoreError),
}
