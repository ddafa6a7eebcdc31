//! Reasons why a connection through a proxy or a bridge fails.

use std::io;

use gateway_outbound::{EgressError, socks5};

/// Reason why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("name has no address")]
    NoAddress,
    #[error("unreachable: {0}")]
    Connect(io::Error),
    #[error(transparent)]
    Socks(socks5::Error),
    #[error("no answer within the timeout")]
    Silent,
    #[error("SOCKS5 proxy named the UDP relay {0}, which is neither its own address nor one of the internet")]
    ForeignRelay(std::net::SocketAddr),
    /// An established connection has ended.
    #[error("{0}")]
    Ended(String),
}

impl ConnectError {
    /// Reports whether the failure concerns the proxy, and not only the destination.
    pub(super) fn is_the_proxys(&self) -> bool {
        !matches!(self, ConnectError::Socks(socks5::Error::Refused(_)))
    }
}

impl From<EgressError> for ConnectError {
    fn from(error: EgressError) -> ConnectError {
        match error {
            EgressError::Connect(error) | EgressError::ProxyConnect(error) => ConnectError::Connect(error),
            EgressError::Proxy(error) => ConnectError::Socks(error),
            EgressError::ForeignRelay(at) => ConnectError::ForeignRelay(at),
        }
    }
}
