//! Access classes of endpoints that differ from the defaults of their builders (all authenticated users may read,
//! operators may change). One list, for comparison with the role table of the interface specification.

use crate::authorization::Access;
use crate::table::Method::{self, Delete, Get, Post, Put};
use crate::table::Table;

const ASSIGNED: &[(Access, &[(Method, &str)])] = &[
    // Personal data of users. All users may list captures, but not read them.
    (
        Access::Private,
        &[
            (Get, "/dns/log"),
            (Get, "/dns/clients"),
            (Get, "/flows"),
            (Get, "/flows/top"),
            (Get, "/flows/stream"),
            (Get, "/flows/usage"),
            (Get, "/diagnostics/capture/{id}"),
            (Get, "/diagnostics/capture/{id}/stream"),
            (Get, "/diagnostics/capture/{id}/pcapng"),
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
    // Rollback and full backup. A snapshot contains the whole configuration.
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
    // Settings affect the listener, TLS and sign-in.
    (Access::Administer, &[(Put, "/settings"), (Put, "/settings/{key}"), (Delete, "/settings/{key}")]),
    // Other gateways, and the keys for joining them.
    (
        Access::Administer,
        &[
            (Post, "/nodes"),
            (Put, "/nodes/{id}"),
            (Delete, "/nodes/{id}"),
            (Post, "/nodes/exchange"),
            (Post, "/nodes/{id}/approve"),
            (Post, "/federation/rotate-key"),
            (Post, "/gateway-nodes"),
            (Put, "/gateway-nodes/{id}"),
            (Delete, "/gateway-nodes/{id}"),
            (Post, "/federation-roles"),
            (Put, "/federation-roles/{id}"),
            (Delete, "/federation-roles/{id}"),
            (Post, "/mesh/create-key"),
            (Post, "/mesh/register"),
            (Post, "/mesh/peers/{id}/routes"),
        ],
    ),
    // Secrets, actions that stop the service, and the destination of texts for the assistant.
    (
        Access::Administer,
        &[
            (Get, "/secrets"),
            (Post, "/secrets/set-passphrase"),
            (Post, "/secrets/clear-passphrase"),
            (Put, "/pq-crypto"),
            (Put, "/system/deadman"),
            (Post, "/system/wipe"),
            (Put, "/ai/config"),
        ],
    ),
];

/// Assigns the access classes. An entry of the list without an endpoint is an error of this file.
pub(super) fn assign(table: &mut Table) {
    for (access, rows) in ASSIGNED {
        for (method, path) in *rows {
            let found = table.assign(*method, path, *access);
            debug_assert!(found, "there is no row {} {path}", method.as_str());
        }
    }
}
