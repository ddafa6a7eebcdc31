//! The only code that accesses the kernel or other processes.
//!
//! Each kernel interface is a `Backend`: a map that supports reading, putting and removing entries. One generic
//! `step` compares it with the plan. This module makes no policy decisions.
#![allow(clippy::disallowed_methods, reason = "the one module for sockets and processes")]

pub mod address;
pub mod address_probe;
pub mod answer_tap;
pub mod backend;
pub mod bpf;
pub mod bridge_ports;
pub mod capture;
pub mod child_process;
pub mod conntrack;
pub mod dhcp6_socket;
pub mod dhcp_client;
pub mod dhcp_socket;
pub mod driver_state;
pub mod egress_tap;
pub mod fake_backend;
pub mod host_name;
pub mod json_file;
pub mod length_limits;
pub mod link;
pub mod link_counters;
pub mod multicast_groups;
pub mod nameless_file;
pub mod neighbour;
pub mod neighbour_limits;
pub mod netlink;
pub mod nft;
pub mod ntp_socket;
pub mod observe;
pub mod openvpn;
pub mod path_changes;
pub mod port_use;
pub mod proxy;
pub mod rcu;
pub mod readable;
pub mod required_programs;
pub mod rlimit;
pub mod route;
pub mod router_socket;
pub mod rule;
pub mod sync;
pub mod sysctl;
pub mod tcp_probe;
pub mod time_sync;
pub mod transport;
pub mod virtual_link;
pub mod wireguard;

pub use backend::{Backend, DriftEntry, Failure, Outcome};
pub use netlink::Netlink;
pub use sync::{LastApplied, SyncPass, sync};
