//! The bound on the entries of all lists together.

use std::collections::BTreeMap;

use gateway_model::Id;
use parking_lot::Mutex;

use super::error::Error;

/// Number of entries of each list in use.
#[derive(Debug, Default)]
pub(super) struct TotalEntries(Mutex<BTreeMap<Id, u64>>);

impl TotalEntries {
    /// Returns the number of entries a list may have beside the others.
    pub(super) fn remaining(&self, id: Id, max: u64) -> u64 {
        max.saturating_sub(others(&self.0.lock(), id))
    }

    /// Replaces the entry count of a list. Returns an error if all lists together would have more than `max` entries;
    /// then the previous count remains.
    pub(super) fn reserve(&self, id: Id, entries: u64, max: u64) -> Result<(), Error> {
        let mut counted = self.0.lock();
        if others(&counted, id).saturating_add(entries) > max {
            return Err(Error::TooManyInTotal(max));
        }
        counted.insert(id, entries);
        Ok(())
    }

    /// Forgets lists that are no longer in use.
    pub(super) fn retain(&self, is_used: impl Fn(Id) -> bool) {
        self.0.lock().retain(|id, _| is_used(*id));
    }
}

fn others(counted: &BTreeMap<Id, u64>, id: Id) -> u64 {
    counted.iter().filter(|(other, _)| **other != id).map(|(_, entries)| entries).sum()
}
