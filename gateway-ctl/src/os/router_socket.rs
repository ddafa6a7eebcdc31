//! Router advertisements or solicitations that arrive at any interface of this network namespace, and advertisements that
//! the gateway sends (packet(7)).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::egress_tap::{host_address, link_address};

/// Bytes of a packet that are returned.
const SNAPLEN: u32 = 2048;
const IPV6: u16 = libc::ETH_P_IPV6 as u16;
const ALL_INTERFACES: u32 = 0;

pub struct RouterSocket(Socket);

/// Origin of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Index of the interface.
    pub interface: u32,
    /// Source address of the frame.
    pub mac: [u8; 6],
}

impl RouterSocket {
    /// Opens the tap. It returns packets of this ICMPv6 type from then on.
    pub fn open(kind: u8) -> io::Result<RouterSocket> {
        // Without a protocol it receives nothing until the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
        socket.attach_filter(&filter(kind))?;
        socket.bind(&link_address(IPV6, ALL_INTERFACES)?)?;
        socket.set_nonblocking(true)?;
        Ok(RouterSocket(socket))
    }

    /// Sends a packet, from its IPv6 header on, to a host of the interface with this index.
    pub fn send(&self, packet: &[u8], interface: u32, mac: [u8; 6]) -> io::Result<()> {
        let to = host_address(IPV6, interface, mac)?;
        self.0.send_to(packet, &to).map(drop)
    }

    /// Returns a descriptor that is readable when there are packets.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the next packet, from its IPv6 header on. `None` if there is none.
    pub fn next(&self, buffer: &mut Vec<u8>) -> io::Result<Option<Arrival>> {
        buffer.clear();
        buffer.reserve(SNAPLEN as usize);
        let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        match self.0.recv_from(spare) {
            Ok((length, from)) => {
                // SAFETY: the kernel has written so many bytes.
                unsafe { buffer.set_len(length) };
                // SAFETY: the kernel returns addresses of this type on packet sockets.
                let link = unsafe { &*from.as_ptr().cast::<libc::sockaddr_ll>() };
                let mac = *link.sll_addr.first_chunk().expect("eight bytes");
                Ok(Some(Arrival { interface: link.sll_ifindex.cast_unsigned(), mac }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // An interface went down while the socket was bound to all.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Accepts ICMPv6 messages of a type. Those with extension headers are ignored (RFC 6980).
fn filter(kind: u8) -> [SockFilter; 6] {
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    [
        SockFilter::new(LOAD_BYTE, 0, 0, 6),
        SockFilter::new(JUMP_EQUAL, 0, 3, 58),
        SockFilter::new(LOAD_BYTE, 0, 0, 40),
        SockFilter::new(JUMP_EQUAL, 0, 1, u32::from(kind)),
        SockFilter::new(RETURN, 0, 0, SNAPLEN),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}
