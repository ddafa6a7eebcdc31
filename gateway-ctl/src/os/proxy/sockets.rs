//! Sockets of the relay: listeners on loopback addresses that accept traffic for other destinations, and connections
//! to proxies through the required leg.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::plan::names;
use gateway_outbound::Keepalive;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const BACKLOG: i32 = 4096;
/// Receive buffer for waiting datagrams, in bytes.
const DATAGRAMS: usize = 4 << 20;
/// Keepalive idle time, long because LAN hosts sleep.
const CLIENT_IDLE: Duration = Duration::from_secs(300);

/// Returns the listen addresses of the relay. Both are loopback addresses, so no other host can reach them.
pub fn addresses() -> [SocketAddr; 2] {
    [(Ipv4Addr::LOCALHOST, names::RELAY_PORT).into(), (Ipv6Addr::LOCALHOST, names::RELAY_PORT).into()]
}

/// Returns a listener for connections.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = transparent(address, Type::STREAM, Protocol::TCP)?;
    socket.bind(&address.into())?;
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Returns a listener for datagrams that reports their original destination and fwmark.
pub(super) fn listen_for_datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = transparent(address, Type::DGRAM, Protocol::UDP)?;
    if address.is_ipv4() {
        setsockopt(&socket, sockopt::Ipv4OrigDstAddr, &true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv6OrigDstAddr, &true)?;
    }
    setsockopt(&socket, ReceiveMark, &true)?;
    // The first datagrams of a flow arrive here.
    socket.set_recv_buffer_size(DATAGRAMS)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// SO_RCVMARK (Linux 5.19).
const SO_RCVMARK: libc::c_int = 75;
#[derive(Clone, Copy)]
struct ReceiveMark;
nix::setsockopt_impl!(ReceiveMark, libc::SOL_SOCKET, SO_RCVMARK, bool, sockopt::SetBool);

/// Metadata of a received datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramMeta {
    pub from: SocketAddr,
    /// Original destination.
    pub to: SocketAddr,
    pub mark: Mark,
    pub length: usize,
}

/// Receives a datagram from a listener.
pub(super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<DatagramMeta> {
    let mut control = nix::cmsg_space!(libc::sockaddr_in6, u32);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let from = message.address.as_ref().and_then(address_of);
    let (mut to, mut mark) = (None, Mark(0));
    for said in message.cmsgs()? {
        match said {
            ControlMessageOwned::Ipv4OrigDstAddr(at) => {
                let ip = Ipv4Addr::from(u32::from_be(at.sin_addr.s_addr));
                to = Some(SocketAddr::new(ip.into(), u16::from_be(at.sin_port)));
            }
            ControlMessageOwned::Ipv6OrigDstAddr(at) => {
                let ip = Ipv6Addr::from(at.sin6_addr.s6_addr);
                to = Some(SocketAddr::new(ip.into(), u16::from_be(at.sin6_port)));
            }
            ControlMessageOwned::Unknown(other)
                if (other.cmsg_header.cmsg_level, other.cmsg_header.cmsg_type)
                    == (libc::SOL_SOCKET, libc::SO_MARK) =>
            {
                let bytes = other.data_bytes.get(..4).and_then(|bytes| bytes.try_into().ok());
                mark = Mark(bytes.map_or(0, u32::from_ne_bytes));
            }
            _ => {}
        }
    }
    let missing = || io::Error::other("the kernel does not tell where it comes from and goes to");
    let (from, to) = from.zip(to).ok_or_else(missing)?;
    Ok(DatagramMeta { from, to, mark, length: message.bytes })
}

fn address_of(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let four = storage.as_sockaddr_in().map(|at| SocketAddr::new(at.ip().into(), at.port()));
    four.or_else(|| storage.as_sockaddr_in6().map(|at| SocketAddr::new(at.ip().into(), at.port())))
}

/// Returns a socket that may have a foreign address (`IP_TRANSPARENT`).
pub(super) fn transparent(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind.nonblocking(), Some(protocol))?;
    if address.is_ipv4() {
        socket.set_ip_transparent_v4(true)?;
    } else {
        socket.set_only_v6(true)?;
        socket.set_ip_transparent_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Sets keepalive, so that an accepted connection ends when its client is gone.
pub(super) fn watch_over_client(stream: &TcpStream) -> io::Result<()> {
    Keepalive { idle: CLIENT_IDLE, ..Keepalive::PATIENT }.apply(stream)
}

/// Lets a connection end by its drop so that the peer sees a reset, and its memory is free at once.
pub(super) fn reset(stream: &TcpStream) {
    // A socket that is already gone needs no reset.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
