//! Passphrase and stored key of the storage.

use gateway_model::Secret;

use super::error::StorageError;
use super::layout::StorageSettings;
use super::status::StorageState;
use super::storage::{EncryptedStorage, Inner};
use super::stored_key;
use crate::os::encrypted_volume::VolumeError;
use crate::store::Store;

/// States with a header that opens.
pub(super) const WITH_HEADER: &[StorageState] = &[StorageState::Locked, StorageState::Mounted];

impl EncryptedStorage {
    /// Opens the storage by the stored key, if there is one. Returns whether it is open.
    pub(super) fn unlock_by_stored_key(&self, store: &Store) -> Result<bool, StorageError> {
        if self.0.current.lock().settings.stored_key_slot.is_none() {
            return Ok(false);
        }
        let Some(key) = stored_key::read(store) else { return Ok(false) };
        self.unlock(&key).map(|()| true)
    }

    /// Replaces the passphrase.
    pub fn change_passphrase(&self, have: &Secret, new: &Secret) -> Result<(), StorageError> {
        let _operation = self.begin(WITH_HEADER)?;
        self.0.effects.change_key(&self.0.layout.container, have, new)?;
        self.refresh();
        Ok(())
    }

    /// Adds a key of its own to the storage, and keeps it among the secrets of the gateway. An earlier one is replaced.
    pub fn store_key(&self, store: &Store, passphrase: &Secret) -> Result<(), StorageError> {
        let _operation = self.begin(WITH_HEADER)?;
        let Inner { layout, effects, current, .. } = &*self.0;
        let slot = effects.header(&layout.container)?.free_slot();
        let key = stored_key::random().map_err(VolumeError::at("make a key"))?;
        effects.add_key(&layout.container, passphrase, &key, slot)?;
        let earlier = current.lock().settings.stored_key_slot;
        let kept = stored_key::write(store, Some(key)).map_err(StorageError::from);
        if let Err(error) =
            kept.and_then(|()| self.write_settings(|settings| settings.stored_key_slot = Some(slot)))
        {
            // Without its key, the slot is of no use.
            effects.remove_key(&layout.container, slot)?;
            self.refresh();
            return Err(error);
        }
        if let Some(earlier) = earlier {
            effects.remove_key(&layout.container, earlier)?;
        }
        self.refresh();
        Ok(())
    }

    /// Removes the stored key and its slot. Further starts need the passphrase.
    pub fn remove_stored_key(&self, store: &Store) -> Result<(), StorageError> {
        let _operation = self.begin(WITH_HEADER)?;
        let Inner { layout, effects, current, .. } = &*self.0;
        let slot = current.lock().settings.stored_key_slot;
        if let Some(slot) = slot {
            let slots = effects.header(&layout.container)?.key_slots;
            let has_slot = slots.iter().any(|one| one.slot == slot);
            if has_slot && slots.len() < 2 {
                return Err(StorageError::LastKeySlot);
            }
            if has_slot {
                effects.remove_key(&layout.container, slot)?;
            }
            self.write_settings(|settings| settings.stored_key_slot = None)?;
        }
        stored_key::write(store, None)?;
        self.refresh();
        Ok(())
    }

    pub(super) fn write_settings(
        &self,
        change: impl FnOnce(&mut StorageSettings),
    ) -> Result<(), StorageError> {
        let Inner { layout, effects, current, .. } = &*self.0;
        let mut settings = current.lock().settings.clone();
        change(&mut settings);
        let text = serde_json::to_vec(&settings)
            .map_err(|error| VolumeError::at("write the settings of the storage")(error.into()))?;
        effects.write_file(&layout.settings, &text)?;
        current.lock().settings = settings;
        Ok(())
    }
}
