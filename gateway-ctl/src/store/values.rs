//! Values of the tables `meta` and `meta_text`.

use redb::ReadTransaction;

use super::error::Error;
use super::schema::{META, META_TEXT};

/// Reads a number of the table `meta`; 0 when it is missing.
pub(super) fn number(txn: &ReadTransaction, key: &str) -> Result<u64, Error> {
    let table = txn.open_table(META).map_err(Error::at("read"))?;
    Ok(table.get(key).map_err(Error::at("read"))?.map_or(0, |value| value.value()))
}

/// Reads a text of the table `meta_text`.
pub(super) fn text(txn: &ReadTransaction, key: &str) -> Result<Option<String>, Error> {
    let table = txn.open_table(META_TEXT).map_err(Error::at("read"))?;
    Ok(table.get(key).map_err(Error::at("read"))?.map(|value| value.value().to_owned()))
}
