//! Schema versions of the file, and the migrations between them.
//!
//! A released migration is closed: it works on raw tables and its own types, never on those of the model, and is
//! never edited. A file with a newer schema than [`SCHEMA`] is refused.

mod v1;
mod v2;

use redb::{ReadableDatabase, TableError, WriteTransaction};

use super::error::Error;
use super::schema::{META, meta};

/// Schema that this version writes.
pub const SCHEMA: u64 = 2;

struct Step {
    to: u64,
    run: fn(&WriteTransaction) -> Result<(), Error>,
}

const STEPS: &[Step] = &[Step { to: 1, run: v1::run }, Step { to: 2, run: v2::run }];

/// Returns the schema of the file; 0 for an empty one.
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

/// Migrates the file to [`SCHEMA`], with one transaction for each step.
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
        tracing::info!(from = found, to = step.to, "migrated the store");
    }
    Ok(())
}
