//! Frames of the benches: small UDP packets, assembled byte by byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub type Mac = [u8; 6];

/// Offset of the low byte of the source port in an IPv4 frame.
pub const SOURCE_PORT_LOW: i16 = 35;
/// Offset of the low byte of the destination address in an IPv4 frame.
pub const DESTINATION_LOW: i16 = 33;
/// Offset of the low byte of the identification in an IPv4 frame of this module, and its value.
pub const IDENTIFICATION_LOW: (i16, u8) = (19, 0xff);
/// Offset of the source address in an IPv4 frame.
pub const SOURCE_ADDRESS: i16 = 26;

const PAYLOAD: usize = 22;

/// Headers of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    pub to: Mac,
    pub from: Mac,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
}

impl Udp {
    /// Returns the frame if both addresses are of one family. With IPv4 it has 64 bytes and no UDP checksum.
    pub fn frame(&self) -> Option<Vec<u8>> {
        let mut frame = [self.to, self.from].concat();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend([0x08, 0x00]);
                frame.extend(header4(source, destination));
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd]);
                frame.extend(header6(source, destination));
            }
            _ => return None,
        }
        frame.extend(self.source_port.to_be_bytes());
        frame.extend(self.destination_port.to_be_bytes());
        frame.extend([0, 8 + PAYLOAD as u8, 0, 0]);
        frame.extend([0; PAYLOAD]);
        Some(frame)
    }
}

fn header4(source: Ipv4Addr, destination: Ipv4Addr) -> [u8; 20] {
    let mut header = [0u8; 20];
    header[0] = 0x45;
    header[3] = 28 + PAYLOAD as u8;
    header[5] = IDENTIFICATION_LOW.1;
    header[8] = 64;
    header[9] = 17;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn header6(source: Ipv6Addr, destination: Ipv6Addr) -> [u8; 40] {
    let mut header = [0u8; 40];
    header[0] = 0x60;
    header[5] = 8 + PAYLOAD as u8;
    header[6] = 17;
    header[7] = 64;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
    header
}
