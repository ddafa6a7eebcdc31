//! Snapshots and the pending change, as the store keeps them in memory.

use jiff::Timestamp;
use redb::ReadableDatabase;

use super::list;
use super::pending::{self, Pending};
use crate::store::error::Error;

/// Data in memory. It is locked during the whole of a change that can be rolled back.
#[derive(Debug)]
pub(in crate::store) struct Guarded {
    pub(super) pending: Option<Pending>,
    pub(super) newest: Option<Timestamp>,
}

impl Guarded {
    /// Clears the data when all snapshots are removed: without a snapshot, no change can be pending.
    pub(in crate::store) fn forget(&mut self) {
        *self = Guarded { pending: None, newest: None };
    }

    pub(in crate::store) fn load(db: &redb::Database) -> Result<Guarded, Error> {
        let txn = db.begin_read().map_err(Error::at("read the snapshots"))?;
        let newest = list(&txn)?.first().map(|snapshot| snapshot.created_at);
        Ok(Guarded { pending: pending::load(&txn)?, newest })
    }
}
