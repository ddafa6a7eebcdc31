//! Encrypted volumes: a container file with a LUKS2 header, the mapped device over it, and the file system in that.
//!
//! The programs cryptsetup and mkfs.ext4 do the work. A passphrase goes to them by standard input only, as one line, so that
//! a volume opens by what a person types.

mod container;
mod header;
mod host;
mod programs;
mod tpm2;

use std::io;
use std::path::Path;

use gateway_model::Secret;

pub use header::{KeySlot, VolumeHeader};
pub use host::HostVolumes;

/// Size of a LUKS2 header with its key slots, as cryptsetup makes it.
pub const HEADER_BYTES: u64 = 16 << 20;

/// Longest passphrase that cryptsetup reads from a terminal, in bytes.
pub const MAX_PASSPHRASE_BYTES: usize = 512;

#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    #[error("this host lacks {0}")]
    NotSupported(String),
    #[error("no key slot opens by this passphrase")]
    WrongKey,
    #[error("files of the encrypted storage are in use")]
    Busy,
    #[error("the firmware of this machine has measured none of these PCRs")]
    Unmeasured,
    /// The reason, as cryptsetup prints it.
    #[error("the TPM does not open the storage: {0}")]
    Tpm2(String),
    #[error("{program} failed: {message}")]
    Program { program: &'static str, message: String },
    #[error("cannot {action}: {source}")]
    Io {
        action: &'static str,
        #[source]
        source: io::Error,
    },
}

impl VolumeError {
    /// Returns a constructor of the error of an action.
    pub fn at(action: &'static str) -> impl FnOnce(io::Error) -> VolumeError {
        move |source| VolumeError::Io { action, source }
    }
}

/// Sizes of the file system in a volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeUsage {
    pub size: u64,
    pub used: u64,
}

/// Cost of a guess at the passphrase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyDerivation {
    /// Argon2id, which takes two seconds and at most 256 MiB on this host.
    #[default]
    Strong,
    /// The least that cryptsetup allows. For tests.
    Weak,
}

/// Operations on volumes and on the files that move into them. Each is durable when it returns.
pub trait VolumeEffects: Send + Sync {
    /// Returns what this host lacks for encrypted volumes.
    fn missing(&self) -> Vec<String>;

    /// Creates a container of this size. Reports the bytes that are allocated.
    fn allocate(&self, container: &Path, bytes: u64, progress: &dyn Fn(u64)) -> Result<(), VolumeError>;

    /// Writes a header with one key slot.
    fn format(&self, container: &Path, key: &Secret) -> Result<(), VolumeError>;

    /// Maps the content of a container to a device.
    fn open(&self, container: &Path, name: &str, key: &Secret) -> Result<(), VolumeError>;

    fn make_file_system(&self, name: &str) -> Result<(), VolumeError>;

    /// Mounts a mapped device. Makes the folder if there is none.
    fn mount(&self, name: &str, folder: &Path) -> Result<(), VolumeError>;

    /// Unmounts a folder. One that is not mounted is fine.
    fn unmount(&self, folder: &Path, how: Unmount) -> Result<(), VolumeError>;

    /// Removes a mapped device, whose key leaves the kernel. One that is not there is fine.
    fn close(&self, name: &str, how: Unmount) -> Result<(), VolumeError>;

    fn is_mounted(&self, folder: &Path) -> bool;

    /// Returns the sizes of a mounted file system.
    fn usage(&self, folder: &Path) -> Option<VolumeUsage>;

    /// Returns the free bytes of the file system of a folder.
    fn free_bytes(&self, folder: &Path) -> Result<u64, VolumeError>;

    fn header(&self, container: &Path) -> Result<VolumeHeader, VolumeError>;

    /// Adds a key to a slot.
    fn add_key(&self, container: &Path, have: &Secret, new: &Secret, slot: u32) -> Result<(), VolumeError>;

    fn change_key(&self, container: &Path, have: &Secret, new: &Secret) -> Result<(), VolumeError>;

    fn remove_key(&self, container: &Path, slot: u32) -> Result<(), VolumeError>;

    /// Returns what this host lacks to seal keys by a TPM2.
    fn missing_for_tpm2(&self) -> Vec<String>;

    /// Adds a key that the TPM releases only while these PCRs have the values of now. Those that it sealed before go.
    fn add_tpm2_key(&self, container: &Path, have: &Secret, pcrs: &[u32]) -> Result<(), VolumeError>;

    /// Removes all keys that a TPM seals.
    fn remove_tpm2_keys(&self, container: &Path) -> Result<(), VolumeError>;

    /// Maps the content of a container by a key that the TPM releases.
    fn open_by_tpm2(&self, container: &Path, name: &str) -> Result<(), VolumeError>;

    /// Overwrites the header, without which no passphrase opens the container.
    fn erase_header(&self, container: &Path) -> Result<(), VolumeError>;

    /// Copies a file, or the files of a folder with those of its subfolders. A missing one is fine.
    fn copy_files(&self, from: &Path, to: &Path) -> Result<(), VolumeError>;

    /// Replaces a file.
    fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), VolumeError>;

    fn rename(&self, from: &Path, to: &Path) -> Result<(), VolumeError>;

    /// Overwrites and removes a file, or the files of a folder with those of its subfolders.
    fn erase_files(&self, folder: &Path) -> Result<(), VolumeError>;

    /// Removes a file. A missing one is fine.
    fn remove(&self, path: &Path) -> Result<(), VolumeError>;
}

/// Treatment of files that are still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmount {
    /// Fails while there are some.
    WhenUnused,
    /// Takes the file system out of the tree. The device goes with the last of the files.
    Now,
}
