//! Who may use which row, where that differs from the usual of its builder: reading for everybody who is somebody,
//! changes for operators. One list, so that the table of roles of the contract can be laid beside it.

use crate::authorization::Access;
use crate::table::Method::{self, Delete, Get, Post, Put};
use crate::table::Table;

const ASSIGNED: &[(Access, &[(Method, &str)])] = &[
    // Personal data of users. Everyone may list captures, but not read them.
    (
        Access::Private,
        &[
            (Get, "/dns/log"),
            (Get, "/dns/clients"),
            (Get, "/diagnostics/capture/{id}"),
            (Get, "/diagnostics/capture/{id}/stream"),
        ],
    ),
    (Access::Trail, &[(Get, "/audit")]),
    (Access::Check, &[(Post, "/policy/evaluate"), (Post, "/policy/conflicts"), (Post, "/validate")]),
    (
        Access::Diagnose,
        &[
            (Post, "/diagnostics/capture"),
            (Delete, "/diagnostics/capture/{id}"),
            (Post, "/privacy/leak-check"),
            (Post, "/captive/check"),
            (Post, "/bridges/{id}/test"),
            (Post, "/dns/cache/flush"),
            (Post, "/test-definitions/run"),
        ],
    ),
    (Access::Export, &[(Get, "/config/export")]),
    // Going back in time and taking everything along. Snapshots hold the configuration as a whole.
    (
        Access::Administer,
        &[
            (Post, "/rollback"),
            (Get, "/snapshots"),
            (Post, "/snapshots"),
            (Post, "/config/import"),
            (Post, "/config/export-encrypted"),
            (Post, "/backup/import"),
            (Post, "/backup/export"),
            (Post, "/backup/export-encrypted"),
            (Put, "/backup/config"),
        ],
    ),
    // Settings reach the listener, TLS and sign-in.
    (Access::Administer, &[(Put, "/settings"), (Put, "/settings/{key}"), (Delete, "/settings/{key}")]),
    // Other gateways, and the keys that make one.
    (
        Access::Administer,
        &[
            (Post, "/nodes"),
            (Put, "/nodes/{id}"),
            (Delete, "/nodes/{id}"),
            (Post, "/nodes/exchange"),
            (Post, "/nodes/{id}/approve"),
            (Post, "/gateway-nodes"),
            (Put, "/gateway-nodes/{id}"),
            (Delete, "/gateway-nodes/{id}"),
            (Post, "/federation-roles"),
            (Put, "/federation-roles/{id}"),
            (Delete, "/federation-roles/{id}"),
            (Post, "/mesh/create-key"),
            (Post, "/mesh/register"),
        ],
    ),
    // Secrets, the vault, what ends the service, and where texts of the assistant go.
    (
        Access::Administer,
        &[
            (Get, "/secrets"),
            (Post, "/secrets/set-passphrase"),
            (Post, "/secrets/clear-passphrase"),
            (Post, "/storage/encrypted/setup"),
            (Post, "/storage/encrypted/teardown"),
            (Put, "/pq-crypto"),
            (Put, "/system/deadman"),
            (Post, "/system/wipe"),
            (Put, "/ai/config"),
        ],
    ),
];

/// Gives the rows their classes. A row that the list names and the table does not have is a mistake of this file.
pub fn assign(table: &mut Table) {
    for (access, rows) in ASSIGNED {
        for (method, path) in *rows {
            let found = table.assign(*method, path, *access);
            debug_assert!(found, "there is no row {} {path}", method.as_str());
        }
    }
}
