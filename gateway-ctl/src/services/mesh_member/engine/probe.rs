//! Echo requests to peers, which prove that a peer answers. A peer that drops them proves it too: WireGuard acknowledges each
//! packet within ten seconds, if nothing else goes back.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::checksum::{fold, sum};
use ipnet::IpNet;

const ECHO: [u8; 8] = [8, 0, 0, 0, 0x67, 0x77, 0, 0];
const ECHO6: [u8; 8] = [128, 0, 0, 0, 0x67, 0x77, 0, 0];
const HOP_LIMIT: u8 = 64;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
/// Length of a request, so that packets have the multiple of 16 bytes that WireGuard pads to.
const BODY: usize = 28;

/// Returns an echo request from an own address to one of the peer, in a family that both have.
pub(super) fn echo_request(own: &BTreeSet<IpAddr>, peer: &[IpNet]) -> Option<Vec<u8>> {
    let pairs = own.iter().flat_map(|from| peer.iter().map(move |to| (*from, to.addr())));
    pairs.into_iter().find_map(|pair| match pair {
        (IpAddr::V4(from), IpAddr::V4(to)) => Some(request4(from, to)),
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(request6(from, to)),
        _ => None,
    })
}

fn request4(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0; 20 + BODY];
    let length = u16::try_from(packet.len()).unwrap_or_default().to_be_bytes();
    packet[..2].copy_from_slice(&[0x45, 0]);
    packet[2..4].copy_from_slice(&length);
    packet[8..10].copy_from_slice(&[HOP_LIMIT, ICMP]);
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    let checksum = !fold(sum(&packet[..20]));
    packet[10..12].copy_from_slice(&checksum.to_ne_bytes());
    packet[20..28].copy_from_slice(&ECHO);
    let checksum = !fold(sum(&packet[20..]));
    packet[22..24].copy_from_slice(&checksum.to_ne_bytes());
    packet
}

fn request6(from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut packet = vec![0; 40 + BODY - 4];
    let length = u16::try_from(packet.len() - 40).unwrap_or_default();
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet[6..8].copy_from_slice(&[ICMP6, HOP_LIMIT]);
    packet[8..24].copy_from_slice(&from.octets());
    packet[24..40].copy_from_slice(&to.octets());
    packet[40..48].copy_from_slice(&ECHO6);
    // The pseudo-header of RFC 8200, section 8.1.
    let pseudo = [0, 0, length.to_be_bytes()[0], length.to_be_bytes()[1], 0, 0, 0, ICMP6];
    let parts = [sum(&packet[8..40]), sum(&pseudo), sum(&packet[40..])];
    let checksum = !fold(parts.iter().sum());
    packet[42..44].copy_from_slice(&checksum.to_ne_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> BTreeSet<IpAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    #[test]
    fn requests_have_valid_checksums_and_the_addresses_of_both() {
        let own = addresses(&["100.64.0.1", "fd7a:115c:a1e0::1"]);
        let four = echo_request(&own, &["100.64.0.2/32".parse().unwrap()]).expect("a request");
        assert_eq!((fold(sum(&four[..20])), fold(sum(&four[20..]))), (0xffff, 0xffff));
        assert_eq!((&four[12..16], &four[16..20], four[20]), (&[100, 64, 0, 1][..], &[100, 64, 0, 2][..], 8));
        assert_eq!((four.len() % 16, usize::from(four[3])), (0, four.len()));
        let six = echo_request(&own, &["fd7a:115c:a1e0::2/128".parse().unwrap()]).expect("a request");
        let pseudo = [0, 0, 0, u8::try_from(six.len() - 40).unwrap(), 0, 0, 0, ICMP6];
        let whole = sum(&six[8..]) + sum(&pseudo);
        assert_eq!((fold(whole), six[40], six.len() % 16), (0xffff, 128, 0));
        assert_eq!(echo_request(&addresses(&["100.64.0.1"]), &["fd7a::2/128".parse().unwrap()]), None);
    }
}
