//! Pending change that is rolled back unless confirmed (commit-confirmed).
//!
//! The store keeps the deadline in both clocks. Within one boot, the boot clock counts, because it cannot be set.
//! After a reboot, the wall clock counts, but never for longer than the requested time. An overdue change is rolled back
//! before the first plan of a start is compiled.

use std::time::Duration;

use gateway_model::bulk_edit::undo::ChangeSet;
use jiff::{SignedDuration, Timestamp};
use redb::{ReadTransaction, WriteTransaction};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::store::error::Error;
use crate::store::schema::META_TEXT;
use crate::store::values;

/// Keys of the table `meta_text`: the pending change, and the changes that it wrote.
const KEY: &str = "apply_pending";
const CHANGES: &str = "apply_pending_changes";

/// Time limit for the confirmation.
#[derive(Clone, Copy, Debug)]
pub struct Confirm {
    pub within: Duration,
}

/// Pending change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Snapshot for the rollback.
    pub snapshot: String,
    pub author: String,
    pub since: Timestamp,
    pub until: Timestamp,
    boot_id: String,
    /// Deadline in microseconds of the boot clock.
    boot_until: u64,
}

impl Pending {
    pub(super) fn new(snapshot: String, author: String, confirm: Confirm, clock: &dyn Clock) -> Pending {
        let since = clock.now();
        let within = SignedDuration::try_from(confirm.within).unwrap_or(SignedDuration::MAX);
        let boot_until = clock.boot().saturating_add(confirm.within);
        Pending {
            snapshot,
            author,
            since,
            until: since.saturating_add(within).unwrap_or(Timestamp::MAX),
            boot_id: clock.boot_id(),
            boot_until: u64::try_from(boot_until.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Returns the remaining time; zero when the change is overdue.
    pub fn remaining(&self, clock: &dyn Clock) -> Duration {
        if self.boot_id == clock.boot_id() {
            return Duration::from_micros(self.boot_until).saturating_sub(clock.boot());
        }
        let whole = self.until.duration_since(self.since);
        let left = self.until.duration_since(clock.now()).min(whole);
        Duration::try_from(left).unwrap_or_default()
    }
}

pub(in crate::store) fn store(
    txn: &WriteTransaction,
    pending: Option<(&Pending, &ChangeSet)>,
) -> Result<(), Error> {
    let mut table = txn.open_table(META_TEXT).map_err(Error::at("write"))?;
    match pending {
        Some((pending, changes)) => {
            let json = |value: Result<String, serde_json::Error>| value.expect("a struct with string keys");
            let (pending, changes) = (serde_json::to_string(pending), serde_json::to_string(changes));
            table.insert(KEY, json(pending).as_str()).map_err(Error::at("write"))?;
            table.insert(CHANGES, json(changes).as_str()).map_err(Error::at("write"))?;
        }
        None => {
            table.remove(KEY).map_err(Error::at("write"))?;
            table.remove(CHANGES).map_err(Error::at("write"))?;
        }
    }
    Ok(())
}

pub(super) fn load(txn: &ReadTransaction) -> Result<Option<Pending>, Error> {
    let Some(text) = values::text(txn, KEY)? else { return Ok(None) };
    let pending = serde_json::from_str(&text);
    pending.map(Some).map_err(|_| Error::Damaged { what: "the change that waits cannot be read".into() })
}

pub(super) fn load_changes(txn: &ReadTransaction) -> Result<ChangeSet, Error> {
    let changes = values::text(txn, CHANGES)?.and_then(|text| serde_json::from_str(&text).ok());
    changes.ok_or_else(|| Error::Damaged { what: "what the change that waits wrote cannot be read".into() })
}
