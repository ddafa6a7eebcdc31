//! Runs of the backups, with their results.
//!
//! They are stored beside the configuration: a rollback must not undo the record of a backup.

use jiff::Timestamp;
use redb::{ReadableTable, TableDefinition, TableError, WriteTransaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Store;
use super::audit::{self, AuditResult, AuditTicket};
use super::error::Error;
use super::schema::META_TEXT;
use super::values;

/// Number of the run to its JSON.
const RUNS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new(super::wipe::BACKUP_RUNS);

/// Key of the table `meta_text`: the series that distinguishes this gateway's files from those of others in the same
/// folder.
const SERIES: &str = "backup_series";

/// Maximum number of runs that are kept. The last successful one is always kept.
const MAX_RUNS: usize = 50;

/// Trigger of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BackupTrigger")]
pub enum Trigger {
    /// Due by the schedule.
    Schedule,
    /// Retry after a failed run.
    Retry,
    /// Requested by a user.
    Manual,
}

/// Result of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BackupOutcome")]
pub enum Outcome {
    Ok,
    Failed,
}

/// Run of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BackupRun")]
pub struct Run {
    /// Start time.
    pub at: Timestamp,
    pub finished_at: Timestamp,
    pub trigger: Trigger,
    pub result: Outcome,
    /// Size of the encrypted file in bytes; null if it was not written.
    pub size: Option<u64>,
    /// Name of the file at the target.
    pub name: String,
    /// Target of the backup.
    pub target: String,
    /// Reason of the failure.
    pub error: Option<String>,
    /// Problem that occurred although the backup exists and was verified.
    pub warning: Option<String>,
}

impl Run {
    pub fn is_ok(&self) -> bool {
        self.result == Outcome::Ok
    }
}

impl Store {
    /// Returns the stored runs, newest first.
    pub fn backup_runs(&self) -> Result<Vec<Run>, Error> {
        let txn = self.db.begin_read().map_err(Error::at("read the runs of backups"))?;
        let table = match txn.open_table(RUNS) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(Error::at("read the runs of backups")(error)),
        };
        let mut runs = Vec::new();
        for row in table.iter().map_err(Error::at("read the runs of backups"))?.rev() {
            let (_, json) = row.map_err(Error::at("read the runs of backups"))?;
            // An unreadable run must not prevent further backups.
            runs.extend(serde_json::from_slice::<Run>(json.value()).ok());
        }
        Ok(runs)
    }

    /// Stores a run, with its audit entry in the same transaction.
    pub fn keep_backup_run(&self, ticket: AuditTicket, run: &Run) -> Result<(), Error> {
        let result = if run.is_ok() { AuditResult::Success } else { AuditResult::Failed };
        let mut head = self.writer.lock();
        let entry = audit::Entry::new(&head, ticket, result, self.clock.now());
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        add(&txn, run)?;
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        Ok(())
    }

    /// Returns the short text that identifies this installation in the names of its backups. Created on first use.
    pub fn backup_series(&self) -> Result<String, Error> {
        let known = {
            let txn = self.db.begin_read().map_err(Error::at("begin to read"))?;
            values::text(&txn, SERIES)?
        };
        if let Some(series) = known {
            return Ok(series);
        }
        let _held = self.writer.lock();
        let series = format!("{:.8}", uuid::Uuid::new_v4().simple().to_string());
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        {
            let mut texts = txn.open_table(META_TEXT).map_err(Error::at("write"))?;
            // Another thread may have created it first.
            let known = texts.get(SERIES).map_err(Error::at("write"))?.map(|known| known.value().to_owned());
            if let Some(known) = known {
                return Ok(known);
            }
            texts.insert(SERIES, series.as_str()).map_err(Error::at("write"))?;
        }
        txn.commit().map_err(Error::at("commit"))?;
        Ok(series)
    }
}

fn add(txn: &WriteTransaction, run: &Run) -> Result<(), Error> {
    let failed = || Error::at("write the run of a backup");
    let json = serde_json::to_vec(run).expect("a run is a struct with string keys");
    let mut table = txn.open_table(RUNS).map_err(Error::at("write the run of a backup"))?;
    let last = table.last().map_err(failed())?.map_or(0, |(number, _)| number.value());
    table.insert(last + 1, json.as_slice()).map_err(failed())?;
    let mut kept = 0;
    let mut has_good = false;
    let mut surplus = Vec::new();
    for row in table.iter().map_err(failed())?.rev() {
        let (number, json) = row.map_err(failed())?;
        let good = serde_json::from_slice::<Run>(json.value()).is_ok_and(|run| run.is_ok());
        if kept < MAX_RUNS || (good && !has_good) {
            kept += 1;
            has_good |= good;
        } else {
            surplus.push(number.value());
        }
    }
    for number in surplus {
        table.remove(number).map_err(failed())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    fn run(number: i64, result: Outcome) -> Run {
        let at = Timestamp::from_second(number).unwrap();
        Run {
            at,
            finished_at: at,
            trigger: Trigger::Schedule,
            result,
            size: None,
            name: number.to_string(),
            target: "/backup".into(),
            error: None,
            warning: None,
        }
    }

    #[test]
    fn the_newest_runs_and_the_last_good_one_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let store = Store::open(&path, SystemClock::shared()).unwrap();
        assert_eq!(store.backup_runs().unwrap(), []);
        let before = store.current().revision;
        let ticket = || AuditTicket::system("run_backup", "backup");
        store.keep_backup_run(ticket(), &run(0, Outcome::Ok)).unwrap();
        for number in 1..=60 {
            store.keep_backup_run(ticket(), &run(number, Outcome::Failed)).unwrap();
        }
        let series = store.backup_series().unwrap();
        assert_eq!((series.len(), store.current().revision), (8, before));
        drop(store);
        let store = Store::open(&path, SystemClock::shared()).unwrap();
        let runs = store.backup_runs().unwrap();
        assert_eq!((runs.len(), runs[0].name.as_str(), runs[49].name.as_str()), (51, "60", "11"));
        assert!(runs[50].is_ok());
        assert_eq!(store.backup_series().unwrap(), series);
        let (entries, total) = store.audit(1, None, &Default::default()).unwrap();
        assert_eq!((entries[0].result, total), (AuditResult::Failed, 61));
        assert!(store.verify_audit().unwrap().intact);
        // Even a soft wipe removes the history.
        store.wipe(ticket(), false).unwrap();
        assert_eq!(store.backup_runs().unwrap(), []);
    }
}
