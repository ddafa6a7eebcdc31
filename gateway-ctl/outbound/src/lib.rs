//! HostEgress connections of the daemon, each by an egress: mark, proxy, names resolved by that egress, TLS, deadlines, limits.
//!
//! | purpose | what it uses |
//! |---|---|
//! | DNS upstreams, bootstrap look-ups, zone transfers | [`Egress`], [`Sockets`] |
//! | lists on the web, external DNS filter, backups to WebDAV and S3 | [`http`] |
//! | backups by SFTP | [`Dialer`], below russh |
//! | relay for proxies, proxy checks, bridges of tunnels | [`Egress`], [`Sockets`], [`socks5`] |
//! | names of tunnels, bridges, OpenVPN servers and proxies | [`Resolver`] |
//! | probes of tunnels | [`SocketBinding`] |
//!
//! Not here, because they open no connection by name: the UDP sockets of WireGuard in userspace, the processes of OpenVPN
//! (their server is resolved here), and connections to local sockets (management of OpenVPN, `gatewayd user`).

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
