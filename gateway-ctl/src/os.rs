//! The only code that accesses the kernel or other processes.
//!
//! Each kernel interface is a `Backend`: a map that supports reading, putting and removing entries. One generic
//! `step` compares it with the plan. This module makes no policy decisions.
#![allow(clippy::disallowed_methods, reason = "the one module for sockets and processes")]

pub mod address;
pub(crate) mod address_probe;
pub(crate) mod answer_tap;
pub(crate) mod backend;
pub mod bluez;
pub mod bpf;
pub(crate) mod bridge_ports;
pub mod capture;
pub(crate) mod child_process;
pub(crate) mod conntrack;
pub(crate) mod dhcp6_socket;
pub mod dhcp_client;
pub mod dhcp_socket;
pub mod driver_state;
pub mod egress_tap;
pub mod encrypted_volume;
#[cfg(test)]
pub(crate) mod fake_backend;
pub(crate) mod host_name;
pub mod hostapd;
pub(crate) mod interface_name;
pub(crate) mod json_file;
pub(crate) mod length_limits;
pub mod link;
pub mod link_counters;
pub(crate) mod mesh_sockets;
pub(crate) mod multicast_groups;
pub mod nameless_file;
pub(crate) mod neighbour;
pub(crate) mod neighbour_limits;
pub mod netlink;
pub mod nft;
pub(crate) mod ntp_socket;
pub mod observe;
pub mod openvpn;
pub(crate) mod orphans;
pub(crate) mod path_changes;
pub mod port_use;
pub mod proxy;
pub(crate) mod rcu;
pub(crate) mod readable;
pub mod required_programs;
pub mod rlimit;
pub mod route;
pub(crate) mod router_socket;
pub mod rule;
pub(crate) mod send_queue;
pub(crate) mod sync;
pub mod sysctl;
pub mod systemd_unit;
pub(crate) mod tcp_probe;
pub mod time_sync;
pub(crate) mod transport;
pub(crate) mod virtual_link;
pub mod wireguard;

pub use backend::{Backend, DriftEntry, Failure, Outcome};
pub use netlink::Netlink;
pub use sync::{LastApplied, SyncPass, sync};
