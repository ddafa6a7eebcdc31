//! Outgoing connections of the daemon, each through an egress.
//!
//! An egress consists of an fwmark and an optional proxy. Host names are resolved through the same egress. This crate
//! also covers TLS, deadlines and limits.
//!
//! | purpose | modules and types |
//! |---|---|
//! | DNS upstreams, bootstrap look-ups, zone transfers | [`Egress`], [`Sockets`] |
//! | lists on the web, external DNS filter, backups to WebDAV and S3 | [`http`] |
//! | backups by SFTP | [`Dialer`], below russh |
//! | relay for proxies, proxy checks, bridges of tunnels | [`Egress`], [`Sockets`], [`socks5`] |
//! | names of tunnels, bridges, OpenVPN servers and proxies | [`Resolver`] |
//! | probes of tunnels, STUN servers of leak checks | [`SocketBinding`] |
//!
//! This crate does not cover the UDP sockets of WireGuard in userspace, the processes of OpenVPN (it resolves their
//! server), and connections to local sockets (management of OpenVPN, `gatewayd user`). They open no connection by name.
//!
//! It replaces two SOCKS5 clients, three HTTP clients and five host look-ups with different limits. Two rules of `cargo
//! xtask tidy` refuse other clients in the dependency tree and other look-ups in sources. Private targets are refused
//! unless allowed. DoH, DoT and DoQ keep their protocols over these connections.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use clocks and sockets of their own"))]

pub mod backoff;
mod binding;
pub mod causes;
mod dial;
pub mod dns_query;
mod egress;
pub mod http;
mod names;
pub mod reserved;
mod sockets;
pub mod socks5;
mod tls;

pub use binding::SocketBinding;
pub use dial::{DialError, Dialer, Targets};
pub use egress::{Egress, EgressError, Login, Proxy, UdpPath, UdpWrapper, associate, open};
pub use names::Resolver;
pub use sockets::{Keepalive, KernelSockets, Sockets, any_address};
pub use tls::Tls;
