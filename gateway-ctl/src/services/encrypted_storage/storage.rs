//! The storage of one state folder: its state, and the operations on it. One operation goes on at a time.
//!
//! All operations block.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_model::Secret;
use gateway_model::settings::groups::WipeLevel;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::error::StorageError;
use super::folder_gate::{FolderGate, Location, OpenFolder};
use super::layout::{BACKUPS, Layout, StorageContent, StorageSettings};
use super::procedures;
use super::status::{EncryptedStorageStatus, SetUpProgress, StorageState, Tpm2Status};
use crate::handles::Handle;
use crate::os::encrypted_volume::{HostVolumes, Unmount, VolumeEffects, VolumeError, VolumeHeader};

/// Time within which users of records close their files: a few of their rounds, which are slow with many flows.
pub(super) const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);
/// All states in which an operation may begin.
const AT_REST: &[StorageState] =
    &[StorageState::Absent, StorageState::Locked, StorageState::Mounted, StorageState::Erased];

/// Encrypted storage. Clones are the same storage.
#[derive(Clone)]
pub struct EncryptedStorage(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub layout: Layout,
    pub effects: Arc<dyn VolumeEffects>,
    pub gate: FolderGate,
    pub current: Mutex<Current>,
}

#[derive(Debug, Default)]
pub(super) struct Current {
    pub settings: StorageSettings,
    /// An operation goes on.
    pub is_occupied: bool,
    pub is_mounted: bool,
    pub header: Option<VolumeHeader>,
    pub set_up: Option<SetUpProgress>,
    pub error: Option<String>,
}

impl std::fmt::Debug for EncryptedStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptedStorage").field("layout", &self.0.layout).finish_non_exhaustive()
    }
}

impl Handle for EncryptedStorage {
    fn open(state_dir: &Path, _: Timestamp) -> EncryptedStorage {
        EncryptedStorage::new(state_dir, Arc::new(HostVolumes::default()))
    }
}

/// An operation that goes on, until it is dropped.
pub(super) struct Operation(EncryptedStorage);

impl Drop for Operation {
    fn drop(&mut self) {
        self.0.0.current.lock().is_occupied = false;
    }
}

impl EncryptedStorage {
    /// Opens the storage of a state folder. A configured one is locked.
    pub fn new(state_dir: &Path, effects: Arc<dyn VolumeEffects>) -> EncryptedStorage {
        let layout = Layout::new(state_dir);
        let gate = FolderGate::new(state_dir, &layout.mount_point);
        let mut current = Current::default();
        if layout.is_configured() {
            current.settings = layout.read_settings();
            gate.set(Location::Closed, &current.settings.contents);
        }
        EncryptedStorage(Arc::new(Inner { layout, effects, gate, current: Mutex::new(current) }))
    }

    /// Returns the folder of a content, or `None` while it waits for the storage.
    pub fn open_folder(&self, content: StorageContent) -> Option<OpenFolder> {
        self.0.gate.open(content)
    }

