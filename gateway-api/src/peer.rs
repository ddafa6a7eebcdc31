//! Remote end of a connection, and transport of a request.

use std::net::{IpAddr, SocketAddr};

/// Remote end of a connection.
#[derive(Clone, Debug)]
pub enum Peer {
    Remote {
        address: SocketAddr,
        /// This daemon terminates TLS.
        tls: bool,
    },
    /// Socket in the runtime directory, which only root can open.
    Local,
}

impl Peer {
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Remote { address, tls: _ } => Some(address.ip().to_canonical()),
            Peer::Local => None,
        }
    }

    /// Reports whether cookies may have the attribute `Secure`.
    pub fn is_tls(&self) -> bool {
        matches!(self, Peer::Remote { tls: true, .. })
    }
}

/// Transport of a request.
#[derive(Clone, Debug, Default)]
pub struct ConnectionInfo {
    /// This daemon terminates TLS.
    pub tls: bool,
    /// A header says that a proxy forwarded the request.
    pub forwarded: bool,
    pub user_agent: Option<String>,
}
