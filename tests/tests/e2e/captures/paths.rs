//! Completeness of captures: packets of the fast path and of XDP, VLAN tags, and the connection of the API.

use gateway_tests::frames::FrameSender;
use gateway_tests::services::IDENT;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::server;
use gateway_tests::traffic::UdpFlow;
use gateway_tests::wait::wait_for;
use serde_json::{Value, json};

use super::{LAN, UPLINK, detail, read_by_tshark, start, stop, wait_for_packets};
use crate::e2e::SOON;
use crate::e2e::fast_path_xdp::set_offloads;

/// Number of queries of a flow.
const QUERIES: usize = 50;

/// Sends queries in a flow that is established before, and returns the number of packets that a capture shows of them, by
/// interface and direction.
fn count_packets(testbed: &Testbed, flow: &UdpFlow) -> [usize; 4] {
    let filter = format!("udp port {IDENT}");
    let id = start(testbed, &json!({"interface": "any", "filter": filter}));
    for _ in 0..QUERIES {
        flow.ask(SOON).expect("an answer");
    }
    let all = stop(testbed, &id);
    assert_eq!(all["dropped"], 0, "{all}");
    let all = all["summaries"].as_array().expect("a list").clone();
    [(LAN, "in"), (UPLINK, "out"), (UPLINK, "in"), (LAN, "out")].map(|(interface, direction)| {
        all.iter()
            .filter(|packet| packet["interface"] == interface && packet["direction"] == direction)
            .count()
    })
}

fn fast_path_packets(testbed: &Testbed, field: &str) -> u64 {
    let status = testbed.api().get("/status").expect("the status");
    status["fast_path"][field].as_u64().unwrap_or_else(|| panic!("{field}: {status}"))
}

#[test]
fn packets_of_the_fast_path_are_captured_at_both_interfaces() {
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.daemon.configure(&json!({"dataplane": {"fast_path": "on"}})).expect("configured");
    testbed.daemon.start().expect("a daemon");
    let flow = UdpFlow::open(&testbed.network.laptop, (server(false), IDENT).into()).expect("a flow");
    for _ in 0..10 {
        flow.ask(SOON).expect("an answer");
    }
    let before = fast_path_packets(&testbed, "forwarded_packets");
    assert_eq!(count_packets(&testbed, &flow), [QUERIES; 4]);
    let taken = fast_path_packets(&testbed, "forwarded_packets") - before;
    // Conntrack sees one packet in some seconds.
    assert!(taken * 10 >= QUERIES as u64 * 9, "the fast path took {taken} packets");
}

#[test]
fn xdp_leaves_interfaces_while_they_are_captured() {
    let mut testbed = Testbed::prepare().expect("a network");
    set_offloads(&testbed.network, &["up0"]);
    let native = json!({"fast_path": "on", "xdp_interfaces": [
        {"interface": UPLINK, "mode": "native"}, {"interface": LAN, "mode": "native"}]});
    testbed.daemon.configure(&json!({"dataplane": native})).expect("configured");
    testbed.daemon.start().expect("a daemon");
    let xdp = |name: &str| {
        let status = testbed.api().get("/status").expect("the status");
        let all = status["fast_path"]["xdp"].as_array().expect("a list").clone();
        all.into_iter().find(|one| one["interface"] == name).unwrap_or(Value::Null)
    };
    let wait_until_attached = || {
        let attached = || [LAN, UPLINK].iter().all(|name| xdp(name)["attached"] == true);
        wait_for(SOON, "XDP to be attached", attached).expect("XDP");
    };
    wait_until_attached();
    let flow = UdpFlow::open(&testbed.network.laptop, (server(false), IDENT).into()).expect("a flow");
    let before = fast_path_packets(&testbed, "xdp_packets");
    for _ in 0..20 {
        flow.ask(SOON).expect("an answer");
    }
    assert!(fast_path_packets(&testbed, "xdp_packets") > before, "XDP takes packets that no capture sees");

    let session = testbed.api().post("/diagnostics/capture", &json!({"interface": LAN, "filter": "port 1"}));
    let session = session.expect("a capture");
    assert_eq!(session["without_xdp"], json!([LAN]), "{session}");
    assert_eq!((&xdp(LAN)["attached"], &xdp(LAN)["reason"]), (&json!(false), &json!("captured")));
    assert_eq!(xdp(UPLINK)["attached"], true, "the other one keeps it");
    stop(&testbed, session["id"].as_str().expect("an id"));
    wait_until_attached();
    assert_eq!(count_packets(&testbed, &flow), [QUERIES; 4]);
    wait_until_attached();
}

#[test]
fn packets_of_the_api_are_left_out() {
    let testbed = Testbed::start().expect("scene");
    let id = start(&testbed, &json!({"interface": "lo", "filter": "tcp port 8080"}));
    for _ in 0..5 {
        assert_eq!(detail(&testbed, &id)["packets"], 0);
    }
    let stopped = stop(&testbed, &id);
    assert_eq!((&stopped["packets"], &stopped["dropped"]), (&json!(0), &json!(0)));
    assert!(stopped["left_out"].as_u64() > Some(20), "{stopped}");
}

#[test]
fn tags_of_vlans_are_shown_and_found_by_a_filter() {
    let testbed = Testbed::start().expect("scene");
    let laptop = &testbed.network.laptop;
    let tagged = start(&testbed, &json!({"interface": LAN, "filter": "vlan 7 and arp"}));
    // A query for 10.7.0.9, with the tag of the VLAN.
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0x10, 0, 0x10, 0x81, 0, 0, 7, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend([2, 0, 0, 0x10, 0, 0x10, 10, 7, 0, 2, 0, 0, 0, 0, 0, 0, 10, 7, 0, 9]);
    frame.resize(64, 0);
    let sender = FrameSender::open(&laptop.namespace, "eth0").expect("a socket");
    sender.send(&frame).expect("sent");
    let is_query = |packet: &Value| packet["info"] == "who has 10.7.0.9? tell 10.7.0.2";
    let packets = wait_for_packets(&testbed, &tagged, "a tagged query", is_query);
    assert_eq!((&packets[0]["vlan"], &packets[0]["proto"]), (&json!(7), &json!("ARP")), "{packets:?}");
    let packets = read_by_tshark(&testbed, &tagged, &["frame.protocols", "vlan.id"]);
    assert!(
        packets.iter().any(|packet| packet[..] == ["eth:ethertype:vlan:ethertype:arp", "7"]),
        "{packets:?}"
    );
}
