//! Authorization rules of the contract, written a second time: from its table of roles, not from the classes of the
//! endpoints.

/// A line of the table of roles: admin, operator, viewer, diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// No credential needed.
    Open,
    /// Any authenticated caller.
    All,
    /// All roles except viewer.
    NotViewer,
    /// Admin and operator.
    AdminAndOperator,
    AdminOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Admin,
    Operator,
    Viewer,
    Diagnostics,
    Anonymous,
    /// Local network bypass: what a viewer may read.
    Localnet,
}

const OPEN: &[&str] = &[
    "GET /health",
    "GET /auth/status",
    "POST /auth/setup",
    "POST /auth/login",
    "GET /openapi.json",
    // Other gateways sign these with the keys that administrators have approved.
    "POST /federation/exchange",
    "POST /federation/pull",
    "POST /federation/notice",
];

/// "DNS query log, captures content, per-client history", and the plaintext export.
const NOT_VIEWER: &[&str] = &[
    "GET /dns/log",
    "GET /dns/clients",
    "GET /flows",
    "GET /flows/top",
    "GET /flows/stream",
    "GET /flows/usage",
    "GET /diagnostics/capture/{id}",
    "GET /diagnostics/capture/{id}/stream",
    "GET /diagnostics/capture/{id}/pcapng",
    "GET /config/export",
    // "captures start/stop, leak-check, captive check, bridge/tunnel test, cache flush, test-definitions run"
    "POST /diagnostics/capture",
    "DELETE /diagnostics/capture/{id}",
    "POST /privacy/leak-check",
    "POST /captive/check",
    "POST /bridges/{id}/test",
    "POST /dns/cache/flush",
    "POST /test-definitions/run",
];

/// Endpoints that the local network's read access excludes.
const CREDENTIAL: &[&str] = &[
    "GET /dns/log",
    "GET /dns/clients",
    "GET /flows",
    "GET /flows/top",
    "GET /flows/stream",
    "GET /flows/usage",
    "GET /diagnostics/capture/{id}",
    "GET /diagnostics/capture/{id}/stream",
    "GET /diagnostics/capture/{id}/pcapng",
    "GET /audit",
];

/// Queries that viewers may send, and endpoints for the caller's own objects.
const ALL: &[&str] = &[
    "POST /policy/evaluate",
    "POST /policy/conflicts",
    "POST /validate",
    "POST /auth/change-password",
    "GET /auth/tokens",
    "DELETE /auth/tokens/{id}",
];

const ADMIN_ONLY: &[&str] = &[
    "PUT /dns/extfilter/config",
    // "rollback, snapshots, config/import, backup import/config"
    "POST /rollback",
    "GET /snapshots",
    "POST /snapshots",
    "POST /config/import",
    "POST /backup/import",
    "PUT /backup/config",
    // "export-encrypted", which is what /backup/export is too
    "POST /config/export-encrypted",
    "POST /backup/export",
    "POST /backup/export-encrypted",
    // "users, keys, auth settings"
    "GET /auth/users",
    "POST /auth/users",
    "GET /auth/users/{id}",
    "PUT /auth/users/{id}",
    "DELETE /auth/users/{id}",
    "GET /auth/keys",
    "POST /auth/keys",
    "GET /auth/keys/{id}",
    "DELETE /auth/keys/{id}",
    // "settings of listener/TLS": one endpoint for all settings
    "PUT /settings",
    "PUT /settings/{key}",
    "DELETE /settings/{key}",
    // "federation nodes/roles"
    "POST /nodes",
    "PUT /nodes/{id}",
    "DELETE /nodes/{id}",
    "POST /nodes/exchange",
    "POST /nodes/{id}/approve",
    "POST /federation/rotate-key",
    "POST /gateway-nodes",
    "PUT /gateway-nodes/{id}",
    "DELETE /gateway-nodes/{id}",
    "POST /federation-roles",
    "PUT /federation-roles/{id}",
    "DELETE /federation-roles/{id}",
    "PUT /federation/bus",
    // "mesh create-key"; registration returns a key of the same kind
    "POST /mesh/create-key",
    "POST /mesh/register",
    // it leads traffic of others to a peer
    "POST /mesh/peers/{id}/routes",
    // "secrets, storage, pq-crypto PUT, deadman, wipe, AI config"
    "GET /secrets",
    "POST /secrets/set-passphrase",
    "POST /secrets/clear-passphrase",
    "POST /storage/encrypted/setup",
    "POST /storage/encrypted/teardown",
    "POST /storage/encrypted/unlock",
    "POST /storage/encrypted/lock",
    "PUT /storage/encrypted/passphrase",
    "PUT /storage/encrypted/stored-key",
    "DELETE /storage/encrypted/stored-key",
    "PUT /storage/encrypted/tpm2-key",
    "DELETE /storage/encrypted/tpm2-key",
    "PUT /pq-crypto",
    "PUT /system/deadman",
    "POST /system/wipe",
    "PUT /ai/config",
    // like an export with secrets: it has everything, with pseudonyms
    "POST /diagnostics/bundle",
    "GET /diagnostics/bundle/{id}",
    "GET /diagnostics/bundle/{id}/archive",
];

/// Returns all names of the lists, to find names without an endpoint.
pub(super) fn named() -> impl Iterator<Item = &'static str> {
    [OPEN, NOT_VIEWER, CREDENTIAL, ALL, ADMIN_ONLY].into_iter().flatten().copied()
}

/// Returns the line of an endpoint such as `GET /devices`. `page`: not below the API root.
pub(super) fn line(name: &str, page: bool) -> Line {
    let reads = name.starts_with("GET ");
    match name {
        _ if OPEN.contains(&name) => Line::Open,
        _ if page && name != "GET /metrics" => Line::Open,
        _ if NOT_VIEWER.contains(&name) => Line::NotViewer,
        _ if ALL.contains(&name) => Line::All,
        _ if ADMIN_ONLY.contains(&name) => Line::AdminOnly,
        _ if reads => Line::All,
        _ => Line::AdminAndOperator,
    }
}

/// Returns status and code of the error that the caller gets, if any.
pub(super) fn refusal(who: Who, line: Line, name: &str, foreign: bool) -> Option<(u16, &'static str)> {
    let reads = name.starts_with("GET ");
    if foreign && !reads {
        return Some((403, "origin_not_allowed"));
    }
    let allowed = match (line, who) {
        (Line::Open, _) => true,
        (_, Who::Anonymous) => return Some((401, "unauthenticated")),
        (_, Who::Localnet) if !reads || CREDENTIAL.contains(&name) => return Some((401, "unauthenticated")),
        (Line::NotViewer | Line::AdminAndOperator | Line::AdminOnly, Who::Localnet) => {
            return Some((401, "unauthenticated"));
        }
        (_, Who::Localnet | Who::Admin) => true,
        (Line::All, _) => true,
        (Line::NotViewer, who) => who != Who::Viewer,
        (Line::AdminAndOperator, who) => who == Who::Operator,
        (Line::AdminOnly, _) => false,
    };
    if allowed { None } else { Some((403, "forbidden")) }
}
