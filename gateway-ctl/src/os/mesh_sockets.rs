//! Sockets of the coordinator of the mesh.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const BACKLOG: i32 = 1024;
/// Time without data after which a connection is probed. Phones sleep.
const KEEPALIVE: Duration = Duration::from_secs(120);

/// Expands the IPv4 wildcard address to both address families.
pub(crate) fn addresses(address: SocketAddr) -> Vec<SocketAddr> {
    let is_any = address.ip() == IpAddr::from([0, 0, 0, 0]);
    let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
    std::iter::once(address).chain(is_any.then_some(both)).collect()
}

/// Returns a listener. An address that no interface has yet is bound all the same.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(address, Type::STREAM, Protocol::TCP)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Returns a socket for STUN.
pub(crate) fn datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::from_std(bound(address, Type::DGRAM, Protocol::UDP)?.into())
}

/// Prepares an accepted connection for long silence and short messages.
pub(crate) fn prepare(connection: &TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    SockRef::from(connection).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}

fn bound(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind.nonblocking(), Some(protocol))?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
        sockopt::set_ipv6_freebind(&socket, true)?;
    } else {
        sockopt::set_ip_freebind(&socket, true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
