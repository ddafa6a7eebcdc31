//! Tap that shows that a packet to an address is about to leave by an interface: the packet itself, or the ARP request
//! that the kernel sends before it (packet(7), RFC 826).

use std::io;
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;

use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::egress_tap::{ALL_PROTOCOLS, link_address};

const ARP: u32 = libc::ETH_P_ARP as u32;
const IPV4: u32 = libc::ETH_P_IP as u32;

pub(crate) struct AnswerTap(Socket);

impl AnswerTap {
    /// Opens the tap on an interface. It sees what leaves from then on.
    pub(crate) fn open(interface: u32, address: Ipv4Addr) -> io::Result<AnswerTap> {
        // Without a protocol it receives nothing until the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), Some(Protocol::from(0)))?;
        socket.attach_filter(&filter(address.into()))?;
        socket.bind(&link_address(ALL_PROTOCOLS, interface)?)?;
        Ok(AnswerTap(socket))
    }

    /// Reports whether there was one since the last call.
    pub(crate) fn has_seen(&self) -> io::Result<bool> {
        match self.0.recv(&mut [MaybeUninit::<u8>::uninit(); 1]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Accepts outgoing ARP requests for an address, and IPv4 packets to it. Offsets begin with the header behind the one of
/// the link.
fn filter(address: u32) -> [SockFilter; 11] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Offsets of the protocol and of the packet type among the kernel's extensions (linux/filter.h).
    const PROTOCOL: u32 = 0xffff_f000;
    const PACKET_TYPE: u32 = 0xffff_f000 + 4;
    const OUTGOING: u32 = 4;
    let step = |code, k| SockFilter::new(code, 0, 0, k);
    // The last two instructions. Jumps are relative to the next instruction.
    let (reject, accept) = (9, 10);
    let jump = |at: u8, k, yes: u8, no: u8| SockFilter::new(JUMP_EQUAL, yes - at - 1, no - at - 1, k);
    [
        step(LOAD_BYTE, PACKET_TYPE),
        jump(1, OUTGOING, 2, reject),
        step(LOAD_HALF, PROTOCOL),
        jump(3, ARP, 4, 6),
        step(LOAD_WORD, 24),
        jump(5, address, accept, reject),
        jump(6, IPV4, 7, reject),
        step(LOAD_WORD, 16),
        jump(8, address, accept, reject),
        step(RETURN, 0),
        step(RETURN, 1),
    ]
}
