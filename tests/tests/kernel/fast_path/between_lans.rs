//! Fast path between two networks of the LAN: no translation, and each direction is a flow of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use gateway_common::verdict::Reason;
use gateway_common::wire::{FastCounter, FastLink, LocalKind, LocalValue, XdpCounter, XdpLink, XdpSide};
use gateway_core::plan::Attachment;
use gateway_tests::bpf_run::admit_all;
use gateway_tests::netns;

use super::packet::{Packet, Shown, TCP, UDP, mac};
use super::testbed::{MARKER, Side, Testbed};
use super::{assert_same, show};

const SECOND_MAC: [u8; 6] = [2, 0, 0, 0x79, 0, 1];
const SECOND_MTU: u16 = 1400;

/// A gateway with a second network of the LAN, whose hosts are .2 to .9 as in the first.
struct Segments {
    testbed: Testbed,
    second: Side,
    index: u32,
}

impl Segments {
    fn build() -> Segments {
        let mut testbed = Testbed::build();
        let internet = testbed.namespaces[1].name().to_owned();
        testbed
            .gateway
            .ip(&format!(
                "link add lan1 address 02:00:00:79:00:01 mtu {SECOND_MTU} type veth peer name net1 netns {internet}\n\
                 address add 192.168.78.1/24 dev lan1\naddress add fd78::1/64 dev lan1 nodad\nlink set lan1 up"
            ))
            .expect("a second LAN");
        testbed.namespaces[1].ip("link set net1 up").expect("a second LAN");
        for last in 2..10 {
            let mac = format!("02:00:00:00:01:{last:02x}");
            testbed
                .gateway
                .ip(&format!(
                    "neigh replace 192.168.78.{last} lladdr {mac} dev lan1 nud permanent\n\
                     neigh replace fd78::{last} lladdr {mac} dev lan1 nud permanent"
                ))
                .expect("neighbours");
        }
        testbed
            .gateway
            .nft("table inet test {\n chain forward {\n iifname lan0 oifname lan1 accept\n iifname lan1 oifname lan0 accept\n}\n}\n")
            .expect("rules");
        let second = Side::open(&testbed.namespaces[1], "net1");
        let index = testbed.gateway.within(|| nix::net::if_::if_nametoindex("lan1").expect("an index"));
        admit_all(&mut testbed.plan, index);
        for net in ["192.168.77.0/24", "192.168.78.0/24", "fd77::/64", "fd78::/64"] {
            testbed.plan.locals.insert(net.parse().expect("a network"), LocalValue::new(LocalKind::Lan));
        }
        testbed.swap();
        let Testbed { gateway, programs, .. } = &mut testbed;
        let attachments = [
            ("lan0".to_owned(), Attachment::Ingress),
            ("lan1".to_owned(), Attachment::Ingress),
            ("wan0".to_owned(), Attachment::Guard),
        ];
        let attached = gateway.within(|| programs.attach(&attachments.into()));
        assert!(attached.failed.is_empty(), "{:?}", attached.failed);
        Segments { testbed, second, index }
    }

    fn turn_on(&self) {
        let mut links: BTreeMap<u32, FastLink> = self.testbed.links();
        links.insert(self.index, FastLink { mtu: SECOND_MTU, ethernet: 1 });
        self.testbed.fast_path().set(Some(&links)).expect("on");
    }

    fn use_xdp(&mut self) {
        self.testbed.use_xdp();
        let peer =
            gateway_tests::xdp_peer::XdpPeer::attach(&self.testbed.namespaces[1], "net1").expect("a peer");
        self.testbed.keep(peer);
        let mut links = self.testbed.xdp_links();
        let mac = gateway_common::wire::Mac::new(SECOND_MAC);
        let link = XdpLink { mac, side: XdpSide::Lan as u16, ..XdpLink::default() };
        links.insert(self.index, link);
        let (xdp, index) = (self.testbed.programs.xdp.clone(), self.index);
        let ports = links.keys().copied().collect();
        self.testbed.gateway.within(|| {
            xdp.attach(index).expect("attached");
            xdp.set(&links, &ports).expect("set");
        });
    }

    /// Returns the frames that left to the first and to the second network since the last call.
    fn received(&mut self) -> Vec<Shown> {
        self.testbed.markers += 1;
        self.testbed.renew();
        let port = self.testbed.markers;
        let ends = ["192.168.77.9", "192.168.78.9"].map(|text| text.parse::<IpAddr>().expect("an address"));
        let (source, destination) = (SocketAddr::new(ends[0], port), SocketAddr::new(ends[1], MARKER));
        let there = Packet::from_host(source, destination, UDP, 9);
        self.testbed.send_from_lan(&there);
        let bytes = port.to_be_bytes();
        let is_there = |frame: &[u8]| frame.get(34..38) == Some(&[bytes[0], bytes[1], 0, MARKER as u8][..]);
        let to_second = self.second.frames_until(is_there, SECOND_MAC);
        self.second.sender.send(&back(&there).frame()).expect("sent");
        let is_back = |frame: &[u8]| frame.get(34..38) == Some(&[0, MARKER as u8, bytes[0], bytes[1]][..]);
        let to_first = self.testbed.lan_side.frames_until(is_back, super::packet::LAN_MAC);
        [show(&to_second, false), show(&to_first, false)].concat()
    }

