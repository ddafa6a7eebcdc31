//! Tables of the file.
//!
//! Each kind has one table, named by its collection: ID to JSON with sealed secrets. `applied` holds the frozen
//! policies in the same form. Closed migrations use their own definitions instead of these.

use redb::TableDefinition;

/// Rows of one kind.
pub(super) type Rows<'a> = TableDefinition<'a, &'static [u8; 16], &'static [u8]>;

pub(super) const fn rows(collection: &str) -> Rows<'_> {
    TableDefinition::new(collection)
}

pub(super) const APPLIED: Rows<'static> = rows("applied");

/// Runtime settings: dotted key to the JSON of the value and its metadata.
pub(super) const SETTINGS: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("settings");

/// Entry number to the SHA-256 of the chain (32 bytes) and the JSON of the entry.
pub(super) const AUDIT: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("audit");

/// Numbers; see [`meta`].
pub(super) const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");

/// Texts; see [`meta`].
pub(super) const META_TEXT: TableDefinition<'static, &'static str, &'static str> =
    TableDefinition::new("meta_text");

/// Keys of the tables `meta` and `meta_text`.
pub(crate) mod meta {
    pub(crate) const SCHEMA: &str = "schema";
    pub(crate) const REVISION: &str = "revision";
    /// Revision of the last change to the runtime settings.
    pub(crate) const SETTINGS_REVISION: &str = "revision:settings";
    pub(crate) const APPLIED_REVISION: &str = "applied_revision";
    /// 1 while the free pages of the file contain data that must be erased.
    pub(crate) const REWRITE_DUE: &str = "rewrite_due";
    /// Text: RFC 3339.
    pub(crate) const APPLIED_AT: &str = "applied_at";
    /// Number of the last audit entry.
    pub(crate) const AUDIT_LAST: &str = "audit_last";
    /// Number of the first audit entry since the trail was wiped; 0 if it never was.
    pub(crate) const AUDIT_FIRST: &str = "audit_first";
    /// Text: hash of the entry before the first one; missing unless the trail was trimmed.
    pub(crate) const AUDIT_BASE: &str = "audit_base";
    /// Text: hash of the last audit entry.
    pub(crate) const AUDIT_HASH: &str = "audit_hash";

    /// Next counter slot of a collection.
    pub(crate) fn next_slot(collection: &str) -> String {
        format!("next_slot:{collection}")
    }

    /// Revision of the last change to a collection.
    pub(crate) fn collection_revision(collection: &str) -> String {
        format!("revision:{collection}")
    }
}
