//! Outer UDP sockets of a device: one per address family, on one port, with one fwmark.
//!
//! Datagrams of one size are sent and received in bursts (UDP_SEGMENT, UDP_GRO: udp(7)). Each call costs about as
//! much as a large packet itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrLike, SockaddrStorage,
    recvmsg, sendmsg, setsockopt, sockopt::UdpGroSegment,
};
use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::path_layer::{PathLayer, is_relayed};

/// Longest UDP payload, larger than the longest inner packet.
pub(super) const MAX_DATAGRAM: usize = 65535;
/// Socket buffer in bytes. Bursts of a tunnel fill the default buffers within a scheduler tick.
const BUFFER: usize = 4 << 20;
/// Bind attempts. A port that was just closed stays in use while a child process is between fork and exec. Also, a
/// free port of one family may be in use in the other.
const MAX_ATTEMPTS: usize = 16;
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// Consecutive datagrams: each has `segment` bytes, the last one the remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) len: usize,
    pub(super) segment: usize,
}

pub(super) struct Sockets {
    v4: UdpSocket,
    /// Absent on a kernel without IPv6.
    v6: Option<UdpSocket>,
    port: u16,
    /// True if bursts are sent in one call.
    segments: AtomicBool,
    /// Sends to relayed peers; absent on devices without any.
    layer: Option<Arc<dyn PathLayer>>,
}

impl Sockets {
    /// Binds to the port in both families, or to any port that is free in both.
    pub(super) async fn bind(
        port: Option<u16>,
        fwmark: u32,
        layer: Option<Arc<dyn PathLayer>>,
    ) -> io::Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::bind_once(port.unwrap_or(0), fwmark, layer.clone()) {
                Err(error) if attempt < MAX_ATTEMPTS && error.kind() == io::ErrorKind::AddrInUse => {
                    attempt += 1;
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                result => return result,
            }
        }
    }

    fn bind_once(port: u16, fwmark: u32, layer: Option<Arc<dyn PathLayer>>) -> io::Result<Self> {
        let v4 = open(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into(), fwmark)?;
        let port = v4.local_addr()?.port();
        let v6 = match open(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into(), fwmark) {
            Ok(socket) => Some(socket),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { v4, v6, port, segments: AtomicBool::new(true), layer })
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

    /// Returns what sends to a peer that has no address of its own.
    fn relay_to(&self, to: SocketAddr) -> Option<&dyn PathLayer> {
        self.layer.as_deref().filter(|_| is_relayed(to))
    }

    /// Sends a datagram and waits for room in the socket's buffer.
    pub(super) async fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        if let Some(layer) = self.relay_to(to) {
            layer.relay(to, datagram);
            return Ok(());
        }
        let socket = self.towards(to)?;
        loop {
            match socket.try_send_to(datagram, to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
                result => return result.map(drop),
            }
        }
    }

    /// Sends a burst in one call, or one by one if that is not possible.
    pub(super) async fn send_burst(
        &self,
        datagrams: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> io::Result<()> {
        if datagrams.len() <= segment {
            return self.send(datagrams, to).await;
        }
        if let Some(layer) = self.relay_to(to) {
            datagrams.chunks(segment).for_each(|datagram| layer.relay(to, datagram));
            return Ok(());
        }
        if self.segments.load(Ordering::Relaxed) {
            match self.send_segments(datagrams, segment, to).await {
                Err(error) => match error.raw_os_error() {
                    // The egress device cannot compute checksums, or the kernel does not support this.
                    Some(libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT) => {
                        tracing::debug!(%error, "datagrams go out one by one");
                        self.segments.store(false, Ordering::Relaxed);
                    }
                    // They exceed the path MTU. Sent singly, they can be fragmented.
                    Some(libc::EINVAL | libc::EMSGSIZE) => {}
                    _ => return Err(error),
                },
                result => return result,
            }
        }
        for datagram in datagrams.chunks(segment) {
            self.send(datagram, to).await?;
        }
        Ok(())
    }

    async fn send_segments(&self, datagrams: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        let socket = self.towards(to)?;
        let segment = u16::try_from(segment).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let send = || match to {
            SocketAddr::V4(to) => send_message(socket, datagrams, segment, &SockaddrIn::from(to)),
            SocketAddr::V6(to) => send_message(socket, datagrams, segment, &SockaddrIn6::from(to)),
        };
        socket.async_io(Interest::WRITABLE, send).await
    }

    /// Sends a datagram if the socket has room.
    pub(super) fn try_send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        if let Some(layer) = self.relay_to(to) {
            layer.relay(to, datagram);
            return Ok(());
        }
        self.towards(to)?.try_send_to(datagram, to).map(drop)
    }

    pub(super) async fn readable(&self, family: Family) -> io::Result<()> {
        self.of(family)?.readable().await
    }

    pub(super) fn try_recv(&self, family: Family, buffer: &mut [u8]) -> io::Result<(Burst, SocketAddr)> {
        let socket = self.of(family)?;
        socket.try_io(Interest::READABLE, || receive_message(socket, buffer))
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
    // Beyond the system's limit if permitted, else up to it.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        socket.set_recv_buffer_size(BUFFER)?;
    }
    if sockopt::set_socket_send_buffer_size_force(&socket, BUFFER).is_err() {
        socket.set_send_buffer_size(BUFFER)?;
    }
    socket.bind(&address.into())?;
    if let Err(error) = setsockopt(&socket, UdpGroSegment, &true) {
        tracing::debug!(%error, "datagrams come in one by one");
    }
    UdpSocket::from_std(socket.into())
}

fn send_message(
    socket: &UdpSocket,
    datagrams: &[u8],
    segment: u16,
    to: &impl SockaddrLike,
) -> io::Result<()> {
    let (data, control) = ([IoSlice::new(datagrams)], [ControlMessage::UdpGsoSegments(&segment)]);
    sendmsg(socket.as_raw_fd(), &data, &control, MsgFlags::empty(), Some(to))?;
    Ok(())
}

fn receive_message(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(Burst, SocketAddr)> {
    // Twice the size of the only possible control message.
    let mut control = [0; 64];
    let mut data = [IoSliceMut::new(buffer)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut data,
        Some(control.as_mut_slice()),
        MsgFlags::empty(),
    )?;
    let from = received.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
    let segments = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::UdpGroSegments(segment) => usize::try_from(segment).ok(),
        _ => None,
    });
    let len = received.bytes;
    Ok((Burst { len, segment: segments.filter(|segment| *segment > 0).unwrap_or(len) }, from))
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = storage.as_sockaddr_in() {
        return Some(SocketAddrV4::from(*v4).into());
    }
    storage.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into())
}
