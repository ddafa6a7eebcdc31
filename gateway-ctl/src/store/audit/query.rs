//! Queries of the audit trail: pages of entries, and a check of the whole chain.

use redb::{ReadableTable, ReadableTableMetadata};

use super::{
    AuditEntry, AuditFault, AuditFilter, AuditReport, PageEnd, base, chain, hex, parse, show, split,
};
use crate::store::error::Error;
use crate::store::schema::{AUDIT, meta};
use crate::store::{Store, values};

impl Store {
    /// Returns a page of the trail, newest first, and the number of all entries that match the filter regardless of
    /// `before`.
    pub fn audit(
        &self,
        limit: usize,
        before: Option<PageEnd>,
        filter: &AuditFilter,
    ) -> Result<(Vec<AuditEntry>, u64), Error> {
        let txn = self.db.begin_read().map_err(Error::at("read the audit trail"))?;
        let table = txn.open_table(AUDIT).map_err(Error::at("read the audit trail"))?;
        let all = table.len().map_err(Error::at("read the audit trail"))?;
        let (mut page, mut total) = (Vec::new(), 0);
        let needles = filter.needles();
        let finders: Vec<_> = needles.iter().map(memchr::memmem::Finder::new).collect();
        for row in table.iter().map_err(Error::at("read the audit trail"))?.rev() {
            // Without a filter the total is known, and the walk ends with the page.
            if filter.is_empty() && page.len() >= limit {
                break;
            }
            let (id, value) = row.map_err(Error::at("read the audit trail"))?;
            if filter.is_empty() && matches!(before, Some(PageEnd::Id(end)) if id.value() >= end) {
                continue;
            }
            if finders.iter().any(|finder| finder.find(value.value()).is_none()) {
                continue;
            }
            let entry = match show(value.value()) {
                Ok((entry, _)) => entry,
                Err(error) => {
                    tracing::warn!(id = id.value(), %error, "skipped an unreadable audit entry");
                    continue;
                }
            };
            if !filter.matches(&entry) {
                continue;
            }
            total += 1;
            let older = match before {
                None => true,
                Some(PageEnd::Id(end)) => entry.id < end,
                Some(PageEnd::Time(end)) => entry.timestamp < end,
            };
            if older && page.len() < limit {
                page.push(entry);
            }
        }
        Ok((page, if filter.is_empty() { all } else { total }))
    }

    /// Returns the newest of the last entries for which `is_wanted` returns true. Reads at most `most` entries.
    pub fn newest_audit(
        &self,
        most: usize,
        is_wanted: impl Fn(&AuditEntry) -> bool,
    ) -> Result<Option<AuditEntry>, Error> {
        let txn = self.db.begin_read().map_err(Error::at("read the audit trail"))?;
        let table = txn.open_table(AUDIT).map_err(Error::at("read the audit trail"))?;
        for row in table.iter().map_err(Error::at("read the audit trail"))?.rev().take(most) {
            let (_, value) = row.map_err(Error::at("read the audit trail"))?;
            if let Ok((entry, _)) = show(value.value())
                && is_wanted(&entry)
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Verifies the whole chain.
    pub fn verify_audit(&self) -> Result<AuditReport, Error> {
        let txn = self.db.begin_read().map_err(Error::at("read the audit trail"))?;
        let table = txn.open_table(AUDIT).map_err(Error::at("read the audit trail"))?;
        let entries = table.len().map_err(Error::at("read the audit trail"))?;
        let broken = |id: u64, what: &str| AuditReport {
            entries,
            intact: false,
            fault: Some(AuditFault { id, what: what.into() }),
        };
        let first = values::number(&txn, meta::AUDIT_FIRST)?.max(1);
        let (mut last, mut hash) = (first - 1, base(&txn)?);
        for row in table.iter().map_err(Error::at("read the audit trail"))? {
            let (id, value) = row.map_err(Error::at("read the audit trail"))?;
            let id = id.value();
            if id != last + 1 {
                return Ok(broken(last + 1, "the entry is missing"));
            }
            let Ok((stored, json)) = split(value.value()) else {
                return Ok(broken(id, "the entry is cut off"));
            };
            if chain(&hash, json) != stored {
                return Ok(broken(id, "the entry, or the one before it, was altered"));
            }
            match parse(json) {
                Ok(entry) if entry.id == id && entry.prev_hash == hex(&hash) => {}
                _ => return Ok(broken(id, "the entry does not belong here")),
            }
            (last, hash) = (id, stored);
        }
        if values::number(&txn, meta::AUDIT_LAST)? != last {
            return Ok(broken(last + 1, "entries at the end are missing"));
        }
        if last >= first && values::text(&txn, meta::AUDIT_HASH)? != Some(hex(&hash)) {
            return Ok(broken(last, "the last entry was exchanged"));
        }
        Ok(AuditReport { entries, intact: true, fault: None })
    }
}
