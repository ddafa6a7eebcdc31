//! Sockets of the time server. An answer leaves from the address that the query was sent to (ip(7), ipv6(7)), because
//! conntrack recognises answers to redirected queries by it.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

use gateway_common::wire::Mark;
use nix::cmsg_space;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// UDP socket of one address family on all addresses.
#[derive(Debug)]
pub(crate) struct NtpSocket(UdpSocket);

/// Sender of a datagram, and the local address that it was sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    from: SockaddrStorage,
    to: LocalAddress,
}

#[derive(Clone, Copy, Debug)]
enum LocalAddress {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl NtpSocket {
    pub(crate) fn bind(ipv6: bool, port: u16) -> io::Result<NtpSocket> {
        let address: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let address = SocketAddr::new(address, port);
        let socket =
            Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        // Answers reach local networks only, whatever source a query claims.
        socket.set_mark(Mark::LOCAL.0)?;
        if ipv6 {
            socket.set_only_v6(true)?;
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
        } else {
            setsockopt(&socket, Ipv4PacketInfo, &true)?;
        }
        socket.bind(&address.into())?;
        UdpSocket::from_std(socket.into()).map(NtpSocket)
    }

    /// Waits for a datagram. Returns its length, which is at most that of the buffer, and its peer.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Peer)> {
        self.0.async_io(Interest::READABLE, || receive(&self.0, buffer)).await
    }

    /// Sends a datagram to a peer. One that the socket has no room for is lost.
    pub(crate) fn send(&self, datagram: &[u8], peer: &Peer) -> io::Result<()> {
        let parts = [IoSlice::new(datagram)];
        let (four, six);
        let control = match peer.to {
            LocalAddress::V4(info) => {
                // By the interface of the route, from the address that the query was sent to.
                four = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: info.ipi_addr, ..info };
                ControlMessage::Ipv4PacketInfo(&four)
            }
            LocalAddress::V6(info) => {
                six = info;
                ControlMessage::Ipv6PacketInfo(&six)
            }
        };
        let flags = MsgFlags::MSG_DONTWAIT;
        match sendmsg(self.0.as_raw_fd(), &parts, &[control], flags, Some(&peer.from)) {
            Ok(_) | Err(nix::Error::EAGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, Peer)> {
    let mut control = cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::empty();
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let to = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4PacketInfo(info) => Some(LocalAddress::V4(info)),
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(LocalAddress::V6(info)),
        _ => None,
    });
    match message.address.zip(to) {
        Some((from, to)) => Ok((message.bytes, Peer { from, to })),
        None => Err(io::Error::other("datagram without addresses")),
    }
}
