//! Schema 1: the first.
//!
//! BEFORE: an empty file.
//! AFTER: the tables `meta`, `meta_text`, `audit`, `applied` and one table each for `trust_classes`, `devices`,
//! `device_groups`, `tunnels`, `routing_policies`; all empty.

use redb::{TableDefinition, WriteTransaction};

use crate::store::error::Error;

type Rows = TableDefinition<'static, &'static [u8; 16], &'static [u8]>;

pub(super) fn run(txn: &WriteTransaction) -> Result<(), Error> {
    let create = || -> Result<(), redb::TableError> {
        txn.open_table(TableDefinition::<&str, u64>::new("meta"))?;
        txn.open_table(TableDefinition::<&str, &str>::new("meta_text"))?;
        txn.open_table(TableDefinition::<u64, &[u8]>::new("audit"))?;
        for name in ["applied", "trust_classes", "devices", "device_groups", "tunnels", "routing_policies"] {
            txn.open_table(Rows::new(name))?;
        }
        Ok(())
    };
    create().map_err(Error::at("create tables"))
}
