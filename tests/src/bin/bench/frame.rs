//! Frames of the benches: small UDP packets, assembled byte by byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) type Mac = [u8; 6];

pub(crate) const SOURCE_MAC: i16 = 6;
/// Offsets in an IPv4 frame.
pub(crate) const IDENTIFICATION: i16 = 18;
pub(crate) const SOURCE: i16 = 26;
pub(crate) const DESTINATION: i16 = 30;
pub(crate) const SOURCE_PORT: i16 = 34;
pub(crate) const DESTINATION_PORT: i16 = 36;
pub(crate) const PAYLOAD: i16 = 42;
/// Offsets in an IPv6 frame.
pub(crate) const SOURCE6: i16 = 22;
pub(crate) const DESTINATION6: i16 = 38;
pub(crate) const SOURCE_PORT6: i16 = 54;
pub(crate) const PAYLOAD6: i16 = 62;
/// Identification of an IPv4 frame of this module.
pub(crate) const IDENTIFICATION_VALUE: u8 = 0xff;
/// First bytes of the payload of an IPv6 frame of this module.
pub(crate) const IPV6_PAYLOAD: [u8; 4] = [0, 0xff, 0xff, 0xff];

const PAYLOAD_LENGTH: usize = 22;

/// Headers of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Udp {
    pub to: Mac,
    pub from: Mac,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
}

impl Udp {
    /// Returns the frame if both addresses are of one family. With IPv4 it has 64 bytes and no UDP checksum.
    pub(crate) fn frame(&self) -> Option<Vec<u8>> {
        let mut frame = [self.to, self.from].concat();
        let mut payload = [0; PAYLOAD_LENGTH];
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend([0x08, 0x00]);
                frame.extend(header4(source, destination));
                frame.extend(self.header(0));
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd]);
                frame.extend(header6(source, destination));
                payload[..4].copy_from_slice(&IPV6_PAYLOAD);
                let pseudo = [&source.octets()[..], &destination.octets(), &[0, 17, 0, LENGTH]].concat();
                frame.extend(self.header(checksum(&[&pseudo[..], &self.header(0), &payload].concat())));
            }
            _ => return None,
        }
        frame.extend(payload);
        Some(frame)
    }

    fn header(&self, checksum: u16) -> [u8; 8] {
        let ([a, b], [c, d]) = (self.source_port.to_be_bytes(), self.destination_port.to_be_bytes());
        let [high, low] = checksum.to_be_bytes();
        [a, b, c, d, 0, LENGTH, high, low]
    }
}

/// Length of the UDP datagram.
const LENGTH: u8 = 8 + PAYLOAD_LENGTH as u8;

/// Checksum of RFC 1071 over whole words.
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn header4(source: Ipv4Addr, destination: Ipv4Addr) -> [u8; 20] {
    let mut header = [0u8; 20];
    header[0] = 0x45;
    header[3] = 20 + LENGTH;
    header[5] = IDENTIFICATION_VALUE;
    header[8] = 64;
    header[9] = 17;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

fn header6(source: Ipv6Addr, destination: Ipv6Addr) -> [u8; 40] {
    let mut header = [0u8; 40];
    header[0] = 0x60;
    header[5] = LENGTH;
    header[6] = 17;
    header[7] = 64;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
    header
}
