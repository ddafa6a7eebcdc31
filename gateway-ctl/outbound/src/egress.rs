//! Egress of a connection: the fwmark of its packets, and its proxy.

use std::fmt;
use std::future::ready;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use gateway_common::wire::Mark;
use tokio::net::{TcpStream, UdpSocket};
use zeroize::Zeroizing;

use crate::reserved::relay_address;
use crate::sockets::{Sockets, any_address};
use crate::socks5::{self, Credentials, Destination};

/// Fwmark and proxy of outgoing packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// `None`: no mark, like other traffic of this host.
    pub mark: Option<Mark>,
    pub proxy: Option<Proxy>,
}

/// SOCKS5 proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub server: SocketAddr,
    pub login: Option<Arc<Login>>,
}

/// User name and password of a proxy.
#[derive(PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Reason why a connection through an egress failed.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("{0}")]
    Connect(io::Error),
    #[error("{0}")]
    ProxyConnect(io::Error),
    #[error(transparent)]
    Proxy(#[from] socks5::Error),
    #[error("SOCKS5 proxy named the UDP relay {0}, which is neither its own address nor one of the internet")]
    ForeignRelay(SocketAddr),
}

/// Path of datagrams to one server.
#[derive(Debug)]
pub struct UdpPath {
    pub socket: UdpSocket,
    pub wrapper: Option<UdpWrapper>,
}

/// SOCKS5 association of a [`UdpPath`].
#[derive(Debug)]
pub struct UdpWrapper {
    /// Header before each datagram.
    pub header: Vec<u8>,
    /// Control connection. The association ends with it.
    pub control: TcpStream,
}

impl Hash for Egress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mark.map(|mark| mark.0).hash(state);
        self.proxy.as_ref().map(|proxy| proxy.server).hash(state);
    }
}

impl Login {
    pub fn credentials(&self) -> Credentials<'_> {
        Credentials { username: &self.user, password: &self.password }
    }
}

impl Egress {
    pub const DEFAULT: Egress = Egress { mark: None, proxy: None };

    /// Returns the egress of packets with this mark.
    pub const fn marked(mark: Mark) -> Egress {
        Egress { mark: Some(mark), proxy: None }
    }

    /// Connects to an address, or to a name that the proxy resolves. Without a proxy a name is an error: a
    /// [`crate::Dialer`] resolves it first.
    pub async fn connect(
        &self,
        sockets: &dyn Sockets,
        to: impl Into<Destination>,
    ) -> Result<TcpStream, EgressError> {
        match (&self.proxy, to.into()) {
            (Some(proxy), to) => {
                let mut stream = proxy.open(sockets, self.mark).await?;
                socks5::connect(&mut stream, &to).await?;
                Ok(stream)
            }
            (None, Destination::Address(to)) => {
                sockets.connect(to, self.mark).await.map_err(EgressError::Connect)
            }
            (None, Destination::Name(..)) => {
                Err(EgressError::Connect(io::Error::new(io::ErrorKind::InvalidInput, "name is not resolved")))
            }
        }
    }

    /// Returns a path for datagrams to and from one server.
    pub async fn datagrams(&self, sockets: &dyn Sockets, to: SocketAddr) -> Result<UdpPath, EgressError> {
        let Some(proxy) = &self.proxy else {
            let socket = sockets.datagrams(to, self.mark).map_err(EgressError::Connect)?;
            return Ok(UdpPath { socket, wrapper: None });
        };
        let (control, socket) = proxy.associate(sockets, self.mark).await?;
        // An address always fits.
        let header = socks5::datagram_header(&Destination::Address(to))?;
        Ok(UdpPath { socket, wrapper: Some(UdpWrapper { header, control }) })
    }
}

impl Proxy {
    /// Connects to the proxy and authenticates.
    pub async fn open(&self, sockets: &dyn Sockets, mark: Option<Mark>) -> Result<TcpStream, EgressError> {
        open(sockets, self.server, mark, ready(self.login.as_deref().map(Login::credentials))).await
    }

    /// Opens an association (RFC 1928, section 7).
    pub async fn associate(
        &self,
        sockets: &dyn Sockets,
        mark: Option<Mark>,
    ) -> Result<(TcpStream, UdpSocket), EgressError> {
        associate(sockets, self.server, mark, ready(self.login.as_deref().map(Login::credentials))).await
    }
}

/// Connects to a proxy and authenticates. Polls the login only after the connection is established, because decrypting
/// a password takes milliseconds of CPU time.
pub async fn open(
    sockets: &dyn Sockets,
    proxy: SocketAddr,
    mark: Option<Mark>,
    login: impl Future<Output = Option<Credentials<'_>>>,
) -> Result<TcpStream, EgressError> {
    let mut stream = sockets.connect(proxy, mark).await.map_err(EgressError::ProxyConnect)?;
    socks5::negotiate(&mut stream, login.await).await?;
    Ok(stream)
}

/// Opens an association. Returns its control connection and the socket for its datagrams. The packets of both carry the
/// mark.
pub async fn associate(
    sockets: &dyn Sockets,
    proxy: SocketAddr,
    mark: Option<Mark>,
    login: impl Future<Output = Option<Credentials<'_>>>,
) -> Result<(TcpStream, UdpSocket), EgressError> {
    let mut control = open(sockets, proxy, mark, login).await?;
    // The source of the datagrams is unknown before the socket exists.
    let named = socks5::associate(&mut control, any_address(proxy.is_ipv6())).await?;
    let at = relay_address(proxy, named).ok_or(EgressError::ForeignRelay(named))?;
    let socket = sockets.datagrams(at, mark).map_err(EgressError::ProxyConnect)?;
    Ok((control, socket))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::sockets::KernelSockets;

    #[tokio::test]
    async fn the_login_is_read_only_after_the_proxy_accepted_the_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let unused = listener.local_addr().unwrap();
        drop(listener);
        let asked = AtomicBool::new(false);
        let login = async {
            asked.store(true, Ordering::Relaxed);
            None
        };
        let opened = open(&KernelSockets::PATIENT, unused, None, login).await;
        assert!(matches!(opened, Err(EgressError::ProxyConnect(_))), "{opened:?}");
        assert!(!asked.load(Ordering::Relaxed));
    }
}
