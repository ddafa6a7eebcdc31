//! Schema versions of the file and the way from one to the next.
//!
//! A migration is closed once it was released: it works on raw tables and types of its own, never on those of the
//! model, and is not edited any more. A file of a newer schema than [`SCHEMA`] is refused.

mod v1;
mod v2;

use redb::{ReadableDatabase, TableError, WriteTransaction};

use super::error::Error;
use super::schema::{META, meta};

/// The schema that this version writes.
pub const SCHEMA: u64 = 2;

struct Step {
    to: u64,
    run: fn(&WriteTransaction) -> Result<(), Error>,
}

const STEPS: &[Step] = &[Step { to: 1, run: v1::run }, Step { to: 2, run: v2::run }];

/// The schema of the file; 0 for an empty one.
pub(super) fn version(db: &redb::Database) -> Result<u64, Error> {
    let txn = db.begin_read().map_err(Error::at("read"))?;
    let table = match txn.open_table(META) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(0),
        Err(error) => return Err(Error::at("read")(error)),
    };
    let version = redb::ReadableTable::get(&table, meta::SCHEMA).map_err(Error::at("read"))?;
    match version {
        Some(version) => Ok(version.value()),
        None => Err(Error::Damaged { what: "it has no schema version".into() }),
    }
}

/// Brings the file to [`SCHEMA`], each step in a transaction of its own.
pub(super) fn run(db: &redb::Database) -> Result<(), Error> {
    let found = version(db)?;
    if found > SCHEMA {
        return Err(Error::NewerSchema { found, known: SCHEMA });
    }
    for step in STEPS.iter().filter(|step| step.to > found) {
        let txn = db.begin_write().map_err(Error::at("begin a migration"))?;
        (step.run)(&txn)?;
        {
            let mut table = txn.open_table(META).map_err(Error::at("migrate"))?;
            table.insert(meta::SCHEMA, step.to).map_err(Error::at("migrate"))?;
        }
        txn.commit().map_err(Error::at("commit a migration"))?;
        tracing::info!(from = found, to = step.to, "the store was migrated");
    }
    Ok(())
}
