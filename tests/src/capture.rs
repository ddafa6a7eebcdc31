//! Captured UDP datagrams of an interface, for a comparison of a packet before and behind the gateway.

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, bail, ensure};
use gateway_common::checksum::{fold, sum};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Socket, Type};

use crate::netns::Namespace;
use crate::packet_socket::{ALL_PROTOCOLS, link_address};
use crate::packets::{UDP, transport_sum};

const BUFFER: usize = 8 << 20;

/// A datagram with valid checksums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub hop_limit: u8,
    /// Fields of the IP header that a router leaves unchanged: traffic class, flow label or identification, fragment.
    pub header: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Datagram {
    /// Reads a packet from its IP header on. Returns `None` if it is no UDP datagram, and an error if its length or one
    /// of its checksums is wrong.
    pub fn read(packet: &[u8]) -> Result<Option<Datagram>> {
        let shape = match packet.first().map(|first| first >> 4) {
            Some(4) if packet.len() >= 28 && packet[9] == UDP => (20, 8, 12..16, 16..20, [1..2, 4..8]),
            Some(6) if packet.len() >= 48 && packet[6] == UDP => (40, 7, 8..24, 24..40, [0..4, 6..7]),
            _ => return Ok(None),
        };
        let (length, hop_limit, source, destination, unchanged) = shape;
        let (ipv6, transport) = (length == 40, &packet[length..]);
        let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        ensure!(ipv6 || packet[0] == 0x45, "options: {packet:02x?}");
        ensure!(ipv6 || fold(sum(&packet[..20])) == 0xffff, "header checksum: {packet:02x?}");
        let declared = if ipv6 { length + usize::from(word(4)) } else { usize::from(word(2)) };
        let of_datagram = length + usize::from(word(length + 4));
        ensure!(declared == packet.len() && of_datagram == declared, "length: {packet:02x?}");
        let (source, destination) = (&packet[source], &packet[destination]);
        let summed = transport_sum(source, destination, UDP, transport);
        ensure!(word(length + 6) != 0 && summed == 0xffff, "checksum of the datagram: {packet:02x?}");
        Ok(Some(Datagram {
            source: SocketAddr::new(address(source)?, word(length)),
            destination: SocketAddr::new(address(destination)?, word(length + 2)),
            hop_limit: packet[hop_limit],
            header: unchanged.into_iter().flat_map(|range| packet[range].to_vec()).collect(),
            payload: transport[8..].to_vec(),
        }))
    }
}

fn address(octets: &[u8]) -> Result<IpAddr> {
    Ok(match octets.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(octets)?).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(octets)?).into(),
    })
}

/// An open capture, of both directions.
#[derive(Debug)]
pub struct Capture(Socket);

impl Capture {
    pub fn open(namespace: &Namespace, interface: &str) -> Result<Capture> {
        let open = || {
            // Packets without a link-layer header, as in tunnels. Without a protocol, none of other interfaces.
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
            socket.bind(&link_address(interface, ALL_PROTOCOLS)?)?;
            socket.set_nonblocking(true)?;
            Ok(Capture(socket))
        };
        let opened: Result<Capture> = namespace.within(open);
        opened.with_context(|| format!("a capture on {interface}"))
    }

    /// Returns the datagrams from or to a port since the last call, in order of capture.
    pub fn datagrams(&self, port: u16) -> Result<Vec<Datagram>> {
        let mut all = Vec::new();
        for packet in self.packets()? {
            all.extend(Datagram::read(&packet)?);
        }
        all.retain(|one| [one.source.port(), one.destination.port()].contains(&port));
        Ok(all)
    }

    /// Returns the packets since the last call from their IP header on, in order of capture. Their checksums may be left to
    /// the interface.
    pub fn packets(&self) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        let mut buffer = vec![MaybeUninit::uninit(); 1 << 16];
        loop {
            match self.0.recv(&mut buffer) {
                Ok(length) => {
                    // SAFETY: the kernel has written this many bytes.
                    let packet = unsafe { buffer[..length].assume_init_ref() };
                    all.push(packet.to_vec());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(all),
                Err(error) => bail!("the capture failed: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Packet;

    fn packet(source: &str, destination: &str) -> Vec<u8> {
        let (source, destination) = (source.parse().expect("one"), destination.parse().expect("another"));
        let packet = Packet { payload: vec![1, 2, 3], ..Packet::from_host(source, destination, UDP, 2) };
        packet.frame().split_off(14)
    }

    #[test]
    fn datagrams_of_both_families_are_read() {
        for (source, destination) in
            [("192.0.2.1:7", "198.51.100.1:8"), ("[2001:db8::1]:7", "[2001:db8::2]:8")]
        {
            let read = Datagram::read(&packet(source, destination)).expect("valid").expect("a datagram");
            assert_eq!(
                (read.source.to_string(), read.destination.to_string()),
                (source.into(), destination.into())
            );
            assert_eq!((read.hop_limit, &read.payload[..]), (64, &[1, 2, 3][..]));
        }
    }

    #[test]
    fn each_changed_byte_is_seen() {
        for (source, destination) in
            [("192.0.2.1:7", "198.51.100.1:8"), ("[2001:db8::1]:7", "[2001:db8::2]:8")]
        {
            let whole = packet(source, destination);
            let read = Datagram::read(&whole).expect("valid");
            for at in 0..whole.len() {
                let mut changed = whole.clone();
                changed[at] ^= 0x20;
                assert!(!matches!(Datagram::read(&changed), Ok(other) if other == read), "byte {at}");
            }
        }
    }
}
