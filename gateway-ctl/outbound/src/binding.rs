//! Sockets bound to one interface, for probes that must not use another one.

use std::io;
use std::net::{IpAddr, SocketAddr};

use gateway_common::wire::Mark;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use crate::sockets::any_address;

/// Interface, source address and fwmark of a socket.
#[derive(Clone, Debug)]
pub struct SocketBinding {
    pub interface: String,
    pub source: Option<IpAddr>,
    pub mark: Mark,
}

impl SocketBinding {
    fn bind(&self, socket: &SockRef<'_>, ipv6: bool) -> io::Result<()> {
        socket.set_mark(self.mark.0)?;
        socket.bind_device(Some(self.interface.as_bytes()))?;
        let source = self.source.unwrap_or(any_address(ipv6).ip());
        socket.bind(&SocketAddr::new(source, 0).into())
    }

    /// Returns a bound socket that is not connected.
    pub fn socket(&self, to: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
        #[expect(clippy::disallowed_methods, reason = "this package connects")]
        let socket = Socket::new(Domain::for_address(to), kind.nonblocking(), Some(protocol))?;
        self.bind(&SockRef::from(&socket), to.is_ipv6())?;
        Ok(socket)
    }

    /// Returns a socket for datagrams to one address.
    pub fn datagrams(&self, to: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<UdpSocket> {
        let socket = self.socket(to, kind, protocol)?;
        socket.connect(&to.into())?;
        UdpSocket::from_std(socket.into())
    }

    /// Connects over TCP.
    pub async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = if to.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
        self.bind(&SockRef::from(&socket), to.is_ipv6())?;
        socket.connect(to).await
    }
}
