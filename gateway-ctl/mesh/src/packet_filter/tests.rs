//! Packets against rules of a map.

use proptest::prelude::*;

use super::*;
use crate::wire::{PortRange, Ports};

const OWN: [u8; 4] = [100, 64, 0, 2];
const PEER: [u8; 4] = [100, 64, 0, 3];
const NOW: Duration = Duration::from_secs(1000);

fn packet(from: [u8; 4], to: [u8; 4], protocol: u8, content: &[u8]) -> Vec<u8> {
    let head = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &from, &to, content].concat()
}

fn tcp(from: u16, to: u16, flags: u8) -> Vec<u8> {
    let mut content = [0; 20];
    content[..2].copy_from_slice(&from.to_be_bytes());
    content[2..4].copy_from_slice(&to.to_be_bytes());
    content[13] = flags;
    content.to_vec()
}

fn udp(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0; 4]].concat()
}

fn rule(source: &str, destination: &str, first: u16, last: u16, protocols: &[u8]) -> FilterRule {
    let to = PortRange { ip: destination.to_owned(), ports: Ports { first, last } };
    FilterRule { src_ips: vec![source.to_owned()], dst_ports: vec![to], protocols: protocols.to_vec() }
}

fn filter(rules: &[FilterRule]) -> PacketFilter {
    PacketFilter::new(
        rules.iter(),
        vec!["100.64.0.2/32".parse().unwrap(), "fd7a:115c:a1e0::2/128".parse().unwrap()],
    )
}

fn admits(filter: &PacketFilter, packet: &[u8]) -> bool {
    filter.admits(packet, &UdpFlows::default(), NOW)
}

#[test]
fn nothing_comes_in_without_a_rule() {
    let filter = filter(&[]);
    for content in [tcp(9, 80, SYN_FLAG), udp(9, 53)] {
        for protocol in [TCP, UDP, ICMP, 50] {
            let content = if protocol == TCP { tcp(9, 80, SYN_FLAG) } else { content.clone() };
            let content = if protocol == ICMP { vec![8; 8] } else { content };
            assert!(!admits(&filter, &packet(PEER, OWN, protocol, &content)), "protocol {protocol}");
        }
    }
}

const SYN_FLAG: u8 = 0x02;

#[test]
fn rules_have_sources_destinations_ports_and_protocols() {
    let filter = filter(&[
        rule("100.64.0.3", "100.64.0.2", 80, 81, &[]),
        rule("100.64.0.8-100.64.0.9", "*", 22, 22, &[TCP]),
        rule("cap:x", "*", 0, u16::MAX, &[]),
    ]);
    let syn = |from, port| packet(from, OWN, TCP, &tcp(9, port, SYN_FLAG));
    assert!(admits(&filter, &syn(PEER, 80)) && admits(&filter, &syn(PEER, 81)));
    assert!(!admits(&filter, &syn(PEER, 82)) && !admits(&filter, &syn([100, 64, 0, 4], 80)));
    assert!(admits(&filter, &syn([100, 64, 0, 9], 22)) && !admits(&filter, &syn([100, 64, 0, 10], 22)));
    assert!(admits(&filter, &packet(PEER, OWN, UDP, &udp(9, 80))));
    assert!(!admits(&filter, &packet([100, 64, 0, 9], OWN, UDP, &udp(9, 22))));
    assert!(
        admits(&filter, &packet(PEER, OWN, ICMP, &[8, 0, 0, 0, 0, 0, 0, 0])),
        "a rule without protocols has ICMP"
    );
}

#[test]
fn no_rule_leads_to_another_destination() {
    let filter = filter(&[rule("*", "*", 0, u16::MAX, &[])]);
    assert!(admits(&filter, &packet(PEER, OWN, TCP, &tcp(9, 80, SYN_FLAG))));
    assert!(!admits(&filter, &packet(PEER, [192, 168, 1, 1], TCP, &tcp(9, 80, SYN_FLAG))));
}

#[test]
fn replies_come_in_without_a_rule() {
    let filter = filter(&[]);
    assert!(admits(&filter, &packet(PEER, OWN, TCP, &tcp(80, 9, 0x12))), "SYN and ACK");
    assert!(admits(&filter, &packet(PEER, OWN, ICMP, &[0; 8])), "echo reply");
    let mut flows = UdpFlows::default();
    flows.sent(&packet(OWN, PEER, UDP, &udp(9, 53)), NOW);
    let reply = packet(PEER, OWN, UDP, &udp(53, 9));
    assert!(filter.admits(&reply, &flows, NOW));
    assert!(!filter.admits(&packet(PEER, OWN, UDP, &udp(54, 9)), &flows, NOW));
    assert!(!filter.admits(&reply, &flows, NOW + FLOW_TIME), "the flow has ended");
}

#[test]
fn flows_are_limited() {
    let mut flows = UdpFlows::default();
    for port in 0..u16::try_from(2 * MOST_FLOWS).unwrap() {
        flows.sent(&packet(OWN, PEER, UDP, &udp(port, 53)), NOW);
    }
    assert!(flows.sent.len() <= MOST_FLOWS);
}

#[test]
fn ipv6_is_filtered_as_well() {
    let filter = filter(&[rule("fd7a:115c:a1e0::/48", "fd7a:115c:a1e0::2", 80, 80, &[])]);
    let packet = |port: u16| {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 20, TCP, 64];
        for last in [3, 2] {
            bytes.extend([0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        bytes.extend(tcp(9, port, SYN_FLAG));
        bytes
    };
    assert!(admits(&filter, &packet(80)));
    assert!(!admits(&filter, &packet(81)));
}

proptest! {
    #[test]
    fn no_bytes_come_in_without_a_rule_unless_they_begin_nothing(bytes: Vec<u8>) {
        if admits(&filter(&[]), &bytes) {
            let header = Header::parse(&bytes).expect("it was read");
            prop_assert!(matches!(header.kind, Kind::LaterFragment | Kind::TcpWithin | Kind::IcmpReply));
        }
    }

    #[test]
    fn cut_packets_do_not_come_in(length in 0..40_usize) {
        let whole = packet(PEER, OWN, TCP, &tcp(9, 80, SYN_FLAG));
        let all = filter(&[rule("*", "*", 0, u16::MAX, &[])]);
        prop_assert_eq!(admits(&all, &whole[..length.min(whole.len())]), length >= whole.len());
    }

    #[test]
    fn no_text_of_a_range_makes_it_fail(text: String) {
        AddressRange::parse(&text);
    }
}
