//! Peer of a datagram, and the local address that received it. The answer must leave from that address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Buffer for one `IP_PKTINFO` or `IPV6_PKTINFO` control message, aligned as the kernel requires (cmsg(3)).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Control(pub(super) [u8; 64]);

#[derive(Clone, Copy)]
pub struct Peer {
    pub(super) name: libc::sockaddr_storage,
    pub(super) name_length: libc::socklen_t,
    pub(super) control: Control,
    pub(super) control_length: usize,
    /// Interface index and local address that received the datagram.
    pub(super) arrival: Option<(u32, IpAddr)>,
}

impl Peer {
    pub fn arrival(&self) -> Option<(u32, IpAddr)> {
        self.arrival
    }

    /// Sends one datagram to the peer.
    pub fn send(&mut self, socket: &UdpSocket, message: &[u8]) -> io::Result<()> {
        let mut vector = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        // SAFETY: all zeroes is a valid msghdr: null pointers with zero lengths.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut self.name).cast();
        header.msg_namelen = self.name_length;
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        if self.control_length > 0 {
            header.msg_control = (&raw mut self.control).cast();
            header.msg_controllen = self.control_length as _;
        }
        // SAFETY: the header points to a name, a vector and a control buffer that live until the call returns; the
        // kernel only reads them.
        let sent =
            unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Returns the IP address and port of a socket address. None: it has another address family.
pub(super) fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel wrote a sockaddr_in, as its family says; the storage is larger and at least as
            // aligned.
            let name = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Some((address, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, with a sockaddr_in6.
            let name = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            Some((Ipv6Addr::from(name.sin6_addr.s6_addr), u16::from_be(name.sin6_port)).into())
        }
        _ => None,
    }
}

const HEADER: usize = size_of::<libc::cmsghdr>();

/// Returns the arrival interface and local address, and turns the control message into the one of the answer. The
/// answer keeps the local address, but the route to the peer selects its interface: a redirected datagram may have
/// arrived on another one. Link-local addresses keep the interface.
pub(super) fn reply_source(control: &mut Control, length: usize) -> Option<(u32, IpAddr)> {
    if length < HEADER {
        return None;
    }
    let bytes = &mut control.0;
    let quad = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    // A cmsghdr ends with level and type.
    let int = |at: usize| i32::from_ne_bytes(quad(at));
    match (int(HEADER - 8), int(HEADER - 4)) {
        // in_pktinfo: index, local address, destination.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let (interface, to) = (u32::from_ne_bytes(quad(HEADER)), Ipv4Addr::from(quad(HEADER + 8)));
            bytes[HEADER..HEADER + 4].fill(0);
            Some((interface, to.into()))
        }
        // in6_pktinfo: address, index.
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let interface = u32::from_ne_bytes(quad(HEADER + 16));
            let to: [u8; 16] = std::array::from_fn(|index| bytes[HEADER + index]);
            let to = Ipv6Addr::from(to);
            if !to.is_unicast_link_local() {
                bytes[HEADER + 16..HEADER + 20].fill(0);
            }
            Some((interface, to.into()))
        }
        _ => None,
    }
}
