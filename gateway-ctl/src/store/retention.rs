//! Retention of the audit trail: the oldest entries are removed, and the chain still proves the rest.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};
use serde_json::json;

use super::audit::{self, AuditResult, AuditTicket};
use super::error::Error;
use super::schema::{AUDIT, META, META_TEXT, meta};
use super::{Store, values};

/// Maximum number of entries that one transaction removes, because writers wait for it.
const BATCH: usize = 5_000;

/// Limits of the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRetention {
    pub entries: u64,
    pub age: Duration,
}

impl Store {
    /// Removes entries beyond the limits, the oldest first, and records their number. Returns that number. Blocks on
    /// the disk.
    pub fn trim_audit(&self, keep: AuditRetention) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let batch = self.trim_batch(keep)?;
            removed += batch;
            if batch < BATCH as u64 {
                return Ok(removed);
            }
        }
    }

    fn trim_batch(&self, keep: AuditRetention) -> Result<u64, Error> {
        let mut head = self.writer.lock();
        let now = self.clock.now();
        let age = SignedDuration::try_from(keep.age).unwrap_or(SignedDuration::MAX);
        let oldest = now.checked_sub(age).unwrap_or(Timestamp::MIN);
        let Some(end) = self.end_of_surplus(keep.entries.max(1), oldest)? else { return Ok(0) };
        let txn = self.db.begin_vital().map_err(Error::at("begin to write"))?;
        let removed = remove_before(&txn, end)?;
        let mut ticket = AuditTicket::system("trim_audit", "audit");
        ticket.details = json!({ "removed": removed, "first_entry": end });
        let entry = audit::Entry::new(&head, ticket, AuditResult::Success, now);
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        Ok(removed)
    }

    /// Returns the first entry to keep; `None` if all are kept. Checks the entries of one batch only.
    fn end_of_surplus(&self, keep: u64, oldest: Timestamp) -> Result<Option<u64>, Error> {
        let txn = self.db.begin_read().map_err(Error::at("read the audit trail"))?;
        let table = txn.open_table(AUDIT).map_err(Error::at("read the audit trail"))?;
        let last = values::number(&txn, meta::AUDIT_LAST)?;
        let entries = table.len().map_err(Error::at("read the audit trail"))?;
        // The removal itself adds one entry.
        let first = if entries > keep { (last + 2).saturating_sub(keep) } else { 0 };
        let mut end = None;
        for row in table.iter().map_err(Error::at("read the audit trail"))?.take(BATCH) {
            let (id, value) = row.map_err(Error::at("read the audit trail"))?;
            let old = || audit::time_of(value.value()).is_none_or(|time| time < oldest);
            // The last entry proves the end of the trail.
            if id.value() >= last || (id.value() >= first && !old()) {
                break;
            }
            end = Some(id.value() + 1);
        }
        Ok(end)
    }
}

