//! References between objects, and the backups, snapshots and settings that this version does not have.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported("the model, which is being wired", &[(Get, "/references/{type}/{id}")]);
    t.unsupported(
        "backups, snapshots and export, which this version does not have",
        &[
            (Get, "/backup/status"),
            (Post, "/backup/export"),
            (Post, "/backup/export-encrypted"),
            (Post, "/backup/import"),
            (Post, "/backup/run"),
            (Put, "/backup/config"),
            (Get, "/snapshots"),
            (Post, "/rollback"),
            (Get, "/config/export"),
            (Post, "/config/export-encrypted"),
            (Post, "/config/import"),
        ],
    );
    t.unsupported(
        "settings at run time, which this version does not have (edit the configuration file and restart)",
        &[
            (Get, "/settings"),
            (Put, "/settings"),
            (Get, "/settings/{key}"),
            (Put, "/settings/{key}"),
            (Delete, "/settings/{key}"),
        ],
    );
}
