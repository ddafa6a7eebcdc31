//! Probes of addresses: ARP on a link (RFC 5227), and echo requests to networks behind a router.
//!
//! Many hosts answer no echo request. On a link the kernel would resolve the address first, and each that no one uses
//! is an entry of its neighbour table: a flood of clients would take them from all other traffic. ARP probes by a
//! packet socket enter no table. Each first offer takes 400 ms. A router that answers for all addresses (proxy ARP)
//! makes each of them declined, which alerts show.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use gateway_common::checksum::{fold, sum};
use gateway_common::wire::Mark;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::egress_tap::{host_address, link_address};

const ARP: u16 = libc::ETH_P_ARP as u16;
const ARP_LENGTH: usize = 28;
/// Ethernet and IPv4 with the lengths of their addresses.
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u8 = 1;
const BROADCAST_MAC: [u8; 6] = [0xff; 6];

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const IP_HEADER: usize = 20;
/// Identifies the echo requests of the DHCP server.
const IDENTIFIER: [u8; 2] = *b"GW";

/// ARP on one interface.
#[derive(Debug)]
pub(crate) struct ArpSocket {
    socket: Socket,
    index: u32,
    mac: [u8; 6],
}

/// Host that uses an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressUser {
    pub address: Ipv4Addr,
    pub mac: Option<[u8; 6]>,
}

impl ArpSocket {
    pub(crate) fn open(index: u32, mac: [u8; 6]) -> io::Result<ArpSocket> {
        // Without a protocol it receives nothing until the filter is there.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), Some(Protocol::from(0)))?;
        socket.attach_filter(&from_others(index))?;
        socket.bind(&link_address(ARP, index)?)?;
        Ok(ArpSocket { socket, index, mac })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Asks for the user of an address without claiming one.
    pub(crate) fn probe(&self, address: Ipv4Addr) -> io::Result<()> {
        let mut message = [0; ARP_LENGTH];
        message[..6].copy_from_slice(&ARP_HEAD);
        message[7] = REQUEST;
        message[8..14].copy_from_slice(&self.mac);
        message[24..].copy_from_slice(&address.octets());
        match self.socket.send_to(&message, &host_address(ARP, self.index, BROADCAST_MAC)?) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the sender of the next message. `None` if there is none.
    pub(crate) fn next_user(&self) -> io::Result<Option<AddressUser>> {
        loop {
            let mut buffer = [MaybeUninit::<u8>::uninit(); ARP_LENGTH];
            let length = match self.socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => return Ok(None),
                Err(error) => return Err(error),
            };
            if length < ARP_LENGTH {
                continue;
            }
            // SAFETY: the kernel has written all bytes.
            let message = buffer.map(|byte| unsafe { byte.assume_init() });
            if let Some(user) = sender(&message) {
                return Ok(Some(user));
            }
        }
    }
}

/// Returns the sender of a message. A probe has none: its sender does not use the address yet.
fn sender(message: &[u8; ARP_LENGTH]) -> Option<AddressUser> {
    let address = Ipv4Addr::from(*message[14..].first_chunk::<4>()?);
    let mac = *message[8..].first_chunk()?;
    let is_valid = message[..6] == ARP_HEAD && !address.is_unspecified();
    is_valid.then_some(AddressUser { address, mac: Some(mac) })
}

/// Accepts messages that other hosts sent to this interface. The kernel passes the socket those of its VLANs as well.
fn from_others(index: u32) -> [SockFilter; 6] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Offsets of the packet type and of the interface among the kernel's extensions (linux/filter.h).
    const PACKET_TYPE: u32 = 0xffff_f000 + 4;
    const INTERFACE: u32 = 0xffff_f000 + 8;
    const OUTGOING: u32 = 4;
    [
        SockFilter::new(LOAD_WORD, 0, 0, INTERFACE),
        SockFilter::new(JUMP_EQUAL, 0, 3, index),
        SockFilter::new(LOAD_BYTE, 0, 0, PACKET_TYPE),
        SockFilter::new(JUMP_EQUAL, 1, 0, OUTGOING),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}

/// Echo requests (RFC 792). On a link they would fill the kernel's neighbour table.
#[derive(Debug)]
pub(crate) struct EchoSocket(Socket);

impl EchoSocket {
    pub(crate) fn open() -> io::Result<EchoSocket> {
        let socket = Socket::new(Domain::IPV4, Type::RAW.nonblocking(), Some(Protocol::ICMPV4))?;
        socket.set_mark(Mark::LOCAL.0)?;
        Ok(EchoSocket(socket))
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn probe(&self, address: Ipv4Addr) -> io::Result<()> {
        let mut message = [ECHO_REQUEST, 0, 0, 0, IDENTIFIER[0], IDENTIFIER[1], 0, 0];
        let checksum = !fold(sum(&message));
        message[2..4].copy_from_slice(&checksum.to_ne_bytes());
        match self.0.send_to(&message, &SocketAddrV4::new(address, 0).into()) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the sender of the next echo reply. `None` if there is none.
    pub(crate) fn next_user(&self) -> io::Result<Option<AddressUser>> {
        loop {
            let mut buffer = [MaybeUninit::<u8>::uninit(); 128];
            let length = match self.0.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            // SAFETY: the kernel has written so many bytes.
            let packet: Vec<u8> = buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect();
            if let Some(user) = echo_sender(&packet) {
                return Ok(Some(user));
            }
        }
    }
}

fn echo_sender(packet: &[u8]) -> Option<AddressUser> {
    let header = packet.first_chunk::<IP_HEADER>()?;
    let message = packet.get(usize::from(header[0] & 15) * 4..)?.first_chunk::<8>()?;
    let is_reply = message[0] == ECHO_REPLY && message[4..6] == IDENTIFIER;
    let address = Ipv4Addr::from(*header[12..].first_chunk::<4>()?);
    is_reply.then_some(AddressUser { address, mac: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_claims_no_address() {
        let mut message = [0; ARP_LENGTH];
        message[..6].copy_from_slice(&ARP_HEAD);
        message[8..14].copy_from_slice(&[2; 6]);
        assert_eq!(sender(&message), None);
        message[14..18].copy_from_slice(&[192, 0, 2, 9]);
        let user = AddressUser { address: Ipv4Addr::new(192, 0, 2, 9), mac: Some([2; 6]) };
        assert_eq!(sender(&message), Some(user));
    }

    #[test]
    fn only_replies_to_own_requests_count() {
        let mut packet = vec![0x45; IP_HEADER];
        packet.extend([ECHO_REPLY, 0, 0, 0, b'G', b'W', 0, 0]);
        packet[12..16].copy_from_slice(&[10, 9, 0, 7]);
        assert_eq!(echo_sender(&packet).map(|user| user.address), Some(Ipv4Addr::new(10, 9, 0, 7)));
        packet[IP_HEADER + 4] = b'x';
        assert_eq!(echo_sender(&packet), None);
        assert_eq!(echo_sender(&packet[..IP_HEADER + 3]), None);
    }
}
