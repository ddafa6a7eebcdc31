//! Encrypted storage: a LUKS2 container in the state folder, in which records live that name hosts, once it is set up.
//!
//! Users of such records ask [`EncryptedStorage::open_folder`] for their folder. While the storage is configured and not
//! mounted there is none: they wait, and keep what they can in memory.
//!
//! Decision 0206 says why.

mod error;
#[cfg(test)]
mod fake_volumes;
#[cfg(test)]
pub(crate) mod fixture;
mod folder_gate;
mod keys;
mod layout;
mod metrics;
mod procedures;
mod set_up;
mod status;
mod storage;
mod stored_file;
mod stored_key;
mod tpm2;

use std::time::Duration;

use gateway_core::health::{Check, Finding};
use gateway_model::kinds::alert_rule::AlertKind;

use crate::service::{Context, Health, Service};
use crate::services::active_alerts::ActiveAlerts;
use crate::supervise::blocking;
pub use error::{StorageError, name as state_name};
pub use folder_gate::OpenFolder;
pub use layout::{StorageContent, plain_folder};
pub use set_up::{BegunSetUp, MAX_SIZE_MB, MIN_SIZE_MB, SetUpRequest};
pub use status::{EncryptedStorageStatus, SetUpPhase, SetUpProgress, StorageState, Tpm2Status};
pub use storage::EncryptedStorage;
pub use stored_file::StoredFile;
pub use tpm2::MAX_PCR;

const ALERT: AlertKind = AlertKind::EncryptedStorageLocked;
const SUBJECT: &str = "encrypted_storage";
/// Interval at which the service looks whether the storage is still mounted.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Returns the service that opens the storage at the start by a stored key, and closes it at the end. It starts before the
/// services whose records live there, and so ends after them.
pub fn service(context: &Context) -> Service {
    let storage = context.handles.get::<EncryptedStorage>();
    let (reported, measured, erased) = (storage.clone(), storage.clone(), storage.clone());
    Service::new("encrypted_storage", context, run)
        .reports(move || std::future::ready(health(&reported)))
        .measures(move |registry| metrics::register(registry, &measured.status()))
        .erases(move |level| {
            let storage = erased.clone();
            async move { blocking(move || storage.erase(level)).await.map_err(std::io::Error::other) }
        })
        .releases(move || blocking(move || storage.close_now()))
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let storage = context.handles.get::<EncryptedStorage>();
    let (opened, store) = (storage.clone(), context.store.clone());
    blocking(move || {
        if opened.is_mounted() {
            // The task was started again.
            return;
        }
        opened.recover();
        opened.open_at_start(&store);
    })
    .await;
    let mut changes = storage.watch();
    loop {
        publish(&context.active_alerts, &storage);
        let checked = storage.clone();
        // The storage itself keeps the sender.
        let _ = tokio::time::timeout(CHECK_INTERVAL, changes.changed()).await;
        blocking(move || checked.check_mount()).await;
    }
}

impl EncryptedStorage {
    fn is_mounted(&self) -> bool {
        self.0.current.lock().is_mounted
    }

    /// Opens the storage by the TPM or by the stored key, as far as that is set. Otherwise it waits for a passphrase.
    fn open_at_start(&self, store: &crate::store::Store) {
        if self.state() != StorageState::Locked {
            return;
        }
        let by_tpm2 = self.unlock_by_tpm2();
        let by_key = match by_tpm2 {
            Ok(true) => return,
            Ok(false) | Err(_) => self.unlock_by_stored_key(store),
        };
        let mut reasons = Vec::new();
        if let Err(error) = by_tpm2 {
            tracing::error!(%error, "failed to open the encrypted storage by the TPM");
            reasons.push(error.to_string());
        }
        match by_key {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "failed to open the encrypted storage by the stored key");
                reasons.push(format!("the stored key did not open the storage: {error}"));
            }
        }
        reasons.push("the storage waits for its passphrase".to_owned());
        self.0.current.lock().error = Some(reasons.join("; "));
    }

    /// Closes the folders if another program has unmounted the storage: records would be written in clear below it.
    fn check_mount(&self) {
        if self.is_mounted() && !self.0.effects.is_mounted(&self.0.layout.mount_point) {
            tracing::error!("the encrypted storage was unmounted by another program: records wait");
            self.close_now();
        }
    }
}

/// Returns the health while records wait, or while there is a storage.
fn health(storage: &EncryptedStorage) -> Option<Health> {
    let finding = match storage.state() {
        StorageState::Absent | StorageState::SettingUp => return None,
        StorageState::Mounted => None,
        StorageState::Locked | StorageState::Erased => {
            Some(Finding::storage_locked(&error::list(&storage.waiting())))
        }
    };
    Some(Check::of("encrypted_storage", finding.into_iter().collect(), "").into())
}

fn publish(active_alerts: &ActiveAlerts, storage: &EncryptedStorage) {
    let waiting = error::list(&storage.waiting());
    match storage.state() {
        StorageState::Locked | StorageState::Erased => {
            let reason = storage.0.current.lock().error.clone();
            let is_erased = storage.state() == StorageState::Erased;
            let reason = reason.filter(|_| !is_erased).unwrap_or_else(|| {
                let text = if is_erased { "it has no header" } else { "it was closed" };
                text.to_owned()
            });
            let message = format!("Waiting for encrypted storage: {waiting} ({reason})");
            active_alerts.raise(ALERT, SUBJECT, message);
        }
        StorageState::Absent | StorageState::Mounted => active_alerts.clear(ALERT, SUBJECT),
        StorageState::SettingUp => {}
    }
}

#[cfg(test)]
mod tests;
