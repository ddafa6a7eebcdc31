use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;

fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 1], [198, 51, 100, 1], 64)
        .udp(ports.0, ports.1);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("a short payload");
    frame
}

fn summary(frame: &[u8]) -> Summary {
    Dissector::default().summarize(LinkType::Ethernet, frame)
}

#[test]
fn query_of_dns_shows_its_name() {
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";
    let shown = summary(&udp((4000, 53), query));
    assert_eq!((shown.protocol, &shown.info[..]), (Protocol::Dns, "query A www.example.com."));
    assert_eq!((&shown.source[..], shown.destination_port), ("192.0.2.1", Some(53)));
}

#[test]
fn vlan_tag_and_inner_packet_of_a_tunnel_are_shown() {
    let inner = udp((1, 2), b"payload");
    let mut tagged = udp((5000, VXLAN.0), &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat());
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    let shown = summary(&tagged);
    assert_eq!((shown.protocol, shown.vlan, shown.source_port), (Protocol::Udp, Some(7), Some(1)));
}

#[test]
fn wireguard_and_stun_are_known_at_any_port() {
    let initiation = [&[1, 0, 0, 0, 7, 0, 0, 0][..], &[9; 140]].concat();
    let shown = summary(&udp((1, 9999), &initiation));
    assert_eq!(shown.info, "handshake initiation, sender 0x00000007");
    let binding = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[5; 12]].concat();
    assert_eq!(summary(&udp((1, 9999), &binding)).info, "binding request");
}

#[test]
fn later_packets_of_a_connection_keep_its_protocol() {
    let mut dissector = Dissector::default();
    let long = [&[0xc3, 0, 0, 0, 1, 0, 0][..], &[7; 100]].concat();
    let short = [&[0x41][..], &[7; 60]].concat();
    let frame = udp((1, 4443), &short);
    assert_eq!(dissector.summarize(LinkType::Ethernet, &frame).protocol, Protocol::Udp);
    dissector.summarize(LinkType::Ethernet, &udp((1, 4443), &long));
    assert_eq!(dissector.summarize(LinkType::Ethernet, &frame).protocol, Protocol::Quic);
}

proptest! {
    #[test]
    fn any_bytes_give_a_bounded_summary(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for link in [LinkType::Ethernet, LinkType::Raw, LinkType::LinuxSll, LinkType::Ppp, LinkType::Null] {
            let shown = Dissector::default().summarize(link, &bytes);
            prop_assert!(shown.info.len() <= text::MAX_INFO_BYTES);
            prop_assert!(!shown.info.chars().any(char::is_control));
        }
    }
}
