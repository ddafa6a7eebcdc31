//! The pure core: from state and facts to a plan, and every view of it.
//!
//! Time, randomness and observations are arguments. Nothing here fails, waits or does I/O: faults of the input are
//! returned as findings.
#![forbid(unsafe_code)]

pub mod access_point;
pub mod alerts;
pub mod announcements;
pub mod anomalies;
pub mod assistant;
pub mod bluetooth;
pub mod captive;
pub mod chain_status;
pub mod compile;
pub mod conflicts;
pub mod countries;
pub mod dhcp6;
pub mod dhcp_report;
pub mod dns;
pub mod dns_probe;
pub mod doh_servers;
pub(crate) mod domain_search;
pub mod evaluate;
pub mod facts;
pub mod fair_share;
pub mod federation;
pub mod flow_export;
pub mod flow_log;
pub mod fqdn_cache;
pub mod fqdn_match;
pub mod gateway_verdict;
pub mod health;
pub mod hexadecimal;
pub mod history;
pub mod host_egress;
pub mod host_paths;
pub mod indexes;
pub mod interfaces;
pub mod leak_check;
pub mod live_tests;
pub mod matrix;
pub mod network;
pub mod network_tests;
pub mod notifications;
pub mod ntp;
pub mod paths;
pub mod phrase;
pub mod plan;
pub mod plan_check;
pub mod plan_diff;
pub mod plan_history;
pub mod plan_maps;
pub mod prefix_filter;
pub mod profile_dns;
pub mod pseudonyms;
pub mod quic_initial;
pub mod render;
pub mod router_advertisement;
pub mod segment_links;
pub mod shared;
pub mod state_machines;
pub mod stun;
pub mod wan_access;
pub mod xdp;

pub use compile::{Compiled, Finding, Input, compile};
