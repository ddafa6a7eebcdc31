//! Snapshots and the change that waits, as the store keeps them in memory.

use jiff::Timestamp;
use redb::ReadableDatabase;

use super::list;
use super::pending::{self, Pending};
use crate::store::error::Error;

/// What is kept in memory; locked for the whole of a change that can be taken back.
#[derive(Debug)]
pub(in crate::store) struct Guarded {
    pub(super) pending: Option<Pending>,
    pub(super) newest: Option<Timestamp>,
}

impl Guarded {
    /// When all snapshots are gone: nothing waits, because there is nothing to go back to.
    pub(in crate::store) fn forget(&mut self) {
        *self = Guarded { pending: None, newest: None };
    }

    pub(in crate::store) fn load(db: &redb::Database) -> Result<Guarded, Error> {
        let txn = db.begin_read().map_err(Error::at("read the snapshots"))?;
        let newest = list(&txn)?.first().map(|snapshot| snapshot.created_at);
        Ok(Guarded { pending: pending::load(&txn)?, newest })
    }
}
