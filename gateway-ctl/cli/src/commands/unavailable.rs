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
    (&["splitting"], "Configure traffic splitting at /api/v1/splitting."),
    (
        &["settings", "config"],
        "Settings are edited at /api/v1/settings; the file of the daemon is gateway.yaml(5).",
    ),
    (&["users", "user"], "Manage accounts with gatewayd user add|list|del."),
    (&["keys", "login", "auth", "tokens"], "This client carries no credential; use /api/v1/auth with curl."),
    (
        &["filter-rules", "zones", "records", "forwarders", "rewrites"],
        "Names are edited as a plan (gateway-ctl apply plan.json) or at /api/v1/dns.",
    ),
    (&["wan", "uplinks"], "Configure uplinks at /api/v1/system/wan-uplinks."),
    (&["interfaces"], "Configure interfaces at /api/v1/interfaces."),
    (
        &["privacy"],
        "Show privacy with gateway-ctl leak-matrix, fail-matrix and leak-check; configure it at /api/v1/privacy.",
    ),
    (&["wipe", "deadman"], "Configure the dead-man switch and wipe at /api/v1/system."),
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
    ("exceptions", &["update"], "Exceptions cannot be changed; delete the exception and create another."),
    (
        "dns",
        &["cache", "filter-rules", "zones", "records", "flush"],
        "Configure the resolver at /api/v1/dns.",
    ),
    ("profiles", &["apply"], "Apply stored policies with POST /api/v1/routing/policies/apply."),
];

pub(crate) fn kind(word: &str) -> Option<&'static str> {
    POINTERS.iter().find(|(words, _)| words.contains(&word)).map(|(_, text)| *text)
}

pub(crate) fn verb(kind: &str, word: &str) -> Option<&'static str> {
    VERBS.iter().find(|(of, words, _)| *of == kind && words.contains(&word)).map(|(.., text)| *text)
}

/// Returns all words with an alternative.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    POINTERS.iter().flat_map(|(words, _)| words.iter().copied())
}
