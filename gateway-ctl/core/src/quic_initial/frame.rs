//! Frame of a single datagram, from the headers of the frame that carried it.

use gateway_common::checksum::{fold, sum};
use gateway_common::classify::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ, ETHERTYPE_VLAN, UDP};

/// Length of both MAC addresses.
const ADDRESSES: usize = 12;
const UDP_HEADER: usize = 8;

/// Returns the frame with these headers, which end with that of UDP, and this payload. Lengths and checksums are those of the
/// new frame, because the kernel may have merged datagrams, or left checksums to the interface. `vlan` is the id of the
/// outermost tag, which the kernel may have stripped. `None` if the headers are not those of such a frame.
pub fn frame(headers: &[u8], vlan: u16, datagram: &[u8]) -> Option<Vec<u8>> {
    let mut frame = headers.to_vec();
    let mut at = ADDRESSES;
    if vlan != 0 && !is_tag(word(&frame, at)?) {
        frame.splice(at..at, [ETHERTYPE_VLAN.to_be_bytes(), vlan.to_be_bytes()].concat());
    }
    let mut ethertype = word(&frame, at)?;
    while is_tag(ethertype) {
        at += 4;
        ethertype = word(&frame, at)?;
    }
    let network = at + 2;
    let transport = frame.len().checked_sub(UDP_HEADER).filter(|transport| *transport > network)?;
    let udp_length = u16::try_from(UDP_HEADER + datagram.len()).ok()?;
    let of_network = u16::try_from(frame.len() - network + datagram.len()).ok()?;
    let addresses = match ethertype {
        ETHERTYPE_IPV4 => {
            let header = frame.get_mut(network..transport)?;
            header.get_mut(2..4)?.copy_from_slice(&of_network.to_be_bytes());
            header.get_mut(10..12)?.fill(0);
            let check = !fold(sum(header));
            header.get_mut(10..12)?.copy_from_slice(&check.to_ne_bytes());
            header.get(12..20)?.to_vec()
        }
        ETHERTYPE_IPV6 => {
            let header = frame.get_mut(network..transport)?;
            // The length of what follows the fixed header.
            let length = of_network.checked_sub(40)?;
            header.get_mut(4..6)?.copy_from_slice(&length.to_be_bytes());
            header.get(8..40)?.to_vec()
        }
        _ => return None,
    };
    frame[transport + 4..transport + 6].copy_from_slice(&udp_length.to_be_bytes());
    frame[transport + 6..transport + 8].fill(0);
    frame.extend_from_slice(datagram);
    let pseudo = [&addresses[..], &[0, UDP], &udp_length.to_be_bytes()].concat();
    // Zero means that a datagram has no checksum (RFC 768).
    let check = match !fold(sum(&pseudo) + sum(&frame[transport..])) {
        0 => 0xffff,
        check => check,
    };
    frame[transport + 6..transport + 8].copy_from_slice(&check.to_ne_bytes());
    Some(frame)
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use gateway_common::classify::{Classified, classify};
    use proptest::prelude::*;

    use super::*;
    use crate::leak_check::frame::{Link, Transport, frame as probe};

    fn whole(ipv6: bool, vlan: u16, payload: &[u8]) -> Vec<u8> {
        let (from, to) = match ipv6 {
            true => ("[fd00::7]:40000", "[2001:db8::1]:443"),
            false => ("192.0.2.7:40000", "198.51.100.1:443"),
        };
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let link = Link { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan };
        probe(link, address(from), address(to), &Transport::Udp(payload.to_vec()))
    }

    #[test]
    fn datagram_of_a_merged_frame_gets_a_frame_of_its_own() {
        for ipv6 in [false, true] {
            for vlan in [0, 7] {
                let merged = whole(ipv6, vlan, &[9; 3000]);
                let expected = whole(ipv6, vlan, &[5; 1201]);
                let headers = &merged[..merged.len() - 3000];
                assert_eq!(frame(headers, vlan, &[5; 1201]), Some(expected.clone()), "{ipv6} {vlan}");
                let stripped = whole(ipv6, 0, &[9; 3000]);
                let headers = &stripped[..stripped.len() - 3000];
                assert_eq!(frame(headers, vlan, &[5; 1201]), Some(expected), "{ipv6} {vlan}, stripped");
            }
        }
    }

    proptest! {
        #[test]
        fn any_headers_are_survived(
            headers in prop::collection::vec(any::<u8>(), 0..90),
            vlan in any::<u16>(),
            datagram in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            if let Some(frame) = frame(&headers, vlan, &datagram) {
                prop_assert!(frame.ends_with(&datagram));
                if let Ok(Classified::Ip(packet)) = classify(&frame[..], 1) {
                    prop_assert!(packet.length as usize == frame.len());
                }
            }
        }
    }
}
