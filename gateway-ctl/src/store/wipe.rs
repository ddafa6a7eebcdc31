//! Wipe: removed data disappears from the bytes of the files, not only from the tables.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use gateway_core::state_machines::deadman::CheckIn;
use gateway_journal::erase::erase_file;
use gateway_model::{KINDS, RoutingPolicy, State};
use redb::{Key, TableDefinition, TableError, TableHandle, Value, WriteTransaction};
use serde_json::json;

use super::Store;
use super::audit::{self, AuditResult, AuditTicket};
use super::commit::write_state;
use super::error::Error;
use super::node_id;
use super::schema::{META, META_TEXT, meta};
use super::snapshots::store_pending;
use super::values;

/// Marker file in the folder of a destroyed store. The daemon does not start there until the file is removed.
pub const WIPED: &str = "wiped";

/// Previous store, in the folder of a store that replaced it on request. A wipe removes it too.
pub const DISCARDED: &str = "store.redb.discarded";

/// Key of the table `meta_text`.
const CHECK_IN: &str = "deadman_check_in";

/// Tables of the history.
const TRACES: &[&str] = &[
    "audit",
    "sessions",
    "sign_ins",
    BACKUP_RUNS,
    ALERTS,
    ALERT_NOTIFICATIONS,
    NOTIFICATION_OUTBOX,
    NOTIFIED_ALERTS,
];
/// Tables of the outbox of notifications.
pub(super) const NOTIFICATION_OUTBOX: &str = "notification_outbox";
pub(super) const NOTIFIED_ALERTS: &str = "notified_alerts";
/// Table of the runs of backups.
pub(super) const BACKUP_RUNS: &str = "backup_runs";
/// Tables of the alerts and of the notifications about them.
pub(super) const ALERTS: &str = "alerts";
pub(super) const ALERT_NOTIFICATIONS: &str = "alert_notifications";
/// Tables of the configuration, besides those of the kinds.
const CONFIGURATION: &[&str] = &["applied", "settings", "snapshots", "snapshot_contents"];

impl Store {
    /// Removes the history; with `configuration` also the whole configuration, including users and keys. In that
    /// case, a single blocking policy is left: an empty gateway would let all traffic out over the default route.
    ///
    /// The audit trail starts again with the entry of the wipe.
    pub fn wipe(&self, mut ticket: AuditTicket, configuration: bool) -> Result<(), Error> {
        let mut guarded = self.guarded();
        let mut head = self.writer.lock();
        let (before, now) = (self.current(), self.clock.now());
        let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
        drain(&txn, TRACES)?;
        let next = if configuration {
            drain(&txn, CONFIGURATION)?;
            // The snapshot for the rollback is gone.
            store_pending(&txn, None)?;
            let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.collection).collect();
            drain(&txn, &kinds)?;
            let next = blocked(&before, now)?;
            write_state(&txn, &State::empty(), &next)?;
            Some(next)
        } else {
            None
        };
        let emptied = head.restarted();
        ticket.details = json!({ "configuration": configuration, "audit_entries_before": head.id() });
        let entry = audit::Entry::new(&emptied, ticket, AuditResult::Success, now);
        audit::append(&txn, &entry)?;
        {
            let mut numbers = txn.open_table(META).map_err(Error::at("write"))?;
            numbers.insert(meta::AUDIT_FIRST, entry.id()).map_err(Error::at("write"))?;
            let mut texts = txn.open_table(META_TEXT).map_err(Error::at("write"))?;
            texts.remove(meta::AUDIT_BASE).map_err(Error::at("write"))?;
            numbers.insert(meta::REWRITE_DUE, 1).map_err(Error::at("write"))?;
        }
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        self.sessions.forget();
        if let Some(next) = next {
            guarded.forget();
            let revision = next.revision.0;
            self.current.store(Arc::new(next));
            self.revisions.send_replace(revision);
        }
        let discarded = self.folder().join(DISCARDED);
        erase_file(&discarded).map_err(|source| Error::Open { path: discarded, source })?;
        self.rewrite_file()
    }

    /// Overwrites and removes everything in the folder of the store, which is unusable afterwards. A marker file
    /// remains, so that no daemon starts here as if the gateway were new.
    pub fn destroy(&self) -> Result<(), Error> {
        let mut guarded = self.guarded();
        let _held = self.writer.lock();
        let folder = self.folder();
        let failed = |source| Error::Folder { path: folder.to_owned(), source };
        // The marker comes first: after an interruption, the gateway must not start with everything allowed.
        let marked = File::create(folder.join(WIPED)).and_then(|file| file.sync_all());
        // Release the open file before it is overwritten; otherwise, its last pages would be written into it.
        self.db.discard()?;
        self.current.store(Arc::new(State::empty()));
        self.sessions.forget();
        guarded.forget();
        let removed = remove_all(folder);
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        marked.and(removed).and(synced).map_err(failed)
    }

    /// Returns the last check-in of the dead-man switch.
    pub fn check_in(&self) -> Result<Option<CheckIn>, Error> {
        let txn = self.db.begin_read().map_err(Error::at("begin to read"))?;
        let text = values::text(&txn, CHECK_IN)?;
        Ok(text.and_then(|text| {
            let (at, certain) = text.split_once(' ')?;
            Some(CheckIn { at: at.parse().ok()?, certain: certain == "certain" })
        }))
    }

    /// Stores the last check-in. It does not change the configuration, so it has no audit entry.
    pub fn keep_check_in(&self, check_in: CheckIn) -> Result<(), Error> {
        let _held = self.writer.lock();
        let certain = if check_in.certain { "certain" } else { "uncertain" };
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        {
            let mut texts = txn.open_table(META_TEXT).map_err(Error::at("write"))?;
            let text = format!("{} {certain}", check_in.at);
            texts.insert(CHECK_IN, text.as_str()).map_err(Error::at("write"))?;
        }
        txn.commit().map_err(Error::at("commit"))
    }
}

