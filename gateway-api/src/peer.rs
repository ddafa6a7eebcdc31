//! The other end of a connection, and how a request came from it.

use std::net::{IpAddr, SocketAddr};

/// Remote end of a connection.
#[derive(Clone, Debug)]
pub enum Peer {
    Remote {
        address: SocketAddr,
        /// The connection is encrypted by this daemon.
        tls: bool,
    },
    /// The socket in the runtime directory, which only root can open.
    Local,
}

impl Peer {
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Remote { address, tls: _ } => Some(address.ip().to_canonical()),
            Peer::Local => None,
        }
    }

    /// Reports whether cookies may carry `Secure`.
    pub fn is_tls(&self) -> bool {
        matches!(self, Peer::Remote { tls: true, .. })
    }
}

/// Transport of a request.
#[derive(Clone, Debug, Default)]
pub struct ConnectionInfo {
    /// The connection is encrypted by this daemon.
    pub tls: bool,
    /// A proxy says that it stands between.
    pub forwarded: bool,
    pub user_agent: Option<String>,
}
