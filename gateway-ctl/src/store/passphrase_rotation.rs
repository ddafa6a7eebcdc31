//! Setting and removal of the passphrase of the secrets, and the status of the secrets.
//!
//! One transaction rewrites all rows, settings and snapshots, or nothing. The whole file is then rewritten, so that
//! neither values in clear nor the old passphrase stay in its bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gateway_model::secret::Open;
use gateway_model::secrets::{Scope, SecretPlace};
use gateway_model::{Resource, Secret, State};
use redb::WriteTransaction;
use serde_json::json;
use zeroize::Zeroizing;

use super::Store;
use super::audit::{self, AuditResult, AuditTicket};
use super::commit::write_state;
use super::error::Error;
use super::schema::{META, meta};
use super::vault::{self, ReencryptReport, SecretStorage, SecretsMode, UnsealableSecrets, Vault};

/// Status of the secrets, available without opening any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretsStatus {
    pub mode: SecretsMode,
    /// True if values are sealed and the passphrase is missing.
    pub locked: bool,
    pub total: usize,
    pub sealed: usize,
    /// Number of secrets that could not be opened when tried.
    pub unreadable: usize,
}

/// Secret in the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    pub place: SecretPlace,
    pub sealed: bool,
    pub unreadable: bool,
}

/// Reason why the passphrase did not change.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    #[error("{} values cannot be read with the present passphrase", places.len())]
    Unreadable { places: Vec<SecretPlace>, ticket: Box<AuditTicket> },
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Seals all secrets with this passphrase. While the secrets are locked, it must be the one that sealed them.
    pub fn set_passphrase(&self, ticket: AuditTicket, passphrase: &Secret) -> Result<usize, RotateError> {
        let next = Arc::new(Vault::new(Zeroizing::new(passphrase.expose().to_owned())));
        let by: Arc<dyn Open> = next.clone();
        let to = SecretStorage { mode: SecretsMode::Own, vault: Some(next.clone()), lost: false };
        self.rotate(ticket, to, |draft, locked| {
            let wants = |secret: &Secret| !secret.is_sealed_by(&by);
            exchange(draft, wants, |secret| match secret.sealed_text() {
                Some(text) if locked => Some(Secret::sealed(text, by.clone())).filter(Secret::is_readable),
                _ => next.seal(secret),
            })
        })
    }

    /// Keeps all secrets in clear from now on.
    pub fn clear_passphrase(&self, ticket: AuditTicket) -> Result<usize, RotateError> {
        let to = SecretStorage { mode: SecretsMode::Plain, vault: None, lost: false };
        self.rotate(ticket, to, |draft, _| {
            exchange(draft, |secret| secret.sealed_text().is_some(), vault::in_clear)
        })
    }

    /// Changes the sealing of all secrets. `edit` receives `true` if the secrets are locked.
    fn rotate(
        &self,
        mut ticket: AuditTicket,
        to: SecretStorage,
        edit: impl FnOnce(&mut State, bool) -> Result<usize, UnsealableSecrets>,
    ) -> Result<usize, RotateError> {
        let mut head = self.writer.lock();
        let (before, now) = (self.current(), self.clock.now());
        let mut draft = before.begin(now);
        // Under the lock: another thread may just have set a passphrase.
        let present = self.sealing.load_full();
        let values = match edit(&mut draft, present.is_locked()) {
            Ok(values) => values,
            Err(UnsealableSecrets(places)) => {
                return Err(RotateError::Unreadable { places, ticket: Box::new(ticket) });
            }
        };
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        write_state(&txn, &before, &draft)?;
        // While the secrets are locked, the passphrase that is set now is the one that sealed them.
        let from = if present.is_locked() { &to.vault } else { &present.vault };
        let known = exchanged(&before, &draft);
        let resealed = vault::reseal_snapshots(&txn, from.as_deref(), to.vault.as_deref(), known)?;
        ticket.details = details(values, resealed, to.mode);
        vault::write(&txn, &to)?;
        mark_due(&txn)?;
        let entry = audit::Entry::new(&head, ticket, AuditResult::Success, now);
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        let revision = draft.revision.0;
        self.current.store(Arc::new(draft));
        match to.vault.as_ref().and_then(|vault| vault.passphrase()) {
            Some(passphrase) => vault::keep(self.folder(), passphrase),
            None => vault::forget(self.folder()),
        }
        self.sealing.store(Arc::new(to));
        self.revisions.send_replace(revision);
        // The passphrase is already in force; if this fails, the next start tries again.
        if let Err(error) = self.rewrite_file() {
            tracing::error!(%error, "failed to compact the store: old values remain in free pages");
        }
        Ok(values)
    }

    /// Rewrites the whole file. The caller holds the writers' lock.
    pub(super) fn rewrite_file(&self) -> Result<(), Error> {
        self.db.rewrite(&self.path)?;
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        clear_due(&txn)?;
        txn.commit().map_err(Error::at("commit"))
    }

    pub fn secrets_status(&self) -> SecretsStatus {
        let sealing = self.sealing.load();
        let all = self.secrets();
        SecretsStatus {
            mode: sealing.mode,
            locked: sealing.is_locked(),
            total: all.len(),
            sealed: all.iter().filter(|entry| entry.sealed).count(),
            unreadable: all.iter().filter(|entry| entry.unreadable).count(),
        }
    }

    /// Returns every stored secret without its value.
    pub fn secrets(&self) -> Vec<SecretEntry> {
        let mut all = Vec::new();
        each(&self.current(), |place, secret| {
            let (sealed, unreadable) = (secret.sealed_text().is_some(), secret.is_known_unreadable());
            all.push(SecretEntry { place: place.clone(), sealed, unreadable });
        });
        all
    }

    /// Finds the values that are unreadable after a passphrase was lost. Takes some time.
    pub fn check_secrets(&self) {
        let sealing = self.sealing.load();
        if !sealing.lost && !sealing.is_locked() {
            return;
        }
        let mut secrets = Vec::new();
        each(&self.current(), |_, secret| secrets.push(secret.clone()));
        let unreadable = vault::open_all(&secrets);
        if unreadable > 0 {
            tracing::error!(unreadable, "failed to open secrets: set them again");
        }
    }

    /// Opens the secrets of the enabled tunnels on all CPUs. The first plan needs them, and opening them one after
    /// another would delay it.
    pub fn open_tunnel_secrets(&self) {
        let mut secrets = Vec::new();
        for tunnel in self.current().tunnels.iter().filter(|tunnel| tunnel.enabled) {
            // A clone shares the decrypted text.
            secrets.extend(tunnel.clone().secrets().into_iter().map(|(_, secret)| secret.clone()));
        }
        vault::open_all(&secrets);
    }

    /// Returns the number of keys derived since the start, or since the passphrase was set.
    pub fn derivations(&self) -> u64 {
        self.sealing.load().vault.as_ref().map_or(0, |vault| vault.derivations())
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

fn each(state: &State, mut visit: impl FnMut(&SecretPlace, &Secret)) {
    // A visitor could modify the secrets, so it gets a clone, which costs a few pointers.
    state.clone().visit_secrets(Scope::All, &mut |place, secret| visit(place, secret));
}

fn exchange(
    draft: &mut State,
    wants: impl Fn(&Secret) -> bool,
    make: impl Fn(&Secret) -> Option<Secret> + Sync,
) -> Result<usize, UnsealableSecrets> {
    vault::exchange_secrets(draft, Scope::All, wants, make)
}

/// Marks the secrets read from rows as sealed, if the store seals.
pub(super) fn adopt(state: &mut State, sealing: &SecretStorage) {
    if let Some(by) = sealing.opener() {
        state.visit_secrets(Scope::All, &mut |_, secret| secret.adopt(&by));
    }
}

/// Seals the clear-text secrets of an older store, including snapshots. Returns `true` if the tables now contain the
/// draft.
pub(super) fn seal_first(
    txn: &WriteTransaction,
    before: &State,
    draft: &mut State,
    sealing: &SecretStorage,
) -> Result<bool, Error> {
    let Some(vault) = &sealing.vault else { return Ok(false) };
    let sealed = vault::exchange_secrets(
        draft,
        Scope::All,
        |secret| secret.sealed_text().is_none(),
        |secret| vault.seal(secret),
    );
    let sealed = sealed.map_err(|UnsealableSecrets(places)| Error::SecretsUnreadable { places })?;
    if sealed > 0 {
        write_state(txn, before, draft)?;
    }
    let resealed = vault::reseal_snapshots(txn, Some(vault), Some(vault), exchanged(before, draft))?;
    if sealed > 0 || resealed.exchanged > 0 {
        mark_due(txn)?;
    }
    Ok(sealed > 0)
}

/// Returns the old texts of the rows, each with its new text.
fn exchanged(before: &State, draft: &State) -> BTreeMap<String, String> {
    let texts = |state: &State| {
        let mut texts = BTreeMap::new();
        each(state, |place, secret| {
            let place = (place.noun, place.id.clone(), place.field.clone());
            texts.insert(place, secret.stored_text().to_owned());
        });
        texts
    };
    let mut new = texts(draft);
    let old = texts(before).into_iter();
    old.filter_map(|(place, old)| Some((old, new.remove(&place)?))).filter(|(old, new)| old != new).collect()
}

/// Returns details for the audit trail: only numbers.
fn details(values: usize, resealed: ReencryptReport, mode: SecretsMode) -> serde_json::Value {
    let mut details = json!({
        "values": values,
        "passphrase": mode.as_str(),
        "snapshot_values": resealed.exchanged,
    });
    if resealed.unreadable > 0 {
        details["snapshot_values_unreadable"] = resealed.unreadable.into();
    }
    if resealed.damaged > 0 {
        details["snapshots_damaged"] = resealed.damaged.into();
    }
    details
}

/// Marks the file for a rewrite.
fn mark_due(txn: &WriteTransaction) -> Result<(), Error> {
    let mut numbers = txn.open_table(META).map_err(Error::at("write"))?;
    numbers.insert(meta::REWRITE_DUE, 1).map_err(Error::at("write"))?;
    Ok(())
}

pub(super) fn clear_due(txn: &WriteTransaction) -> Result<(), Error> {
    let mut numbers = txn.open_table(META).map_err(Error::at("write"))?;
    numbers.remove(meta::REWRITE_DUE).map_err(Error::at("write"))?;
    Ok(())
}

#[cfg(test)]
mod tests;
