//! Target: router advertisements of IPv6.

use gateway_common::checksum::{fold, sum};
use gateway_core::router_advertisement::{TYPE, parse};

/// Reads the bytes as a packet, and as the options of a valid one. Checks that the latter keeps its lifetime, and shows no
/// more prefixes than there is room for.
pub fn router_advertisement(data: &[u8]) {
    let _ = parse(data);
    let options = &data[..data.len().min(1400)];
    if let Some(heard) = parse(&packet(options)) {
        assert_eq!(heard.lifetime, 1800);
        assert!(heard.prefixes.len() <= options.len() / 32, "{heard:?}");
        assert!(heard.prefixes.iter().all(|prefix| prefix.addr() == prefix.network()), "{heard:?}");
    }
}

/// Returns an advertisement with these options.
fn packet(options: &[u8]) -> Vec<u8> {
    let mut message = vec![TYPE, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    message.extend(options);
    let length = u16::try_from(message.len()).expect("a short message");
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([58, 255, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x66]);
    packet.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let pseudo = [&packet[8..], &u32::from(length).to_be_bytes(), &[0, 0, 0, 58]].concat();
    let checksum = !fold(u32::from(fold(sum(&pseudo))) + u32::from(fold(sum(&message))));
    message[2..4].copy_from_slice(&checksum.to_ne_bytes());
    packet.extend(message);
    packet
}
