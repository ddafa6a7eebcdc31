//! The contract of the REST API, checked in process: the set of endpoints, the form of every response, and the audit
//! entry of every change. Needs neither root nor network.

mod alert_causes;
mod apply;
mod assistant;
mod assistant_query;
mod audit;
mod backup;
pub(crate) mod client;
mod collections_dns;
mod collections_routing;
mod countries;
mod discard;
mod envelope;
mod export;
mod extfilter;
mod interfaces;
mod mesh;
mod mesh_member;
mod monitoring;
mod objects;
mod pages;
mod privacy;
mod promises;
mod restore;
mod security;
mod settings;
mod snapshots;
mod splitting;
mod support_bundle;
mod table;
mod units;
mod views;

use gateway_tests::examples;
