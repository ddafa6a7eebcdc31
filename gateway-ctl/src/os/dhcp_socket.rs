//! Sockets of the DHCP server on one interface: UDP port 67, and a packet socket for clients that have no address yet
//! and for the messages of other servers (packet(7)).

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use gateway_common::wire::Mark;
use gateway_core::state_machines::dhcp::{
    CLIENT_PORT, Datagram, Destination, Reply, SERVER_PORT, datagram, discover,
};
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg, setsockopt};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::egress_tap::{host_address, link_address};

/// Room for requests that wait to be read: some thousand.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Longest message that is read.
const MAX_MESSAGE: usize = 1500;
const IPV4: u16 = libc::ETH_P_IP as u16;
const BROADCAST_MAC: [u8; 6] = [0xff; 6];

/// Socket for requests, with the one for frames.
#[derive(Debug)]
pub struct DhcpSocket {
    requests: UdpSocket,
    pub frames: FrameSocket,
}

/// Socket for packets to clients: own ones by MAC address, and those of other servers.
#[derive(Debug)]
pub struct FrameSocket {
    index: u32,
    socket: Socket,
}

impl DhcpSocket {
    pub fn open(interface: &str, index: u32) -> io::Result<DhcpSocket> {
        let requests = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        requests.bind_device(Some(interface.as_bytes()))?;
        requests.set_broadcast(true)?;
        // Replies reach local networks only, whatever address a request claims.
        requests.set_mark(Mark::LOCAL.0)?;
        setsockopt(&requests, RcvBufForce, &RECEIVE_BUFFER)?;
        requests.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT).into())?;
        Ok(DhcpSocket { requests: requests.into(), frames: FrameSocket::sender(index)? })
    }

    /// Returns the descriptor that is readable when there are requests.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.requests.as_fd()
    }

    /// Reads the next request. Returns `false` if there is none.
    pub fn next_request(&self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.resize(MAX_MESSAGE, 0);
        match self.requests.recv(buffer) {
            Ok(length) => {
                buffer.truncate(length);
                Ok(true)
            }
            Err(error) => no_more(error),
        }
    }

    /// Sends a reply. One that the socket has no room for is lost; the client asks again.
    pub fn send(&self, reply: &Reply) -> io::Result<()> {
        let to = match reply.to {
            Destination::Relay(relay) => SocketAddrV4::new(relay, SERVER_PORT),
            Destination::Client(client) => SocketAddrV4::new(client, CLIENT_PORT),
            Destination::Broadcast => SocketAddrV4::new(Ipv4Addr::BROADCAST, CLIENT_PORT),
            Destination::Hardware(mac, client) => return self.frames.send(reply, mac, client),
        };
        let source = libc::in_addr { s_addr: u32::from_ne_bytes(reply.server.octets()) };
        let info = libc::in_pktinfo {
            ipi_ifindex: self.frames.index.cast_signed(),
            ipi_spec_dst: source,
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        let control = [ControlMessage::Ipv4PacketInfo(&info)];
        let parts = [IoSlice::new(&reply.message)];
        let flags = MsgFlags::MSG_DONTWAIT;
        match sendmsg(self.requests.as_raw_fd(), &parts, &control, flags, Some(&SockaddrIn::from(to))) {
            Ok(_) | Err(nix::Error::EAGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl FrameSocket {
    /// Opens a socket that sends only: one that receives costs every packet that the kernel forwards.
    pub fn sender(index: u32) -> io::Result<FrameSocket> {
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), Some(Protocol::from(0)))?;
        Ok(FrameSocket { index, socket })
    }

    /// Opens a socket that receives the messages of other servers, too.
    pub fn open(index: u32) -> io::Result<FrameSocket> {
        // Without a protocol it receives nothing until the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), Some(Protocol::from(0)))?;
        socket.attach_filter(&to_clients(index))?;
        socket.bind(&link_address(IPV4, index)?)?;
        Ok(FrameSocket { index, socket })
    }

    /// Returns the descriptor that is readable when there are packets of other servers.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads the next packet to a client that this host did not send, from the IPv4 header on. Returns the MAC address
    /// of its sender.
    pub fn next(&self, buffer: &mut Vec<u8>) -> io::Result<Option<[u8; 6]>> {
        buffer.clear();
        buffer.reserve(MAX_MESSAGE);
        let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        match self.socket.recv_from(spare) {
            Ok((length, from)) => {
                // SAFETY: the kernel has written so many bytes.
                unsafe { buffer.set_len(length) };
                // SAFETY: the kernel returns addresses of this type on packet sockets.
                let link = unsafe { &*from.as_ptr().cast::<libc::sockaddr_ll>() };
                Ok(Some(*link.sll_addr.first_chunk().expect("eight bytes")))
            }
            Err(error) => no_more(error).map(|_| None),
        }
    }

    /// Sends a reply to a client that does not answer ARP yet.
    fn send(&self, reply: &Reply, mac: [u8; 6], client: Ipv4Addr) -> io::Result<()> {
        let packet = datagram(&Datagram {
            source: reply.server,
            destination: client,
            source_port: SERVER_PORT,
            destination_port: CLIENT_PORT,
            payload: &reply.message,
        });
        self.send_packet(&packet, mac)
    }

    /// Asks for other servers.
    pub fn send_discover(&self, xid: u32, mac: [u8; 6]) -> io::Result<()> {
        let packet = datagram(&Datagram {
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::BROADCAST,
            source_port: CLIENT_PORT,
            destination_port: SERVER_PORT,
            payload: &discover(xid, mac),
        });
        self.send_packet(&packet, BROADCAST_MAC)
    }

    fn send_packet(&self, packet: &[u8], mac: [u8; 6]) -> io::Result<()> {
        match self.socket.send_to(packet, &host_address(IPV4, self.index, mac)?) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns `false` for errors that mean that there is nothing to read.
fn no_more(error: io::Error) -> io::Result<bool> {
    let is_down = error.raw_os_error() == Some(libc::ENETDOWN);
    if is_down || error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// Accepts UDP to port 68 in packets that other hosts sent to this interface. The kernel passes the socket those of its
/// VLANs as well. Offsets begin with the IP header.
fn to_clients(index: u32) -> [SockFilter; 11] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    /// X = 4 * (byte & 0xf): the length of the header.
    const INDEX_HEADER_LENGTH: u16 = 0xb1;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Offsets of the packet type and of the interface among the kernel's extensions (linux/filter.h).
    const PACKET_TYPE: u32 = 0xffff_f000 + 4;
    const INTERFACE: u32 = 0xffff_f000 + 8;
    const OUTGOING: u32 = 4;
    [
        SockFilter::new(LOAD_WORD, 0, 0, INTERFACE),
        SockFilter::new(JUMP_EQUAL, 0, 8, index),
        SockFilter::new(LOAD_BYTE, 0, 0, PACKET_TYPE),
        SockFilter::new(JUMP_EQUAL, 6, 0, OUTGOING),
        SockFilter::new(LOAD_BYTE, 0, 0, 9),
        SockFilter::new(JUMP_EQUAL, 0, 4, u32::from(libc::IPPROTO_UDP as u8)),
        SockFilter::new(INDEX_HEADER_LENGTH, 0, 0, 0),
        SockFilter::new(LOAD_HALF_INDEXED, 0, 0, 2),
        SockFilter::new(JUMP_EQUAL, 0, 1, u32::from(CLIENT_PORT)),
        SockFilter::new(RETURN, 0, 0, MAX_MESSAGE as u32),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}
