//! Schema 2: runtime settings, sessions, snapshots, and tables for the kinds that came with them.
//!
//! BEFORE: schema 1.
//! AFTER: the tables `settings`, `sessions`, `sign_ins`, `snapshots` and `snapshot_contents`, and one table for each
//! name of [`COLLECTIONS`]; all empty. Nothing else changes.

use redb::{TableDefinition, WriteTransaction};

use crate::store::error::Error;

type Rows = TableDefinition<'static, &'static [u8; 16], &'static [u8]>;

const COLLECTIONS: &[&str] = &[
    "users",
    "api_keys",
    "dns_filter_rules",
    "dns_zones",
    "dns_records",
    "dns_forwarders",
    "dns_rewrites",
    "dns_allowlist",
    "dns_blocklist",
    "dns_presets",
    "threat_feeds",
    "dhcp_reservations",
    "federation_roles",
    "nodes",
    "alert_rules",
    "privacy_classes",
    "proxies",
    "chains",
    "profiles",
    "exceptions",
    "bridges",
    "segments",
    "presets",
    "splitting_endpoints",
    "test_definitions",
];

pub(super) fn run(txn: &WriteTransaction) -> Result<(), Error> {
    let create = || -> Result<(), redb::TableError> {
        txn.open_table(TableDefinition::<&str, &[u8]>::new("settings"))?;
        txn.open_table(Rows::new("sessions"))?;
        txn.open_table(TableDefinition::<&[u8; 16], i64>::new("sign_ins"))?;
        txn.open_table(TableDefinition::<&str, &[u8]>::new("snapshots"))?;
        txn.open_table(TableDefinition::<&str, &[u8]>::new("snapshot_contents"))?;
        for name in COLLECTIONS {
            txn.open_table(Rows::new(name))?;
        }
        Ok(())
    };
    create().map_err(Error::at("create tables"))
}
