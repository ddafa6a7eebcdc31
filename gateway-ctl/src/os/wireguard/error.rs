//! Failures of WireGuard devices.

use std::io;

/// Reason why a device cannot be created, changed, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} cannot be the name of an interface")]
    Name(String),
    #[error("{0} exists already and is not one of our WireGuard devices")]
    NameTaken(String),
    #[error("two peers of {0} have the same public key")]
    DuplicatePeer(String),
    #[error("a peer of {0} has the device's own public key")]
    PeerIsSelf(String),
    #[error("this kernel has no WireGuard")]
    NoKernelWireGuard,
    #[error("cannot make the device {name}")]
    Create { name: String, source: io::Error },
    #[error("cannot open UDP port {port} for {name}")]
    Socket { name: String, port: u16, source: io::Error },
    #[error("cannot {action} {name}")]
    Link { action: &'static str, name: String, source: io::Error },
    #[error("cannot open a netlink socket")]
    Netlink { source: io::Error },
    #[error("link {0} was not removed")]
    StillThere(String),
}
