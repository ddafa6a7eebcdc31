//! The harness of the tests that need root: networks of namespaces, the daemon in one of them, traffic through it, and
//! a tap that counts leaked packets.
//!
//! It uses the daemon only through the interfaces of its users: configuration file, REST API, process and packets. Only
//! `bpf_run` links against the daemon's code: it runs the kernel programs without a daemon.

pub mod alerts;
pub mod bluez_mock;
pub mod bpf_run;
pub mod browser;
pub mod capture;
pub mod certificate;
pub mod connection_flood;
pub mod cores;
pub mod daemon;
pub mod delegating_router;
pub mod dhcp;
pub mod dhcp_server;
pub mod dns;
pub mod examples;
pub mod frames;
pub mod fuzz;
pub mod http;
pub mod language_model;
pub mod mail_server;
pub mod mesh;
pub mod mmdb;
pub mod model_server;
pub mod name_server;
pub mod netns;
mod network_permit;
pub mod openapi_check;
pub mod openvpn;
pub mod packet_socket;
pub mod packets;
pub mod pihole;
pub mod probe_server;
pub mod process;
pub mod processor_load;
pub mod relay;
pub mod services;
pub mod skipped;
pub mod socks;
pub mod tap;
pub mod temperature_sensor;
pub mod testbed;
pub mod topology;
pub mod traffic;
pub mod two_uplinks;
pub mod udp_over_tcp;
pub mod vm;
pub mod wait;
pub mod wall_clock;
pub mod web_server;
pub mod webhook_receiver;
pub mod wireguard;
pub mod xdp_peer;
