//! Endpoints of the API, one file per section of the interface specification. Each file declares its endpoints and
//! contains their small handlers. The crates below contain the logic.

use crate::table::Table;

mod access_point;
mod ai;
mod alerts;
mod anomalies;
mod auth;
mod backup;
mod bluetooth;
mod bridges;
mod by_id;
mod captive;
mod captures;
mod devices;
mod dhcp;
mod diagnostics;
mod dns;
mod encrypted_storage;
mod export;
mod federation;
mod flows;
pub(crate) mod health;
mod hosts;
mod interfaces;
mod mesh;
pub(crate) mod metrics;
mod observed;
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
mod support_bundle;
mod test_definitions;
mod tunnels;
mod wan;

/// Returns the table of all endpoints.
pub fn table() -> Table {
    let mut table = Table::default();
    table.area("auth", auth::rows);
    table.area("health", health::rows);
    table.area("wan", wan::rows);
    table.area("dhcp", dhcp::rows);
    table.area("dhcp", interfaces::rows);
    table.area("dhcp", access_point::rows);
    table.area("devices", devices::rows);
    table.area("devices", hosts::rows);
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
    table.area("diagnostics", flows::rows);
    table.area("security", security::rows);
    table.area("bluetooth", bluetooth::rows);
    table.area("ai", ai::rows);
    table.area("service", service::rows);
    roles::assign(&mut table);
    table
}
