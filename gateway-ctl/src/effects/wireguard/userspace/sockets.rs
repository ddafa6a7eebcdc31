//! The outer UDP sockets of a device: one per address family, on one port, with one mark.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::UdpSocket;

/// Bursts of a tunnel fill the default buffers within a scheduler's tick.
const BUFFER: usize = 4 << 20;
/// A port that was just given back stays taken while a child process has not come from its fork to its exec;
/// and any free port of one family may be taken in the other.
const ATTEMPTS: usize = 16;
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

#[derive(Debug)]
pub(super) struct Sockets {
    v4: UdpSocket,
    /// Absent on a kernel without IPv6.
    v6: Option<UdpSocket>,
    port: u16,
}

impl Sockets {
    /// Binds to the port in both families, or to any port that is free in both.
    pub(super) async fn bind(port: Option<u16>, fwmark: u32) -> io::Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::bind_once(port.unwrap_or(0), fwmark) {
                Err(error) if attempt < ATTEMPTS && error.kind() == io::ErrorKind::AddrInUse => {
                    attempt += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                result => return result,
            }
        }
    }

    fn bind_once(port: u16, fwmark: u32) -> io::Result<Self> {
        let v4 = open(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into(), fwmark)?;
        let port = v4.local_addr()?.port();
        let v6 = match open(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into(), fwmark) {
            Ok(socket) => Some(socket),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { v4, v6, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn families(&self) -> impl Iterator<Item = Family> {
        [Some(Family::V4), self.v6.as_ref().map(|_| Family::V6)].into_iter().flatten()
    }

    pub(super) fn set_fwmark(&self, fwmark: u32) -> io::Result<()> {
        for socket in std::iter::once(&self.v4).chain(&self.v6) {
            SockRef::from(socket).set_mark(fwmark)?;
        }
        Ok(())
    }

    /// Sends, waiting for room in the socket's buffer.
    pub(super) async fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let socket = self.towards(to)?;
        loop {
            match socket.try_send_to(datagram, to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
                result => return result.map(drop),
            }
        }
    }

    /// Sends if there is room.
    pub(super) fn try_send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.towards(to)?.try_send_to(datagram, to).map(drop)
    }

    pub(super) async fn readable(&self, family: Family) -> io::Result<()> {
        self.of(family)?.readable().await
    }

    pub(super) fn try_recv(&self, family: Family, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.of(family)?.try_recv_from(buffer)
    }

    fn towards(&self, to: SocketAddr) -> io::Result<&UdpSocket> {
        self.of(if to.is_ipv4() { Family::V4 } else { Family::V6 })
    }

    fn of(&self, family: Family) -> io::Result<&UdpSocket> {
        match family {
            Family::V4 => Ok(&self.v4),
            Family::V6 => self.v6.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        }
    }
}

fn open(domain: Domain, address: SocketAddr, fwmark: u32) -> io::Result<UdpSocket> {
    let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(true)?;
    }
    if fwmark != 0 {
        socket.set_mark(fwmark)?;
    }
    // Beyond the system's limit where that is permitted, else up to it.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        socket.set_recv_buffer_size(BUFFER)?;
    }
    if sockopt::set_socket_send_buffer_size_force(&socket, BUFFER).is_err() {
        socket.set_send_buffer_size(BUFFER)?;
    }
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}
