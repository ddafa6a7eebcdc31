//! UDP sockets of DHCPv6 on one interface (RFC 8415, section 7.2).

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use gateway_core::dhcp6::{ALL_SERVERS, CLIENT_PORT, SERVER_PORT};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::UdpSocket;

/// Longest datagram that is read.
pub(crate) const MAX_DATAGRAM: usize = 4096;

/// Opens the socket of a client at its link-local address. It fails while the address is not verified yet (RFC 4862), and
/// while another client uses it.
pub(crate) fn client(interface: &str, index: u32, address: Ipv6Addr) -> io::Result<UdpSocket> {
    let socket = open(interface, index)?;
    bind(&socket, SocketAddrV6::new(address, CLIENT_PORT, 0, index))?;
    UdpSocket::from_std(socket.into())
}

/// Opens the socket of a server. It receives what clients send to all servers of the link.
pub(crate) fn server(interface: &str, index: u32) -> io::Result<UdpSocket> {
    let socket = open(interface, index)?;
    bind(&socket, SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, SERVER_PORT, 0, 0))?;
    socket.join_multicast_v6(&ALL_SERVERS, index)?;
    UdpSocket::from_std(socket.into())
}

/// Returns the address of all servers of an interface.
pub(crate) fn all_servers(index: u32) -> SocketAddr {
    SocketAddrV6::new(ALL_SERVERS, SERVER_PORT, 0, index).into()
}

fn open(interface: &str, index: u32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.set_only_v6(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_multicast_if_v6(index)?;
    socket.set_multicast_loop_v6(false)?;
    Ok(socket)
}

fn bind(socket: &Socket, address: SocketAddrV6) -> io::Result<()> {
    socket.bind(&SockAddr::from(address))
}
