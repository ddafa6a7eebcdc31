//! Multicast DNS and SSDP packets that arrive at any interface of this network namespace (packet(7)).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use gateway_core::announcements::{MDNS_PORT, SSDP_PORT};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::egress_tap::link_address;
use super::router_socket::Arrival;

/// Bytes of a packet that are returned.
const SNAPLEN: u32 = 2048;
const ALL_INTERFACES: u32 = 0;
/// Multicast addresses of frames to 224.0.0.251, 239.255.255.250, ff02::fb and ff02::c.
const GROUPS: [[u8; 6]; 4] = [
    [0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb],
    [0x01, 0x00, 0x5e, 0x7f, 0xff, 0xfa],
    [0x33, 0x33, 0, 0, 0, 0xfb],
    [0x33, 0x33, 0, 0, 0, 0x0c],
];

pub struct AnnouncementSocket(Socket);

impl AnnouncementSocket {
    /// Opens the sockets of IPv4 and IPv6. They return packets from then on. One socket of all protocols would make the
    /// kernel copy each packet that it sends, and see those of the fast path.
    pub fn open() -> io::Result<[AnnouncementSocket; 2]> {
        Ok([AnnouncementSocket::of(libc::ETH_P_IP)?, AnnouncementSocket::of(libc::ETH_P_IPV6)?])
    }

    fn of(protocol: libc::c_int) -> io::Result<AnnouncementSocket> {
        // Without a protocol it receives nothing until the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
        socket.attach_filter(&filter())?;
        socket.bind(&link_address(protocol as u16, ALL_INTERFACES)?)?;
        socket.set_nonblocking(true)?;
        Ok(AnnouncementSocket(socket))
    }

    /// Makes the NIC of an interface receive the groups. An interface that has gone is no error.
    pub fn join(&self, interface: u32) -> io::Result<()> {
        for group in GROUPS {
            let mut request = libc::packet_mreq {
                mr_ifindex: interface.cast_signed(),
                mr_type: libc::PACKET_MR_MULTICAST as u16,
                mr_alen: 6,
                mr_address: [0; 8],
            };
            request.mr_address[..6].copy_from_slice(&group);
            // SAFETY: the pointer is to one structure of this size, which lives through the call.
            let done = unsafe {
                libc::setsockopt(
                    self.0.as_raw_fd(),
                    libc::SOL_PACKET,
                    libc::PACKET_ADD_MEMBERSHIP,
                    (&raw const request).cast(),
                    size_of::<libc::packet_mreq>() as libc::socklen_t,
                )
            };
            if done != 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ENODEV) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Returns a descriptor that is readable when there are packets.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the next packet, from its IP header on. `None` if there is none.
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

/// Accepts UDP datagrams to the two ports. Offsets begin with the IP header. Fragments and IPv6 extension headers are
/// ignored.
fn filter() -> [SockFilter; 16] {
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    /// X = 4 * (byte & 0xf): the length of an IPv4 header.
    const INDEX_HEADER_LENGTH: u16 = 0xb1;
    const SHIFT_RIGHT: u16 = 0x74;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const UDP: u32 = 17;
    const JUMP: u16 = 0x05;
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    let jump = |k, then, other| SockFilter::new(JUMP_EQUAL, then, other, k);
    [
        step(LOAD_BYTE, 0),
        step(SHIFT_RIGHT, 4),
        jump(4, 0, 5),
        step(LOAD_BYTE, 9),
        jump(UDP, 0, 9),
        step(INDEX_HEADER_LENGTH, 0),
        step(LOAD_HALF_INDEXED, 2),
        step(JUMP, 4),
        jump(6, 0, 5),
        step(LOAD_BYTE, 6),
        jump(UDP, 0, 3),
        step(LOAD_HALF, 42),
        jump(MDNS_PORT.into(), 2, 0),
        jump(SSDP_PORT.into(), 1, 0),
        step(RETURN, 0),
        step(RETURN, SNAPLEN),
    ]
}
