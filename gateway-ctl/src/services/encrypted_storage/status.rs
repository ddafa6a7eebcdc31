//! State of the encrypted storage, as the API shows it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::layout::StorageContent;
use crate::os::encrypted_volume::KeySlot;

/// State of the encrypted storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageState {
    /// Nothing is configured.
    Absent,
    /// It is being set up.
    SettingUp,
    /// It is configured, and nothing opened it yet. The records that live in it wait in memory.
    Locked,
    /// It is open.
    Mounted,
    /// A wipe destroyed its header. Only a teardown is possible.
    Erased,
}

/// Step of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetUpPhase {
    /// The room of the container is reserved on the disk.
    Allocating,
    /// The header is written, by a slow key derivation.
    Formatting,
    /// The file system is made.
    MakingFileSystem,
    /// Records move in.
    MovingRecords,
    /// Unencrypted records are overwritten.
    ErasingRecords,
    Done,
    Failed,
}

/// Progress of the last set-up since the start of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetUpProgress {
    pub phase: SetUpPhase,
    /// Share of the set-up that is done, in per cent.
    pub percent: u8,
    /// Reason of a failure, which left nothing behind.
    pub error: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// Use of a TPM by the encrypted storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tpm2Status {
    /// This host has what it needs to seal a key by a TPM2.
    pub supported: bool,
    /// Devices, programs and libraries that this host lacks; null if none.
    pub needs: Option<String>,
    /// The TPM opens the storage at each start, while its PCRs have the values of the sealing.
    pub opens_at_start: bool,
}

/// Encrypted storage of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EncryptedStorageStatus {
    /// This host has what encrypted storage needs.
    pub supported: bool,
    /// Programs and devices that this host lacks; null if none.
    pub needs: Option<String>,
    pub configured: bool,
    pub mounted: bool,
    pub state: StorageState,
    /// Mapped device; null unless mounted.
    pub device: Option<String>,
    /// Cipher of the data; null if nothing is configured, or its header cannot be read.
    pub cipher: Option<String>,
    /// Size of the container, in bytes; null if nothing is configured.
    pub size: Option<u64>,
    /// Bytes in use, of the file system; null unless mounted.
    pub used: Option<u64>,
    /// Key slots of the header.
    pub keyslots: Vec<KeySlot>,
    /// Records that live in the storage.
    pub contents: Vec<StorageContent>,
    /// Records that wait for the storage. They are kept in memory, up to a limit, and never written beside it.
    pub waiting: Vec<StorageContent>,
    /// A key among the secrets of the gateway opens the storage at start.
    pub has_stored_key: bool,
    /// Use of a TPM of this host.
    pub tpm2: Tpm2Status,
    /// Last set-up since the start of the daemon; null if there was none.
    pub set_up: Option<SetUpProgress>,
    /// Reason for which the storage could not be opened at the start; null if there is none.
    pub error: Option<String>,
}
