//! Sends keepalive probes to LAN hosts on TCP connections that cannot continue, so that idle clients notice.
//!
//! A segment outside the window is answered with an acknowledgement (RFC 9293, section 3.10.7.4). The ACK goes
//! through the gateway like all others of the connection. The gateway answers it with a reset, which reaches the
//! host. The segment itself has no effect on a host.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;

use gateway_common::classify::TCP;
use gateway_common::wire::{Address, FlowKey};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, sendto, socket};

const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ACK: u8 = 0x10;
const HOPS: u8 = 64;

/// Sends a segment on each of the TCP flows that appears to come from its remote end. Returns the number sent.
///
/// The segment goes to the MAC address of the flow's source. It bypasses routing and conntrack, which would take it
/// for another connection.
pub(crate) fn probe_client(flows: &[FlowKey], sequence: u32) -> io::Result<usize> {
    let interfaces: BTreeMap<u32, LinkAddr> = nix::ifaddrs::getifaddrs()?
        .filter_map(|interface| interface.address?.as_link_addr().copied())
        .filter_map(|link| Some((u32::try_from(link.ifindex()).ok()?, link)))
        .collect();
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    let mut sent = 0;
    for flow in flows.iter().filter(|flow| flow.protocol == TCP) {
        let Some(link) = interfaces.get(&flow.interface) else { continue };
        let Some(frame) = link.addr().map(|own| frame(flow, own, sequence)) else { continue };
        // A host that does not receive it notices with its own next segment.
        sent += usize::from(sendto(socket.as_raw_fd(), &frame, link, MsgFlags::MSG_DONTWAIT).is_ok());
    }
    Ok(sent)
}

/// Returns an out-of-window acknowledgement from the flow's destination to its source.
fn frame(flow: &FlowKey, own: [u8; 6], sequence: u32) -> Vec<u8> {
    let ipv6 = !flow.source.is_mapped();
    let mut frame = Vec::with_capacity(80);
    frame.extend(flow.mac.octets());
    frame.extend(own);
    if flow.vlan != 0 {
        frame.extend(ETHERTYPE_VLAN.to_be_bytes());
        frame.extend(flow.vlan.to_be_bytes());
    }
    frame.extend(if ipv6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 }.to_be_bytes());
    let (from, to) = (bytes(&flow.destination, ipv6), bytes(&flow.source, ipv6));
    let mut segment = Vec::with_capacity(20);
    segment.extend(flow.destination_port.to_be_bytes());
    segment.extend(flow.source_port.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    // Twenty bytes of header, zero window, checksum to come, no urgent pointer.
    segment.extend([0x50, ACK, 0, 0, 0, 0, 0, 0]);
    let pseudo = [&from[..], &to[..], &[0, TCP, 0, 20]].concat();
    let sum = checksum(&[&pseudo, &segment]);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    if ipv6 {
        frame.extend([0x60, 0, 0, 0, 0, 20, TCP, HOPS]);
        frame.extend(from);
        frame.extend(to);
    } else {
        let mut header = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, HOPS, TCP, 0, 0];
        header.extend(from);
        header.extend(to);
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend(header);
    }
    frame.extend(segment);
    frame
}

fn bytes(address: &Address, ipv6: bool) -> Vec<u8> {
    let octets = address.octets();
    octets[if ipv6 { 0 } else { 12 }..].to_vec()
}

/// Returns the internet checksum (RFC 1071) of parts of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::Mac;

    use super::*;

    fn flow(source: Address, destination: Address, vlan: u16) -> FlowKey {
        FlowKey {
            source,
            destination,
            interface: 1,
            source_port: 40_000,
            destination_port: 443,
            mac: Mac::new([2, 3, 4, 5, 6, 7]),
            vlan,
            protocol: TCP,
            fragment: 0,
            _pad: [0; 2],
        }
    }

    /// Reports whether a whole header or segment, checksum included, sums up to zero.
    fn sums_up(parts: &[&[u8]]) -> bool {
        checksum(parts) == 0
    }

    #[test]
    fn the_probe_has_the_source_of_the_remote_end() {
        let frame = frame(&flow(Address::v4([10, 0, 0, 2]), Address::v4([198, 18, 0, 1]), 0), [9; 6], 77);
        assert_eq!(&frame[..14], [2, 3, 4, 5, 6, 7, 9, 9, 9, 9, 9, 9, 8, 0]);
        assert_eq!(&frame[26..34], [198, 18, 0, 1, 10, 0, 0, 2]);
        assert_eq!(&frame[34..38], [1, 187, 156, 64]);
        assert!(sums_up(&[&frame[14..34]]));
        assert!(sums_up(&[&frame[26..34], &[0, 6, 0, 20], &frame[34..]]));
    }

    #[test]
    fn the_probe_has_the_vlan_and_family_of_the_flow() {
        let (source, destination) = (Address::v6([0xfd; 16]), Address::v6([0x20; 16]));
        let frame = frame(&flow(source, destination, 7), [9; 6], 77);
        assert_eq!(&frame[12..18], [0x81, 0, 0, 7, 0x86, 0xdd]);
        assert_eq!(frame.len(), 18 + 40 + 20);
        assert!(sums_up(&[&frame[26..58], &[0, 6, 0, 20], &frame[58..]]));
    }
}