    /// Sends packets of a flow there and back, and returns all of them as they left.
    fn converse(&mut self, flow: &Packet) -> Vec<Shown> {
        let mut shown = Vec::new();
        for number in 0..10_u8 {
            let flags = if flow.protocol == TCP && number == 0 { 0x02 } else { 0x18 };
            let payload = vec![number; 3 * usize::from(number)];
            let packet = Packet { payload, identification: number.into(), tcp_flags: flags, ..flow.clone() };
            self.testbed.send_from_lan(&packet);
            let flags = if flags == 0x02 { 0x12 } else { 0x18 };
            self.second.sender.send(&Packet { tcp_flags: flags, ..back(&packet) }.frame()).expect("sent");
            shown.extend(self.received());
        }
        shown
    }

    fn counted(&self) -> [u64; 3] {
        let reasons = self.testbed.programs.reason_counters().expect("the counters");
        let lan = reasons.get(&Reason::ToLan).map_or(0, |counters| counters.packets);
        let fast = self.testbed.counted(FastCounter::Forwarded);
        [fast, self.testbed.counted_by_xdp(XdpCounter::Forwarded), lan]
    }
}

/// The reply of the host in the second network.
fn back(packet: &Packet) -> Packet {
    let last = match packet.destination.ip() {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    Packet {
        source: packet.destination,
        destination: packet.source,
        from: mac(last),
        to: SECOND_MAC,
        ..packet.clone()
    }
}

fn flows() -> Vec<Packet> {
    let mut flows = Vec::new();
    for (source, destination) in
        [("192.168.77.2:40000", "192.168.78.5:4433"), ("[fd77::2]:40000", "[fd78::5]:4433")]
    {
        for protocol in [UDP, TCP] {
            let (source, destination) =
                (source.parse().expect("an end"), destination.parse().expect("an end"));
            flows.push(Packet::from_host(source, destination, protocol, 2));
        }
    }
    flows
}

#[test]
fn packets_between_lans_leave_with_the_same_bytes() {
    netns::require_root().expect("root");
    let (mut on, mut off) = (Segments::build(), Segments::build());
    on.turn_on();
    for flow in flows() {
        let before = on.counted();
        let (with, without) = (on.converse(&flow), off.converse(&flow));
        assert_same(&with, &without, &flow);
        assert_eq!(with.len(), 20, "{flow:?}");
        let after = on.counted();
        assert!(after[0] >= before[0] + 14, "{before:?} {after:?}: {flow:?}");
        // Longer than the MTU of the second network, and at the end of its hops.
        for change in [
            Packet { payload: vec![1; usize::from(SECOND_MTU)], ..flow.clone() },
            Packet { hop_limit: 1, ..flow.clone() },
        ] {
            on.testbed.send_from_lan(&change);
            off.testbed.send_from_lan(&change);
            let (with, without) = (on.received(), off.received());
            assert_same(&with, &without, &change);
            assert_eq!(with.len(), 1, "the message of the gateway");
        }
    }
    assert_eq!(on.counted()[2], off.counted()[2], "the verdicts");
    assert_eq!(on.testbed.counted(FastCounter::Mismatched), 0);
}

#[test]
fn ends_of_connections_between_lans_end_both_entries() {
    netns::require_root().expect("root");
    let mut segments = Segments::build();
    segments.turn_on();
    let flow = flows().remove(1);
    segments.converse(&flow);
    let before = segments.counted()[0];
    segments.testbed.send_from_lan(&Packet { tcp_flags: 0x11, ..flow.clone() });
    for _ in 0..3 {
        segments.testbed.send_from_lan(&flow);
        segments.second.sender.send(&back(&flow).frame()).expect("sent");
    }
    assert_eq!(segments.received().len(), 7);
    assert_eq!(segments.counted()[0], before, "the IP stack got all of them");
}

#[test]
fn frames_between_lans_have_the_same_bytes_with_xdp() {
    netns::require_root().expect("root");
    let (mut on, mut off) = (Segments::build(), Segments::build());
    on.use_xdp();
    on.turn_on();
    for flow in flows() {
        let before = on.counted();
        let (with, without) = (on.converse(&flow), off.converse(&flow));
        assert_same(&with, &without, &flow);
        let after = on.counted();
        assert!(after[1] >= before[1] + 14, "{before:?} {after:?}: {flow:?}");
    }
    assert_eq!(on.counted()[2], off.counted()[2], "the verdicts");
}
