//! Errors of operations on the encrypted storage.

use super::layout::StorageContent;
use super::status::StorageState;
use crate::os::encrypted_volume::VolumeError;
use crate::store;

/// Error of an operation on the encrypted storage.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("it needs {0}")]
    NotSupported(String),
    /// Another operation goes on.
    #[error("another operation on the encrypted storage goes on")]
    Occupied,
    #[error("the encrypted storage is {}", name(*.have))]
    State { have: StorageState, allowed: &'static [StorageState] },
    #[error("records in the encrypted storage are in use: {}", list(.0))]
    InUse(Vec<StorageContent>),
    #[error("{needed} bytes are needed and {free} are free")]
    NoRoom { needed: u64, free: u64 },
    #[error("the present records need a storage of {minimum_mb} MiB")]
    TooSmall { minimum_mb: u64 },
    #[error("the last key slot stays")]
    LastKeySlot,
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error("the key cannot be stored")]
    Store(#[from] store::Error),
}

/// Returns the name of a state, as in JSON.
pub fn name(state: StorageState) -> &'static str {
    match state {
        StorageState::Absent => "absent",
        StorageState::SettingUp => "setting_up",
        StorageState::Locked => "locked",
        StorageState::Mounted => "mounted",
        StorageState::Erased => "erased",
    }
}

/// Returns the names of contents as one text.
pub(super) fn list(contents: &[StorageContent]) -> String {
    contents.iter().map(|content| content.as_str()).collect::<Vec<_>>().join(", ")
}
