//! Files of captured packets, as frames that a host of the LAN sends.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use gateway_common::classify::{ETHERTYPE_IPV4 as IPV4, ETHERTYPE_IPV6 as IPV6};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

/// Addresses that the client of each flow gets.
pub(super) const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 7);
pub(super) const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 7);
/// Type of the first block of a pcapng file.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 0xff, 2, 0, 0, 0, 0, 1];

/// Returns the captures that may be beside the repository: they have another licence.
pub(crate) fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/pcaps");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_capture =
        |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == "pcap" || suffix == "pcapng");
    let mut files: Vec<PathBuf> = entries.filter(is_capture).collect();
    files.sort();
    files
}

/// Returns the IP packets of a file. Records behind a damaged one are left out.
pub(super) fn packets(path: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(path).expect("a capture");
    let mut found = Vec::new();
    let mut add = |link: DataLink, data: &[u8]| found.extend(ip_packet(link, data).map(<[u8]>::to_vec));
    if file.starts_with(&PCAPNG) {
        let mut reader = PcapNgReader::new(&file[..]).expect("a capture");
        while let Some(Ok(block)) = reader.next_block() {
            // Interfaces come before their packets.
            if let Block::EnhancedPacket(packet) = block {
                let (number, data) = (packet.interface_id as usize, packet.data.into_owned());
                let link = reader.interfaces().get(number).map(|interface| interface.linktype);
                add(link.expect("an interface"), &data);
            }
        }
    } else {
        let mut reader = PcapReader::new(&file[..]).expect("a capture");
        let link = reader.header().datalink;
        loop {
            match reader.next_packet() {
                Some(Ok(packet)) => add(link, &packet.data),
                Some(Err(
                    PcapError::IncompleteBuffer | PcapError::InvalidField(_) | PcapError::IoError(_),
                ))
                | None => break,
                Some(Err(error)) => panic!("{}: {error}", path.display()),
            }
        }
    }
    found
}

/// Returns the packet of a frame without the header of its link.
pub(super) fn ip_packet(link: DataLink, frame: &[u8]) -> Option<&[u8]> {
    let (offset, length) = match link {
        DataLink::ETHERNET => (Some(12), 14),
        DataLink::LINUX_SLL => (Some(14), 16),
        DataLink::RAW => (None, 0),
        DataLink::PPP => (None, 2 + 2 * usize::from(frame.starts_with(&[0xff, 3]))),
        DataLink::NULL => (None, 4),
        _ => return None,
    };
    let packet = frame.get(length..)?;
    let version = packet.first()? >> 4;
    let is_ip = match offset {
        Some(at) => matches!(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]), IPV4 | IPV6),
        None => matches!(version, 4 | 6),
    };
    is_ip.then_some(packet)
}

/// Returns source and destination of a packet.
pub(super) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let four = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let six = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
    match packet.first()? >> 4 {
        4 => Some((four(12)?, four(16)?)),
        6 => Some((six(8)?, six(24)?)),
        _ => None,
    }
}

/// Returns the frame of a packet whose sender is the client.
pub(super) fn frame_of_client(packet: &[u8]) -> Vec<u8> {
    let is_ipv6 = packet[0] >> 4 == 6;
    let kind = if is_ipv6 { IPV6 } else { IPV4 };
    let mut frame = [&MACS[..], &kind.to_be_bytes(), packet].concat();
    match is_ipv6 {
        true => frame[22..38].copy_from_slice(&CLIENT_V6.octets()),
        false => frame[26..30].copy_from_slice(&CLIENT_V4.octets()),
    }
    frame
}
