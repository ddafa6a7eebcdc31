//! The bound on the entries of all lists together.

use std::collections::BTreeMap;
use std::sync::Mutex;

use gateway_model::Id;

use super::error::Error;
use crate::downloads::lock;

/// Number of entries of each list in use.
#[derive(Debug, Default)]
pub struct TotalEntries(Mutex<BTreeMap<Id, u64>>);

impl TotalEntries {
    /// Returns the number of entries a list may have beside the others.
    pub fn remaining(&self, id: Id, max: u64) -> u64 {
        max.saturating_sub(others(&lock(&self.0), id))
    }

    /// Replaces the entry count of a list. Returns an error if all lists together would have more than `max` entries;
    /// then the previous count remains.
    pub fn reserve(&self, id: Id, entries: u64, max: u64) -> Result<(), Error> {
        let mut counted = lock(&self.0);
        if others(&counted, id).saturating_add(entries) > max {
            return Err(Error::TooManyInTotal(max));
        }
        counted.insert(id, entries);
        Ok(())
    }

    /// Forgets lists that are no longer in use.
    pub fn retain(&self, is_used: impl Fn(Id) -> bool) {
        lock(&self.0).retain(|id, _| is_used(*id));
    }
}

fn others(counted: &BTreeMap<Id, u64>, id: Id) -> u64 {
    counted.iter().filter(|(other, _)| **other != id).map(|(_, entries)| entries).sum()
}
