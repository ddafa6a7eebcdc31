//! Blocks of privacy classes and switches: what the compiled plan does with packets.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_common::classify::Classified;
use gateway_common::classify::{IpPacket, TCP, UDP};
use gateway_common::decide::decide;
use gateway_common::verdict::{Reason, Verdict};
use gateway_common::wire::{Mac, ServerNames, flow_flags};
use gateway_core::doh_servers::FeedServers;
use gateway_core::evaluate::{Decision, Family, Protocol, Request, evaluate};
use gateway_core::host_egress::{Client, HostEgress, of_client};
use gateway_core::plan_maps::PlanMaps;
use gateway_model::Id;
use gateway_model::kinds::privacy_class::WebRtc;
use gateway_model::settings::groups::{BlockScope, HostBlocks};
use serde_json::json;

use crate::fixture::Fixture;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn fixture(class: &str) -> (Fixture, Id) {
    let mut fixture = Fixture::new();
    let device = json!({"name": "laptop", "mac": "02:00:00:00:00:01", "privacy_class": class});
    let device = fixture.create("device", device).expect("a device");
    (fixture, device)
}

fn packet(to: &str, protocol: u8, port: u16) -> IpPacket {
    let destination: IpAddr = to.parse().expect("an address");
    let source: IpAddr =
        if destination.is_ipv6() { "fd00:1::7" } else { "192.168.1.7" }.parse().expect("one");
    IpPacket {
        source: source.into(),
        destination: destination.into(),
        interface: 2,
        mac: Mac::new(MAC),
        protocol,
        source_port: 40_000,
        destination_port: port,
        ipv6: destination.is_ipv6(),
        opening: protocol == TCP,
        ..IpPacket::default()
    }
}

fn verdict(fixture: &Fixture, packet: IpPacket) -> Verdict {
    let compiled = fixture.compiled();
    decide(&Ok(Classified::Ip(packet)), &PlanMaps::new(Some(&compiled.plan.dataplane)))
}

fn reason(fixture: &Fixture, packet: IpPacket) -> Reason {
    verdict(fixture, packet).reason
}

fn set(fixture: &mut Fixture, scope: BlockScope, blocks: HostBlocks) {
    fixture.state.set_blocks_at(scope, blocks).expect("a change");
}

#[test]
fn a_class_blocks_its_protocols_and_no_others() {
    let (open, _) = fixture("open");
    let (isolated, _) = fixture("isolated");
    let stun = |to, port| IpPacket { payload: flow_flags::STUN, ..packet(to, UDP, port) };
    let quic = |to, port| IpPacket { payload: flow_flags::QUIC, ..packet(to, UDP, port) };
    let other_quic = |to, port| IpPacket { payload: flow_flags::QUIC_OTHER, ..packet(to, UDP, port) };
    let table = [
        (packet("203.0.113.9", TCP, 853), Reason::DotBlocked),
        (packet("203.0.113.9", UDP, 784), Reason::DotBlocked),
        (packet("203.0.113.9", UDP, 8853), Reason::DotBlocked),
        (packet("1.1.1.1", TCP, 443), Reason::DohBlocked),
        (packet("45.90.28.77", TCP, 443), Reason::DohBlocked),
        (packet("203.0.113.9", UDP, 443), Reason::QuicBlocked),
        (quic("203.0.113.9", 8443), Reason::QuicBlocked),
        (other_quic("203.0.113.9", 8443), Reason::QuicBlocked),
        (packet("203.0.113.9", UDP, 3478), Reason::StunBlocked),
        (packet("203.0.113.9", UDP, 3479), Reason::StunBlocked),
        (packet("203.0.113.9", UDP, 19_305), Reason::StunBlocked),
        (stun("203.0.113.9", 50_000), Reason::StunBlocked),
        (packet("2001:db8:2::9", TCP, 443), Reason::Ipv6Blocked),
        (packet("203.0.113.9", 41, 0), Reason::Ipv6Blocked),
        (packet("203.0.113.9", UDP, 3544), Reason::Ipv6Blocked),
        (packet("203.0.113.9", TCP, 443), Reason::NoPolicy),
        (packet("203.0.113.9", UDP, 50_000), Reason::NoPolicy),
        (packet("203.0.113.9", TCP, 22), Reason::NoPolicy),
    ];
    for (packet, expected) in table {
        assert_eq!(reason(&isolated, packet), expected, "{packet:?}");
        assert_eq!(reason(&open, packet), Reason::NoPolicy, "{packet:?}");
    }
}

#[test]
fn a_server_name_ends_a_connection() {
    let (isolated, _) = fixture("isolated");
    let compiled = isolated.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    let connection = IpPacket { opening: false, ..packet("203.0.113.9", TCP, 8000) };
    let reason = |packet: IpPacket| decide(&Ok(Classified::Ip(packet)), &maps).reason;
    let hello =
        |name: &str| IpPacket { payload: flow_flags::HELLO, names: ServerNames::of(name), ..connection };
    assert_eq!(reason(connection), Reason::NoPolicy);
    assert_eq!(reason(hello("Eu.Dns.Google")), Reason::DohBlocked);
    assert_eq!(reason(connection), Reason::DohBlocked, "segments that follow");
    maps.generation.set(2);
    assert_eq!(reason(connection), Reason::DohBlocked, "under another plan");
    let other = IpPacket { source_port: 41_000, ..hello("www.google.com") };
    assert_eq!(reason(other), Reason::NoPolicy);
    let (open, _) = fixture("open");
    assert_eq!(verdict(&open, hello("dns.google")).reason, Reason::NoPolicy);
}

