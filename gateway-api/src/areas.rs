//! The rows of the API, one file per area of the contract. Each file declares its rows and holds the small functions
//! behind them; what a row means is decided in the crates below.

use gateway_model::{EditError, Kind, Resource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Cx;
use crate::error::ApiError;
use crate::table::Table;

mod ai;
mod alerts;
mod auth;
mod backup;
mod bluetooth;
mod bridges;
mod devices;
mod dhcp;
mod diagnostics;
mod dns;
mod export;
mod federation;
mod health;
mod mesh;
mod metrics;
mod plan;
mod pq_crypto;
mod privacy;
mod proxies;
mod roles;
mod routing;
mod security;
mod service;
mod services;
mod settings;
mod snapshots;
mod splitting;
mod test_definitions;
mod tunnels;
mod wan;

/// The whole API.
pub fn table() -> Table {
    let mut table = Table::default();
    table.area("auth", auth::rows);
    table.area("health", health::rows);
    table.area("wan", wan::rows);
    table.area("dhcp", dhcp::rows);
    table.area("devices", devices::rows);
    table.area("tunnels", tunnels::rows);
    table.area("dns", dns::rows);
    table.area("routing", routing::rows);
    table.area("routing", plan::rows);
    table.area("privacy", privacy::rows);
    table.area("splitting", splitting::rows);
    table.area("mesh", mesh::rows);
    table.area("federation", federation::rows);
    table.area("alerts", alerts::rows);
    table.area("backup", backup::rows);
    table.area("backup", settings::rows);
    table.area("backup", snapshots::rows);
    table.area("backup", export::rows);
    table.area("diagnostics", diagnostics::rows);
    table.area("security", security::rows);
    table.area("bluetooth", bluetooth::rows);
    table.area("ai", ai::rows);
    table.area("service", service::rows);
    roles::assign(&mut table);
    table
}

/// Adds what `observe` knows to the shown form of each object.
fn add_observed<R: Resource, L: Serialize>(
    shown: &mut [Value],
    table: &gateway_model::Table<R>,
    observe: impl Fn(&R) -> L,
) {
    for value in shown {
        let id = value["id"].as_str().and_then(|id| id.parse().ok());
        if let Some(row) = id.and_then(|id| table.get(id)) {
            merge(value, json!(observe(row)));
        }
    }
}

/// Puts the fields of one object into another.
fn merge(into: &mut Value, fields: Value) {
    if let (Value::Object(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
}

/// The id of the object that a path names by its id or its unique name. What names nothing stays as it is.
fn id_of(kind: &Kind, cx: &Cx, name: &str) -> Result<String, ApiError> {
    let found = kind.find(&cx.open()?.store.current(), name);
    Ok(found.map_or_else(|| name.to_owned(), |id| id.to_string()))
}

/// There is no such object.
fn not_found<R: Resource>(id: &str) -> EditError {
    EditError::NotFound { resource_type: R::NOUN, id: id.to_owned() }
}
