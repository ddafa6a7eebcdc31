//! Services that run beside the reconcile loop and watch or serve something.

pub mod active_alerts;
pub mod auto_rollback;
pub mod backup;
pub mod bridges;
pub mod captive;
pub mod deadman;
pub mod dhcp;
pub mod dhcp_clients;
pub mod dns;
pub mod endings;
pub mod events;
pub mod extfilter;
pub mod failover_reset;
pub mod flow_rate;
pub mod foreign_routers;
pub mod gateway_verdict;
pub mod guard_tap;
pub mod ipv6_withdrawal;
pub mod moved_flows;
pub mod open_files;
mod probe;
pub mod proxies;
pub mod quic_names;
pub mod storage;
pub mod time_server;
pub mod tunnels;
pub mod uplinks;