/// Returns the state of a new gateway, with one policy in force that blocks traffic from the LAN.
fn blocked(before: &State, now: jiff::Timestamp) -> Result<State, Error> {
    let mut next = State::new(now);
    next.revision = before.revision.next();
    let policy = RoutingPolicy {
        name: "blocked after a wipe".into(),
        description: "The configuration was wiped. Delete this policy when there is a new one, and apply."
            .into(),
        priority: 1,
        ..RoutingPolicy::default()
    };
    next.create(policy)
        .map_err(|error| Error::Damaged { what: format!("the blocking policy is refused: {error}") })?;
    next.freeze_applied();
    // Another installation from now on: it keeps the backups of before.
    node_id::identify(&mut next);
    Ok(next)
}

/// Empties these tables, and skips those that do not exist.
fn drain(txn: &WriteTransaction, names: &[&str]) -> Result<(), Error> {
    let have: Vec<String> = txn
        .list_tables()
        .map_err(Error::at("list the tables"))?
        .map(|table| table.name().to_owned())
        .collect();
    for name in names.iter().filter(|name| have.iter().any(|have| have == *name)) {
        let mut drained = false;
        for drain in [
            drain_as::<&'static [u8; 16], &'static [u8]>,
            drain_as::<&'static str, &'static [u8]>,
            drain_as::<u64, &'static [u8]>,
            drain_as::<&'static [u8; 16], i64>,
        ] {
            drained = drained || drain(txn, name)?;
        }
        if !drained {
            return Err(Error::Damaged { what: format!("the table {name} has an unknown form") });
        }
    }
    Ok(())
}

/// Empties a table. Returns `false` if the table has other types.
fn drain_as<K: Key + 'static, V: Value + 'static>(txn: &WriteTransaction, name: &str) -> Result<bool, Error> {
    let mut table = match txn.open_table(TableDefinition::<K, V>::new(name)) {
        Ok(table) => table,
        Err(TableError::TableTypeMismatch { .. } | TableError::TypeDefinitionChanged { .. }) => {
            return Ok(false);
        }
        Err(error) => return Err(Error::at("empty a table")(error)),
    };
    table.retain(|_, _| false).map_err(Error::at("empty a table"))?;
    Ok(true)
}

/// Removes all files. Continues after a failure to remove as much as possible, and returns the first error.
fn remove_all(folder: &Path) -> io::Result<()> {
    let mut result = Ok(());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name == WIPED) {
            continue;
        }
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        let removed = if is_folder {
            remove_all(&path).and_then(|()| fs::remove_dir(&path))
        } else {
            erase_file(&path)
        };
        result = result.and(removed);
    }
    result
}

#[cfg(test)]
mod tests;
