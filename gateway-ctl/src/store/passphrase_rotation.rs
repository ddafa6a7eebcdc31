//! Setting and taking away the passphrase of the secrets, and what is known of them.
//!
//! All rows, settings and snapshots are rewritten in one transaction, or nothing is. Then the file is written anew, so
//! that neither values in clear nor the old passphrase stay in its bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

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
use super::vault::{self, Resealed, Sealing, SecretsMode, Unsealable, Vault};

/// What is known of the secrets without opening any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretsStatus {
    pub mode: SecretsMode,
    /// Values are sealed and the passphrase is missing.
    pub locked: bool,
    pub total: usize,
    pub sealed: usize,
    /// Those that were tried and could not be opened.
    pub unreadable: usize,
}

/// A secret in the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    pub place: SecretPlace,
    pub sealed: bool,
    pub unreadable: bool,
}

/// Why the passphrase is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    #[error("{} values cannot be read with the present passphrase", places.len())]
    Unreadable { places: Vec<SecretPlace>, ticket: Box<AuditTicket> },
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Seals everything under this passphrase. While the secrets are locked, it must be the one that they are sealed
    /// under.
    pub fn set_passphrase(&self, ticket: AuditTicket, passphrase: &Secret) -> Result<usize, RotateError> {
        let next = Arc::new(Vault::new(Zeroizing::new(passphrase.expose().to_owned())));
        let by: Arc<dyn Open> = next.clone();
        let to = Sealing { mode: SecretsMode::Own, vault: Some(next.clone()), lost: false };
        self.rotate(ticket, to, |draft, locked| {
            let wants = |secret: &Secret| !secret.is_sealed_by(&by);
            exchange(draft, wants, |secret| match secret.sealed_text() {
                Some(text) if locked => Some(Secret::sealed(text, by.clone())).filter(Secret::is_readable),
                _ => next.seal(secret),
            })
        })
    }

    /// Keeps all secrets in clear from here on.
    pub fn clear_passphrase(&self, ticket: AuditTicket) -> Result<usize, RotateError> {
        let to = Sealing { mode: SecretsMode::Plain, vault: None, lost: false };
        self.rotate(ticket, to, |draft, _| {
            exchange(draft, |secret| secret.sealed_text().is_some(), vault::in_clear)
        })
    }

    /// `edit` is told whether the secrets are locked.
    fn rotate(
        &self,
        mut ticket: AuditTicket,
        to: Sealing,
        edit: impl FnOnce(&mut State, bool) -> Result<usize, Unsealable>,
    ) -> Result<usize, RotateError> {
        let mut head = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, now) = (self.current(), self.clock.now());
        let mut draft = before.begin(now);
        // Under the lock: another passphrase may just have been set.
        let present = self.sealing.load_full();
        let values = match edit(&mut draft, present.is_locked()) {
            Ok(values) => values,
            Err(Unsealable(places)) => {
                return Err(RotateError::Unreadable { places, ticket: Box::new(ticket) });
            }
        };
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        write_state(&txn, &before, &draft)?;
        // While locked, what is sealed was sealed under the passphrase that is set now.
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
        // It stands already; the next start tries again if this fails.
        if let Err(error) = self.rewrite_file() {
            tracing::error!(%error, "the store could not be written anew: old values are still in its free pages");
        }
        Ok(values)
    }

    /// Writes the file anew. The caller holds the lock of the writers.
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

    /// Every secret that is stored, without its value.
    pub fn secrets(&self) -> Vec<SecretEntry> {
        let mut all = Vec::new();
        each(&self.current(), |place, secret| {
            let (sealed, unreadable) = (secret.sealed_text().is_some(), secret.is_known_unreadable());
            all.push(SecretEntry { place: place.clone(), sealed, unreadable });
        });
        all
    }

    /// After a passphrase was lost: finds out which values cannot be opened any more. Takes its time.
    pub fn check_secrets(&self) {
        let sealing = self.sealing.load();
        if !sealing.lost && !sealing.is_locked() {
            return;
        }
        let mut secrets = Vec::new();
        each(&self.current(), |_, secret| secrets.push(secret.clone()));
        let unreadable = vault::open_all(&secrets);
        if unreadable > 0 {
            tracing::error!(unreadable, "secrets cannot be read; set them again");
        }
    }

    /// Opens the secrets of the tunnels that are to run, on all processors: the first plan needs them, and one after
    /// another they would hold it up.
    pub fn open_tunnel_secrets(&self) {
        let mut secrets = Vec::new();
        for tunnel in self.current().tunnels.iter().filter(|tunnel| tunnel.enabled) {
            // A copy shares what was opened.
            secrets.extend(tunnel.clone().secrets().into_iter().map(|(_, secret)| secret.clone()));
        }
        vault::open_all(&secrets);
    }

    /// Keys derived since the start, or since the passphrase was set.
    pub fn derivations(&self) -> u64 {
        self.sealing.load().vault.as_ref().map_or(0, |vault| vault.derivations())
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

fn each(state: &State, mut visit: impl FnMut(&SecretPlace, &Secret)) {
    // A visitor could exchange what it sees, so it is given a copy, which costs a few pointers.
    state.clone().visit_secrets(Scope::All, &mut |place, secret| visit(place, secret));
}

fn exchange(
    draft: &mut State,
    wants: impl Fn(&Secret) -> bool,
    make: impl Fn(&Secret) -> Option<Secret> + Sync,
) -> Result<usize, Unsealable> {
    vault::exchange_secrets(draft, Scope::All, wants, make)
}

/// What was read back from rows is sealed if the store seals.
pub(super) fn adopt(state: &mut State, sealing: &Sealing) {
    if let Some(by) = sealing.opener() {
        state.visit_secrets(Scope::All, &mut |_, secret| secret.adopt(&by));
    }
}

/// Seals what a store of an older version has in clear, snapshots included. True if the draft is what stands in the
/// tables.
pub(super) fn seal_first(
    txn: &WriteTransaction,
    before: &State,
    draft: &mut State,
    sealing: &Sealing,
) -> Result<bool, Error> {
    let Some(vault) = &sealing.vault else { return Ok(false) };
    let sealed = vault::exchange_secrets(
        draft,
        Scope::All,
        |secret| secret.sealed_text().is_none(),
        |secret| vault.seal(secret),
    );
    let sealed = sealed.map_err(|Unsealable(places)| Error::SecretsUnreadable { places })?;
    if sealed > 0 {
        write_state(txn, before, draft)?;
    }
    let resealed = vault::reseal_snapshots(txn, Some(vault), Some(vault), exchanged(before, draft))?;
    if sealed > 0 || resealed.exchanged > 0 {
        mark_due(txn)?;
    }
    Ok(sealed > 0)
}

/// What stood in the rows, and what stands there instead.
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

/// For the audit trail: numbers only.
fn details(values: usize, resealed: Resealed, mode: SecretsMode) -> serde_json::Value {
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

/// The file is to be written anew.
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
