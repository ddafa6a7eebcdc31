//! Rewrite of the whole file, so that no removed data stays in its bytes.
//!
//! The database copies pages on write and leaves the old ones unchanged. After a sealing of secrets, a
//! change of the passphrase or a wipe, a new file with copies of the tables therefore replaces the old one. To overwrite
//! free pages would need knowledge of their allocation. The copy needs free space.

use std::path::Path;

use redb::{
    Database, Key, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError,
    TableHandle, Value, WriteTransaction,
};

use super::error::Error;
use super::open_file::OpenFile;
use super::paths::{draft_path, open_file, sync_folder};

/// Copies all tables into a new file, which replaces the one at the path.
pub(super) fn copy(from: &Database, path: &Path) -> Result<OpenFile, Error> {
    let draft = draft_path(path);
    let fresh = OpenFile::open(open_file(&draft, true)?, &draft)?;
    let source = from.begin_read().map_err(Error::at("begin to read"))?;
    let target = fresh.begin_write().map_err(Error::at("begin to write"))?;
    if source.list_multimap_tables().map_err(Error::at("list the tables"))?.next().is_some() {
        return Err(Error::Damaged { what: "it has a table of an unknown form".into() });
    }
    for table in source.list_tables().map_err(Error::at("list the tables"))? {
        copy_table(&source, &target, table.name())?;
    }
    target.commit().map_err(Error::at("commit"))?;
    drop(source);
    std::fs::rename(&draft, path).map_err(|source| Error::Open { path: draft.clone(), source })?;
    sync_folder(path)?;
    Ok(fresh)
}

/// Function that copies a table of certain types; returns `false` if the table has other types.
type Form = fn(&ReadTransaction, &WriteTransaction, &str) -> Result<bool, Error>;

/// Copy functions for the types of this store's tables.
const FORMS: &[Form] = &[
    copy_as::<&'static [u8; 16], &'static [u8]>,
    copy_as::<&'static str, &'static [u8]>,
    copy_as::<u64, &'static [u8]>,
    copy_as::<&'static str, u64>,
    copy_as::<&'static str, &'static str>,
    copy_as::<&'static [u8; 16], i64>,
];

fn copy_table(source: &ReadTransaction, target: &WriteTransaction, name: &str) -> Result<(), Error> {
    for copy in FORMS {
        if copy(source, target, name)? {
            return Ok(());
        }
    }
    Err(Error::Damaged { what: format!("the table {name} has an unknown form") })
}

/// Copies a table. Returns `false` if the table has other types.
fn copy_as<K: Key + 'static, V: Value + 'static>(
    source: &ReadTransaction,
    target: &WriteTransaction,
    name: &str,
) -> Result<bool, Error> {
    let definition = TableDefinition::<K, V>::new(name);
    let from = match source.open_table(definition) {
        Ok(table) => table,
        Err(TableError::TableTypeMismatch { .. } | TableError::TypeDefinitionChanged { .. }) => {
            return Ok(false);
        }
        Err(error) => return Err(Error::at("copy a table")(error)),
    };
    let mut to = target.open_table(definition).map_err(Error::at("copy a table"))?;
    for row in from.iter().map_err(Error::at("copy a table"))? {
        let (key, value) = row.map_err(Error::at("copy a table"))?;
        to.insert(key.value(), value.value()).map_err(Error::at("copy a table"))?;
    }
    Ok(true)
}
