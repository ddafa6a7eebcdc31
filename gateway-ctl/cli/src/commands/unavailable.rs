//! Words that look like kinds but deliberately have no command, with their alternatives.

/// Entries: the words, and the alternative.
const POINTERS: &[(&[&str], &str)] = &[
    (
        &["policies", "policy", "routing", "routing-policies", "routing-policy"],
        "Policies are edited as a plan (gateway-ctl apply plan.json) or at /api/v1/routing/policies.",
    ),
    (
        &["bridges", "bridge"],
        "Bridges are edited as a plan (gateway-ctl apply plan.json) or at /api/v1/bridges.",
    ),
    (&["splitting"], "Traffic splitting is set at /api/v1/splitting."),
    (
        &["settings", "config"],
        "Settings are edited at /api/v1/settings; the file of the daemon is gateway.yaml(5).",
    ),
    (&["users", "user"], "Accounts are managed by the daemon's own program: gatewayd user add|list|del."),
    (&["keys", "login", "auth", "tokens"], "This client carries no credential; use /api/v1/auth with curl."),
    (
        &["filter-rules", "zones", "records", "forwarders", "rewrites"],
        "Names are edited as a plan (gateway-ctl apply plan.json) or at /api/v1/dns.",
    ),
    (&["wan", "uplinks"], "Uplinks are set at /api/v1/system/wan-uplinks."),
    (&["interfaces"], "Interfaces are set at /api/v1/interfaces."),
    (
        &["privacy"],
        "Privacy is shown by gateway-ctl leak-matrix, fail-matrix and leak-check, and set at /api/v1/privacy.",
    ),
    (&["bluetooth"], "Bluetooth is set at /api/v1/bluetooth."),
    (&["wipe", "deadman"], "The dead-man switch and wiping are at /api/v1/system."),
];

/// Verbs without a command, by kind, with their alternative.
const VERBS: &[(&str, &[&str], &str)] = &[
    (
        "tunnels",
        &["create", "update", "delete"],
        "Tunnels are edited as a plan (gateway-ctl apply plan.json) or at /api/v1/tunnels.",
    ),
    (
        "proxy",
        &["update"],
        "Delete the proxy and create another, or use a plan (gateway-ctl apply plan.json).",
    ),
    ("exceptions", &["update"], "An exception is not changed: delete it and create another."),
    (
        "dns",
        &["cache", "filter-rules", "zones", "records", "flush"],
        "The rest of the resolver is at /api/v1/dns.",
    ),
    ("profiles", &["apply"], "Stored policies are applied by POST /api/v1/routing/policies/apply."),
];

pub fn kind(word: &str) -> Option<&'static str> {
    POINTERS.iter().find(|(words, _)| words.contains(&word)).map(|(_, text)| *text)
}

pub fn verb(kind: &str, word: &str) -> Option<&'static str> {
    VERBS.iter().find(|(of, words, _)| *of == kind && words.contains(&word)).map(|(.., text)| *text)
}

/// Returns all words with an alternative.
pub fn words() -> impl Iterator<Item = &'static str> {
    POINTERS.iter().flat_map(|(words, _)| words.iter().copied())
}