    /// Returns the changes of the folders from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.gate.watch()
    }

    /// Returns the contents that wait for the storage.
    pub fn waiting(&self) -> Vec<StorageContent> {
        self.0.gate.waiting()
    }

    /// Returns the folder of backups in the mounted storage. `None`: they are not among its contents.
    pub fn folder_of_backups(&self) -> Option<PathBuf> {
        let holds_backups = self.0.current.lock().settings.contents.contains(&StorageContent::Backups);
        holds_backups.then(|| self.0.layout.mount_point.join(BACKUPS))
    }

    pub fn state(&self) -> StorageState {
        self.state_of(&self.0.current.lock())
    }

    fn state_of(&self, current: &Current) -> StorageState {
        let is_setting_up = current.set_up.as_ref().is_some_and(|set_up| set_up.ended_at.is_none());
        match self.0.layout.is_configured() {
            _ if is_setting_up => StorageState::SettingUp,
            false => StorageState::Absent,
            true if current.is_mounted => StorageState::Mounted,
            true if current.header.as_ref().is_some_and(|header| header.key_slots.is_empty()) => {
                StorageState::Erased
            }
            true => StorageState::Locked,
        }
    }

    pub fn status(&self) -> EncryptedStorageStatus {
        let Inner { layout, effects, gate, current } = &*self.0;
        let missing = effects.missing();
        let missing_for_tpm2 = effects.missing_for_tpm2();
        let usage = effects.usage(&layout.mount_point);
        let current = current.lock();
        let (state, header) = (self.state_of(&current), current.header.clone());
        let is_mounted = current.is_mounted;
        let cipher = header.as_ref().map(|header| header.cipher.clone()).filter(|cipher| !cipher.is_empty());
        EncryptedStorageStatus {
            supported: missing.is_empty(),
            needs: (!missing.is_empty()).then(|| missing.join("; ")),
            configured: layout.is_configured(),
            mounted: is_mounted,
            state,
            device: is_mounted.then(|| format!("/dev/mapper/{}", layout.device)),
            cipher,
            size: std::fs::metadata(&layout.container).map(|metadata| metadata.len()).ok(),
            used: usage.filter(|_| is_mounted).map(|usage| usage.used),
            keyslots: header.map(|header| header.key_slots).unwrap_or_default(),
            contents: current.settings.contents.clone(),
            waiting: gate.waiting(),
            has_stored_key: current.settings.stored_key_slot.is_some(),
            tpm2: Tpm2Status {
                supported: missing.is_empty() && missing_for_tpm2.is_empty(),
                needs: (!missing_for_tpm2.is_empty()).then(|| missing_for_tpm2.join("; ")),
                opens_at_start: current.settings.opens_by_tpm2,
            },
            set_up: current.set_up.clone(),
            error: current.error.clone(),
        }
    }

    /// Begins an operation. Fails on a host without what it needs, during another one, and in other states.
    pub(super) fn begin(&self, allowed: &'static [StorageState]) -> Result<Operation, StorageError> {
        let missing = self.0.effects.missing();
        if !missing.is_empty() {
            return Err(StorageError::NotSupported(missing.join("; ")));
        }
        self.occupy(allowed)
    }

    pub(super) fn occupy(&self, allowed: &'static [StorageState]) -> Result<Operation, StorageError> {
        let mut current = self.0.current.lock();
        let have = self.state_of(&current);
        if !allowed.contains(&have) {
            return Err(StorageError::State { have, allowed });
        }
        if std::mem::replace(&mut current.is_occupied, true) {
            return Err(StorageError::Occupied);
        }
        Ok(Operation(self.clone()))
    }

    /// Reads the header again.
    pub(super) fn refresh(&self) {
        let header = self.0.layout.is_configured().then(|| self.0.effects.header(&self.0.layout.container));
        let header = match header.transpose() {
            Ok(header) => header,
            // A destroyed header is none with slots.
            Err(VolumeError::Program { .. }) => Some(VolumeHeader::default()),
            Err(_) => None,
        };
        self.0.current.lock().header = header;
    }

    /// Removes what an earlier run has left, and reads the header. To be called once, before an operation.
    pub fn recover(&self) {
        let Inner { layout, effects, .. } = &*self.0;
        let Ok(_operation) = self.occupy(AT_REST) else { return };
        if let Err(error) = procedures::recover(&**effects, layout) {
            tracing::warn!(%error, "failed to remove what an earlier run left of the encrypted storage");
        }
        self.refresh();
    }

    /// Opens the storage, and lets the records in.
    pub fn unlock(&self, key: &Secret) -> Result<(), StorageError> {
        let _operation = self.begin(&[StorageState::Locked])?;
        procedures::unlock(&*self.0.effects, &self.0.layout, key)?;
        self.refresh();
        self.mounted();
        Ok(())
    }

    /// Records that the storage is mounted, and lets the records in.
    pub(super) fn mounted(&self) {
        let contents = {
            let mut current = self.0.current.lock();
            (current.is_mounted, current.error) = (true, None);
            current.settings.contents.clone()
        };
        self.0.gate.set(Location::Encrypted, &contents);
    }

    /// Waits until the records are closed, and closes the storage.
    pub fn lock(&self) -> Result<(), StorageError> {
        let _operation = self.begin(&[StorageState::Mounted])?;
        let contents = self.0.current.lock().settings.contents.clone();
        self.0.gate.set(Location::Closed, &contents);
        let released = self.0.gate.wait_released(RELEASE_TIMEOUT).map_err(StorageError::InUse);
        let locked = released.and_then(|()| {
            let locked = procedures::lock(&*self.0.effects, &self.0.layout, Unmount::WhenUnused);
            locked.map_err(StorageError::from)
        });
        if let Err(error) = locked {
            // It may be unmounted, with the device still there.
            if self.0.effects.is_mounted(&self.0.layout.mount_point) {
                self.0.gate.set(Location::Encrypted, &contents);
                return Err(error);
            }
            tracing::warn!(%error, "failed to close the device of the encrypted storage at once");
            procedures::lock(&*self.0.effects, &self.0.layout, Unmount::Now)?;
        }
        self.0.current.lock().is_mounted = false;
        Ok(())
    }

    /// Closes the storage at once, with whatever is open.
    pub(super) fn close_now(&self) {
        let contents = self.0.current.lock().settings.contents.clone();
        if !self.0.layout.is_configured() {
            return;
        }
        self.0.gate.set(Location::Closed, &contents);
        if let Err(error) = procedures::lock(&*self.0.effects, &self.0.layout, Unmount::Now) {
            tracing::error!(%error, "failed to close the encrypted storage");
        }
        self.0.current.lock().is_mounted = false;
    }

    /// Destroys a storage that is not mounted. Further records are written unencrypted.
    pub fn tear_down(&self) -> Result<(), StorageError> {
        // An existing container can be removed without device-mapper.
        let allowed: &[StorageState] = &[StorageState::Locked, StorageState::Erased];
        let _operation = match self.state() {
            StorageState::Absent => self.begin(allowed)?,
            _ => self.occupy(allowed)?,
        };
        procedures::tear_down(&*self.0.effects, &self.0.layout)?;
        {
            let mut current = self.0.current.lock();
            (current.settings, current.header) = (StorageSettings::default(), None);
            (current.error, current.set_up) = (None, None);
        }
        self.0.gate.set(Location::Plain, &[]);
        Ok(())
    }

    /// Erases what a wipe of this level removes. Records in a mounted storage are erased by their owners. Those in a locked
    /// one cannot be erased one by one, so its header goes.
    pub(super) fn erase(&self, level: WipeLevel) -> Result<(), VolumeError> {
        let Inner { layout, effects, current, .. } = &*self.0;
        let is_mounted = current.lock().is_mounted;
        if !layout.is_configured() || (is_mounted && level != WipeLevel::Hard) {
            return Ok(());
        }
        let erased = effects.erase_header(&layout.container);
        self.close_now();
        current.lock().header = Some(VolumeHeader::default());
        erased
    }
}
