//! The command table against the endpoints of the API, the specification and the golden files.

use std::collections::BTreeSet;

use gateway_api::endpoints;
use gateway_api::table::Location;
use gateway_cli::commands::{Kind, Prints, table};
use serde_json::Value;

use crate::cli::cases::CASES;

/// Returns the path without the names of its placeholders, which may differ between API and client.
fn shape(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect::<Vec<_>>().join("/")
}

#[test]
fn every_command_calls_rows_that_exist() {
    let endpoints: BTreeSet<String> = endpoints::table()
        .endpoints()
        .iter()
        .filter(|endpoint| endpoint.location == Location::Api)
        .map(|endpoint| format!("{} {}", endpoint.method.as_str(), shape(endpoint.path)))
        .collect();
    for kind in table() {
        for command in &kind.commands {
            for call in &command.calls {
                let called = format!("{} {}", call.method.as_str(), shape(call.path));
                assert!(endpoints.contains(&called), "{} {} calls {called}", kind.name, command.verb);
            }
        }
    }
}

/// A column whose field no answer contains would always show `-`.
#[test]
fn every_column_shows_a_field_of_the_row() {
    let api = endpoints::table();
    let document = gateway_api::openapi::document(&api);
    let resolve = |schema: &Value| match schema["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).cloned().unwrap_or_default(),
        None => schema.clone(),
    };
    let mut looked_at = 0;
    for kind in table() {
        for command in &kind.commands {
            let (columns, field) = match command.prints {
                Prints::Table(columns) => (columns, None),
                Prints::TableOf(field, columns) => (columns, Some(field)),
                _ => continue,
            };
            let call = command.calls[0];
            let operation = &document["paths"][call.path][call.method.as_str().to_lowercase()];
            // Endpoints that are not implemented have no answer yet.
            if operation["x-not-supported"].is_string() {
                continue;
            }
            let data =
                &operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["data"];
            let list = match field {
                Some(field) => resolve(&resolve(data)["properties"][field]),
                None => resolve(data),
            };
            let item = resolve(&list["items"]);
            for column in columns {
                let field = column.field.split('.').next().unwrap_or_default();
                let has = |schema: &Value| schema["properties"].get(field).is_some();
                let parts = item["allOf"].as_array().into_iter().flatten();
                assert!(
                    has(&item) || parts.into_iter().any(|part| has(&resolve(part))),
                    "{} {}: {} is no field of {}",
                    kind.name,
                    command.verb,
                    column.field,
                    call.path
                );
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 60, "{looked_at}");
}

/// Command table of the specification: kinds, and their required verbs (empty: the kind alone).
const SPECIFIED: &[(&str, &[&str])] = &[
    ("status", &[""]),
    ("health", &[""]),
    ("observer", &[""]),
    ("drift", &[""]),
    ("platform", &[""]),
    ("version", &[""]),
    ("verify", &[""]),
    ("conflicts", &[""]),
    ("devices", &["list", "get", "create", "update", "delete"]),
    ("device-groups", &["list", "get", "create", "update", "delete"]),
    ("trust-classes", &["list", "get", "create", "update", "delete"]),
    ("tunnels", &["list", "up", "down"]),
    ("proxy", &["list", "create", "delete"]),
    ("dns", &["status", "block", "unblock"]),
    ("extfilter", &["status", "enable", "disable"]),
    ("captive", &[""]),
    ("profiles", &["list", "get", "create", "update", "delete"]),
    ("chains", &["list", "get", "create", "update", "delete"]),
    // The API has no PUT for exceptions.
    ("exceptions", &["list", "get", "create", "delete"]),
    ("privacy-classes", &["list", "get", "create", "update", "delete"]),
    ("evaluate", &[""]),
    ("apply", &[""]),
    ("validate", &[""]),
    ("render", &[""]),
    ("leak-matrix", &[""]),
    ("fail-matrix", &[""]),
    ("leak-check", &[""]),
    ("mesh", &[""]),
    ("nodes", &["list"]),
    ("gateway-nodes", &["list"]),
    ("federation", &["status", "peers", "sync"]),
    ("federation-roles", &["list", "get", "create", "update", "delete"]),
    ("audit", &["list"]),
    ("alerts", &["list"]),
    ("anomalies", &["list"]),
    ("presets", &["list"]),
    ("segments", &["list"]),
    ("vlan", &["list"]),
    ("dhcp", &[""]),
    ("backup", &["export", "import"]),
    ("snapshots", &["list"]),
    ("rollback", &[""]),
    ("secrets", &["list"]),
    ("ai", &["status", "query"]),
    ("capture", &["start", "list", "get", "stop"]),
    ("reconcile", &[""]),
    ("enforce", &["", "reconcile"]),
    ("test-definitions", &["list", "get", "create", "update", "delete"]),
];

#[test]
fn every_command_of_the_specification_is_there() {
    let table = table();
    for (name, verbs) in SPECIFIED {
        let kind = table.iter().find(|kind| kind.name == *name).unwrap_or_else(|| panic!("no {name}"));
        for verb in *verbs {
            assert!(kind.command(verb).is_some(), "{name} has no verb {verb:?}");
        }
    }
}

/// "No client command exists for: …"
#[test]
fn unspecified_commands_do_not_exist() {
    let table = table();
    let kinds: BTreeSet<&str> = table.iter().map(|kind| kind.name).collect();
    for name in ["bridges", "splitting", "policies", "routing", "settings"] {
        assert!(!kinds.contains(name), "{name}");
    }
    for (name, verbs) in [("tunnels", ["create", "update", "delete"]), ("dns", ["cache", "zones", "records"])]
    {
        let kind = table.iter().find(|kind| kind.name == name).expect("a kind");
        assert!(verbs.iter().all(|verb| kind.command(verb).is_none()), "{name}");
    }
}

#[test]
fn every_command_has_a_golden_file() {
    let table = table();
    let mut open: BTreeSet<(&str, &str)> =
        table.iter().flat_map(|kind| kind.commands.iter().map(|command| (kind.name, command.verb))).collect();
    for case in CASES {
        let Some(kind) = table.iter().find(|kind| kind.name == case.arguments[0]) else { continue };
        open.remove(&(kind.name, verb(kind, case.arguments)));
    }
    assert!(open.is_empty(), "no case runs {open:?}");
}

fn verb(kind: &Kind, arguments: &[&str]) -> &'static str {
    let named = arguments.get(1).and_then(|word| kind.command(word));
    named.or_else(|| kind.default_command()).map_or("", |command| command.verb)
}