/// Removes the entries before `end` and stores the hash with which the chain then begins.
fn remove_before(txn: &WriteTransaction, end: u64) -> Result<u64, Error> {
    let failed = || Error::at("trim the audit trail");
    let mut table = txn.open_table(AUDIT).map_err(Error::at("trim the audit trail"))?;
    let hash = match table.get(end - 1).map_err(failed())? {
        Some(value) => audit::hash_of(value.value())?,
        None => return Err(Error::Damaged { what: "an audit entry is missing".into() }),
    };
    let mut removed = 0;
    table
        .retain_in(..end, |_, _| {
            removed += 1;
            false
        })
        .map_err(failed())?;
    let mut numbers = txn.open_table(META).map_err(Error::at("trim the audit trail"))?;
    numbers.insert(meta::AUDIT_FIRST, end).map_err(failed())?;
    let mut texts = txn.open_table(META_TEXT).map_err(Error::at("trim the audit trail"))?;
    texts.insert(meta::AUDIT_BASE, hash.as_str()).map_err(failed())?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;
    use crate::store::{AuditFilter, PageEnd};

    const DAY: Duration = Duration::from_secs(86_400);

    fn store() -> (tempfile::TempDir, Arc<ManualClock>, Store) {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2026-11-22T12:00:00Z".parse().unwrap());
        let store = Store::open(folder.path().join("store.redb"), clock.clone()).unwrap();
        (folder, clock, store)
    }

    fn record(store: &Store, actor: &str, count: usize) {
        for _ in 0..count {
            let ticket = AuditTicket { actor: actor.into(), ..AuditTicket::system("act", "thing") };
            store.record(ticket, AuditResult::Success).unwrap();
        }
    }

    #[test]
    fn trail_is_trimmed_by_count_and_its_rest_still_verifies() {
        let (folder, clock, store) = store();
        record(&store, "anna", 30);
        let keep = AuditRetention { entries: 10, age: 365 * DAY };
        assert_eq!(store.trim_audit(keep).unwrap(), 21);
        let (entries, total) = store.audit(100, None, &AuditFilter::default()).unwrap();
        assert_eq!((entries.len(), total, entries[0].action.as_str()), (10, 10, "trim_audit"));
        assert_eq!(store.trim_audit(keep).unwrap(), 0, "nothing is left to remove");
        record(&store, "anna", 1);
        assert!(store.verify_audit().unwrap().intact);
        drop(store);
        let store = Store::open(folder.path().join("store.redb"), clock).unwrap();
        let report = store.verify_audit().unwrap();
        assert!(report.intact && report.entries == 11, "{report:?}");
        // A second removal begins after the first.
        assert_eq!(store.trim_audit(AuditRetention { entries: 5, age: 365 * DAY }).unwrap(), 7);
        assert!(store.verify_audit().unwrap().intact);
        // After a wipe, the chain begins with zeros again.
        store.wipe(AuditTicket::system("wipe_system", "system"), false).unwrap();
        record(&store, "anna", 2);
        assert!(store.verify_audit().unwrap().intact);
    }

    #[test]
    fn trail_is_trimmed_by_age() {
        let (_folder, clock, store) = store();
        record(&store, "anna", 5);
        clock.advance(10 * DAY);
        record(&store, "bert", 3);
        let keep = AuditRetention { entries: 1_000_000, age: 5 * DAY };
        assert_eq!(store.trim_audit(keep).unwrap(), 5);
        let (entries, _) = store.audit(100, None, &AuditFilter::default()).unwrap();
        assert!(entries.iter().all(|entry| entry.actor != "anna"), "{entries:?}");
        assert!(store.verify_audit().unwrap().intact);
    }

    #[test]
    fn removed_entry_is_noticed_in_a_trimmed_trail_too() {
        let (_folder, _clock, store) = store();
        record(&store, "anna", 20);
        store.trim_audit(AuditRetention { entries: 10, age: 365 * DAY }).unwrap();
        let txn = store.db.begin_write().unwrap();
        let first = {
            let mut table = txn.open_table(AUDIT).unwrap();
            let first = table.first().unwrap().unwrap().0.value();
            table.remove(first).unwrap();
            first
        };
        txn.commit().unwrap();
        let report = store.verify_audit().unwrap();
        assert_eq!(report.fault.map(|fault| fault.id), Some(first));
    }

    #[test]
    fn filters_find_what_they_name_and_nothing_else() {
        let (_folder, _clock, store) = store();
        record(&store, "anna", 2);
        record(&store, "a \"quoted\" name", 3);
        record(&store, "ann", 1);
        for (actor, expected) in [("anna", 2), ("a \"quoted\" name", 3), ("ann", 1), ("actor", 0)] {
            let filter = AuditFilter { actor: Some(actor.into()), ..AuditFilter::default() };
            let (entries, total) = store.audit(2, None, &filter).unwrap();
            assert_eq!((entries.len() as u64, total), (expected.min(2), expected), "{actor}");
        }
        let filter = AuditFilter { actor: Some("anna".into()), ..AuditFilter::default() };
        let (page, total) = store.audit(10, Some(PageEnd::Id(2)), &filter).unwrap();
        assert_eq!((page.len(), total), (1, 2));
    }
}
