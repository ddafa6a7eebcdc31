//! Tap on the packets that leave by any interface of this network namespace, behind all BPF programs and nftables
//! (packet(7)).
//!
//! It returns packets on their last hop, which probes of leak checks are, and DNS over UDP. Others cost a filter run.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;

use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};

/// Bytes of a packet that are returned.
const SNAPLEN: u32 = 2048;
/// Room for packets that wait to be read.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Instruction codes of classic BPF (linux/filter.h).
mod code {
    pub(super) const LOAD_BYTE: u16 = 0x30;
    pub(super) const LOAD_HALF: u16 = 0x28;
    pub(super) const LOAD_HALF_INDEXED: u16 = 0x48;
    /// X = 4 * (byte & 0xf): the length of an IPv4 header.
    pub(super) const INDEX_HEADER_LENGTH: u16 = 0xb1;
    pub(super) const SHIFT_RIGHT: u16 = 0x74;
    pub(super) const JUMP_EQUAL: u16 = 0x15;
    pub(super) const RETURN: u16 = 0x06;
}

/// Offset of the packet type among the kernel's extensions (SKF_AD_OFF + SKF_AD_PKTTYPE).
const PACKET_TYPE: u32 = 0xffff_f000 + 4;
const OUTGOING: u32 = 4;
/// Offset of the flag that a VLAN tag is beside the frame (SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT).
const TAG_PRESENT: u32 = 0xffff_f000 + 48;
const UDP: u32 = 17;
const DNS: u32 = 53;

/// Protocol number by which a packet socket sees the packets that leave, too.
pub const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;
const ALL_INTERFACES: u32 = 0;

pub struct EgressTap(Socket);

impl EgressTap {
    /// Opens the tap. It returns packets from then on.
    pub fn open() -> io::Result<EgressTap> {
        // Without a protocol it receives nothing until the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
        socket.attach_filter(&filter())?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.bind(&link_address(ALL_PROTOCOLS, ALL_INTERFACES)?)?;
        socket.set_nonblocking(true)?;
        Ok(EgressTap(socket))
    }

    /// Returns the next packet, from its IP header on, and the index of the interface that it leaves by. `None` if
    /// there is none yet.
    pub fn next(&self, buffer: &mut Vec<u8>) -> io::Result<Option<u32>> {
        buffer.clear();
        buffer.reserve(SNAPLEN as usize);
        let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        match self.0.recv_from(spare) {
            Ok((length, from)) => {
                // SAFETY: the kernel has written so many bytes.
                unsafe { buffer.set_len(length) };
                // SAFETY: the kernel returns addresses of this type on packet sockets.
                let link = unsafe { &*from.as_ptr().cast::<libc::sockaddr_ll>() };
                Ok(Some(link.sll_ifindex.cast_unsigned()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // An interface went down while the socket was bound to all.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until a packet may be there, at most so long.
    pub fn wait(&self, timeout: std::time::Duration) -> io::Result<()> {
        let millis = libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one structure, which lives through the call.
        match unsafe { libc::poll(&raw mut poll, 1, millis) } {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
            }
            _ => Ok(()),
        }
    }
}

/// Returns an address of packet sockets, by protocol and interface index.
pub fn link_address(protocol: u16, interface: u32) -> io::Result<SockAddr> {
    host_address(protocol, interface, [0; 6])
}

/// Returns the address of a host for packet sockets.
pub fn host_address(protocol: u16, interface: u32, mac: [u8; 6]) -> io::Result<SockAddr> {
    // SAFETY: the closure initialises the structure and its length; zeroes are valid for the other fields.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let link = storage.cast::<libc::sockaddr_ll>();
            (*link).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*link).sll_protocol = protocol.to_be();
            (*link).sll_ifindex = interface.cast_signed();
            (*link).sll_halen = 6;
            (*link).sll_addr = [mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], 0, 0];
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })?
    };
    Ok(address)
}

/// Accepts outgoing IP packets with a hop limit of 1, and UDP from or to port 53. Offsets begin with the IP header. Tagged
/// packets were seen before, at the interface of their VLAN.
fn filter() -> [SockFilter; 26] {
    use code::{
        INDEX_HEADER_LENGTH, JUMP_EQUAL, LOAD_BYTE, LOAD_HALF, LOAD_HALF_INDEXED, RETURN, SHIFT_RIGHT,
    };
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    // The last two instructions. Jumps are relative to the next instruction.
    let (reject, accept) = (24, 25);
    let jump = |at: u8, k, yes: u8, no: u8| SockFilter::new(JUMP_EQUAL, yes - at - 1, no - at - 1, k);
    [
        step(LOAD_BYTE, PACKET_TYPE),
        jump(1, OUTGOING, 2, reject),
        step(LOAD_BYTE, TAG_PRESENT),
        jump(3, 0, 4, reject),
        step(LOAD_BYTE, 0),
        step(SHIFT_RIGHT, 4),
        jump(6, 4, 7, 16),
        // IPv4 (RFC 791, section 3.1).
        step(LOAD_BYTE, 8),
        jump(8, 1, accept, 9),
        step(LOAD_BYTE, 9),
        jump(10, UDP, 11, reject),
        step(INDEX_HEADER_LENGTH, 0),
        step(LOAD_HALF_INDEXED, 0),
        jump(13, DNS, accept, 14),
        step(LOAD_HALF_INDEXED, 2),
        jump(15, DNS, accept, reject),
        // IPv6 (RFC 8200, section 3), or another protocol, which the reader ignores.
        step(LOAD_BYTE, 7),
        jump(17, 1, accept, 18),
        step(LOAD_BYTE, 6),
        jump(19, UDP, 20, reject),
        step(LOAD_HALF, 40),
        jump(21, DNS, accept, 22),
        step(LOAD_HALF, 42),
        jump(23, DNS, accept, reject),
        step(RETURN, 0),
        step(RETURN, SNAPLEN),
    ]
}
