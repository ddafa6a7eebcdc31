//! Target: router advertisements and solicitations of IPv6.

use gateway_common::checksum::{fold, sum};
use gateway_core::router_advertisement::{
    MAX_DOMAINS, MAX_PREFIXES, MAX_RESOLVERS, RouterAdvertisement, TYPE, parse, solicitation,
};

/// Reads the bytes as a packet, and as the options of a valid advertisement and a valid solicitation. Checks that the
/// advertisement keeps its lifetime, shows no more prefixes than there is room for, and is the same when it is sent again.
pub fn router_advertisement(data: &[u8]) {
    let _ = (parse(data), solicitation::parse(data));
    let options = &data[..data.len().min(1400)];
    let _ = solicitation::parse(&packet(&[solicitation::TYPE, 0, 0, 0, 0, 0, 0, 0], options));
    let Some(heard) = parse(&packet(&[TYPE, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0], options)) else {
        return;
    };
    assert_eq!(heard.lifetime, 1800);
    assert!(heard.prefixes.len() <= options.len() / 32, "{heard:?}");
    assert!(heard.nets().all(|net| net.addr() == net.network()), "{heard:?}");
    let again = parse(&heard.packet()).expect("valid");
    if is_within_limits(&heard) {
        assert_eq!(again, heard);
    }
}

fn is_within_limits(heard: &RouterAdvertisement) -> bool {
    let resolvers: usize = heard.resolvers.iter().map(|group| group.addresses.len()).sum();
    let domains: usize = heard.domains.iter().map(|(_, domains)| domains.len()).sum();
    heard.prefixes.len() <= MAX_PREFIXES && resolvers <= MAX_RESOLVERS && domains <= MAX_DOMAINS
}

/// Returns a packet with these options behind the fixed part of its message.
fn packet(fixed: &[u8], options: &[u8]) -> Vec<u8> {
    let mut message = [fixed, options].concat();
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