#[test]
fn resolvers_of_feeds_are_blocked_like_the_built_in_ones() {
    let (mut isolated, _) = fixture("isolated");
    let hello = IpPacket {
        payload: flow_flags::HELLO,
        names: ServerNames::of("a.resolver.example"),
        opening: false,
        ..packet("203.0.113.9", TCP, 8000)
    };
    let by_address = packet("198.51.100.77", TCP, 443);
    assert_eq!(
        (reason(&isolated, hello), reason(&isolated, by_address)),
        (Reason::NoPolicy, Reason::NoPolicy)
    );
    let mut servers = FeedServers::default();
    servers.add_name("resolver.example".to_owned());
    servers.add_network("198.51.100.64/26".parse().expect("a network"));
    isolated.facts.doh_servers = Arc::new(servers);
    assert_eq!(
        (reason(&isolated, hello), reason(&isolated, by_address)),
        (Reason::DohBlocked, Reason::DohBlocked)
    );
    assert_eq!(reason(&isolated, packet("1.1.1.1", TCP, 443)), Reason::DohBlocked);
}

#[test]
fn a_name_is_explained_as_it_is_blocked() {
    let (isolated, device) = fixture("isolated");
    let decision = |destination: &str| {
        let request = Request {
            device_id: Some(device),
            destination: Some(destination.to_owned()),
            protocol: Some(Protocol::Tcp),
            family: Some(Family::Ipv4),
            ..Request::default()
        };
        evaluate(&isolated.input(), &isolated.compiled(), &request).expect("an answer").decision
    };
    assert_eq!(decision("doh.opendns.com"), Decision::Block);
    assert_eq!(decision("doh.opendns.com:8000"), Decision::Block);
    assert_eq!(decision("www.example.com"), Decision::Direct);
}

#[test]
fn discovery_never_leaves_the_lan() {
    let (open, _) = fixture("open");
    for port in [5353, 5355, 1900, 137, 138] {
        assert_eq!(reason(&open, packet("203.0.113.9", UDP, port)), Reason::DiscoveryDropped);
    }
    assert_eq!(reason(&open, packet("224.0.0.251", UDP, 5353)), Reason::LinkLocal);
}

#[test]
fn a_scope_reaches_its_hosts_only() {
    let (mut fixture, device) = fixture("open");
    let quic = packet("203.0.113.9", UDP, 443);
    let stranger = IpPacket { mac: Mac::new([2, 0, 0, 0, 0, 9]), ..quic };
    let blocks = HostBlocks { block_quic: true, ..HostBlocks::default() };
    set(&mut fixture, BlockScope::Device(device), blocks);
    assert_eq!((reason(&fixture, quic), reason(&fixture, stranger)), (Reason::QuicBlocked, Reason::NoPolicy));
    set(&mut fixture, BlockScope::Device(device), HostBlocks::default());
    assert_eq!(reason(&fixture, quic), Reason::NoPolicy);
    set(&mut fixture, BlockScope::All, blocks);
    assert_eq!(
        (reason(&fixture, quic), reason(&fixture, stranger)),
        (Reason::QuicBlocked, Reason::QuicBlocked)
    );
}

#[test]
fn webrtc_by_tunnel_takes_a_tunnel_or_nothing() {
    let (mut fixture, device) = fixture("open");
    let blocks = HostBlocks { webrtc: WebRtc::Tunnel, ..HostBlocks::default() };
    set(&mut fixture, BlockScope::Device(device), blocks);
    let stun = IpPacket { payload: flow_flags::STUN, ..packet("203.0.113.9", UDP, 50_000) };
    assert_eq!(reason(&fixture, stun), Reason::StunBlocked);
    fixture.tunnel("a");
    fixture.policy(json!({"name": "p", "source_type": "device", "source_value": device.to_string(), "hops": [{"type": "vpn", "target": "a"}]}));
    fixture.apply();
    assert_eq!(reason(&fixture, stun), Reason::PolicyEgress);
}

/// The gateway asks for the client, by protocols and addresses that the client may not use.
#[test]
fn the_gateway_asks_upstreams_for_clients_with_all_blocks() {
    let (mut fixture, _) = fixture("isolated");
    fixture.network.dns_port = 53;
    for (address, upstream) in [
        ("192.168.1.7", "9.9.9.9"),
        ("fd00:1::7", "2620:fe::fe"),
        ("192.168.1.7", "2620:fe::fe"),
        ("fd00:1::7", "9.9.9.9"),
    ] {
        let client = Client {
            mac: Some(gateway_model::MacAddr(MAC)),
            address: address.parse().expect("an address"),
            interface: None,
            vlan: 0,
        };
        let upstream = upstream.parse().expect("an address");
        let (egress, _) = of_client(&fixture.input(), &fixture.compiled(), &client, upstream);
        assert_eq!(egress, HostEgress::Default, "{address} by {upstream}");
    }
}

#[test]
fn a_running_flow_ends_when_it_turns_out_to_be_webrtc() {
    let (mut fixture, device) = fixture("open");
    let blocks = HostBlocks { webrtc: WebRtc::Block, ..HostBlocks::default() };
    set(&mut fixture, BlockScope::Device(device), blocks);
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    let reason = |payload: u8| {
        let packet = IpPacket { payload, ..packet("203.0.113.9", UDP, 50_000) };
        decide(&Ok(Classified::Ip(packet)), &maps).reason
    };
    assert_eq!(reason(0), Reason::NoPolicy);
    assert_eq!(reason(flow_flags::STUN), Reason::StunBlocked);
    assert_eq!(reason(0), Reason::StunBlocked, "media of a blocked call");
}
