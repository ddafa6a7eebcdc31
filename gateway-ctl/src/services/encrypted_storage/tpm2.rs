//! Key of the storage that a TPM2 of this host seals, by which it opens at start.

use gateway_model::Secret;

use super::error::StorageError;
use super::keys::WITH_HEADER;
use super::procedures;
use super::status::StorageState;
use super::storage::{EncryptedStorage, Inner};

/// Highest number of a PCR (TCG PC Client Platform TPM Profile).
pub const MAX_PCR: u32 = 23;

impl EncryptedStorage {
    /// Opens the storage by the TPM, if that is set. Returns whether it is open.
    pub(super) fn unlock_by_tpm2(&self) -> Result<bool, StorageError> {
        if !self.0.current.lock().settings.opens_by_tpm2 {
            return Ok(false);
        }
        let _operation = self.begin(&[StorageState::Locked])?;
        procedures::unlock_by_tpm2(&*self.0.effects, &self.0.layout)?;
        self.refresh();
        self.mounted();
        Ok(true)
    }

    /// Adds a key that the TPM releases only while these PCRs have the values of now. An earlier one is replaced.
    pub fn store_tpm2_key(&self, passphrase: &Secret, pcrs: &[u32]) -> Result<(), StorageError> {
        let _operation = self.begin(WITH_HEADER)?;
        let Inner { layout, effects, .. } = &*self.0;
        let missing = effects.missing_for_tpm2();
        if !missing.is_empty() {
            return Err(StorageError::NotSupported(missing.join("; ")));
        }
        let added = effects.add_tpm2_key(&layout.container, passphrase, pcrs);
        self.refresh();
        added?;
        self.write_settings(|settings| settings.opens_by_tpm2 = true)
    }

    /// Removes the keys that a TPM seals. Further starts do not use it.
    pub fn remove_tpm2_key(&self) -> Result<(), StorageError> {
        let _operation = self.begin(WITH_HEADER)?;
        let Inner { layout, effects, .. } = &*self.0;
        let slots = effects.header(&layout.container)?.key_slots;
        if !slots.is_empty() && slots.iter().all(|slot| slot.is_tpm2) {
            return Err(StorageError::LastKeySlot);
        }
        // A start between the two finds no key, and asks for the passphrase.
        self.write_settings(|settings| settings.opens_by_tpm2 = false)?;
        let removed = effects.remove_tpm2_keys(&layout.container);
        self.refresh();
        Ok(removed?)
    }
}
