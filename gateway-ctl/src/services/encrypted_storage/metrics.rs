//! Metrics of the encrypted storage.

use prometheus_client::registry::Registry;

use super::error::name;
use super::layout::StorageContent;
use super::status::{EncryptedStorageStatus, StorageState};
use crate::metrics::{gauge, gauges};

const STATES: [StorageState; 5] = [
    StorageState::Absent,
    StorageState::SettingUp,
    StorageState::Locked,
    StorageState::Mounted,
    StorageState::Erased,
];

/// Adds state, sizes, key slots, and the records that wait. A gateway without a storage has its state only.
pub(super) fn register(registry: &mut Registry, status: &EncryptedStorageStatus) {
    let states =
        STATES.map(|state| (vec![("state", name(state).to_owned())], i64::from(state == status.state)));
    let help = "State of the encrypted storage: 1 for the state that it is in";
    gauges(registry, "encrypted_storage_state", help, states);
    if !status.configured {
        return;
    }
    if let Some(size) = status.size {
        gauge(registry, "encrypted_storage_size_bytes", "Size of the container", size);
    }
    if let Some(used) = status.used {
        gauge(registry, "encrypted_storage_used_bytes", "Bytes in use of the file system in it", used);
    }
    let tpm2 = status.keyslots.iter().filter(|slot| slot.is_tpm2).count();
    let slots = [("tpm2", tpm2), ("other", status.keyslots.len() - tpm2)];
    let slots = slots
        .map(|(kind, count)| (vec![("kind", kind.to_owned())], i64::try_from(count).unwrap_or(i64::MAX)));
    gauges(registry, "encrypted_storage_key_slots", "Key slots of the header, by kind", slots);
    let waiting = status.contents.iter().map(|content: &StorageContent| {
        let is_waiting = status.waiting.contains(content);
        (vec![("content", content.as_str().to_owned())], i64::from(is_waiting))
    });
    let help = "Records that live in the storage: 1 for those that wait for it";
    gauges(registry, "encrypted_storage_waiting", help, waiting);
}
