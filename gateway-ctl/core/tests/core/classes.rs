//! Trust and privacy classes of devices: administration, failure policy floors, exceptions, and time.

use std::net::IpAddr;

use gateway_common::classify::{Classified, IpPacket, TCP, UDP};
use gateway_common::decide::decide;
use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::{Mac, Mark};
use gateway_core::evaluate::{Decision, Request, evaluate};
use gateway_core::host_egress::{Client, HostEgress, of_client};
use gateway_core::plan_maps::PlanMaps;
use gateway_model::Id;
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::PrivacyBlocks;
use serde_json::{Value, json};

use crate::fixture::Fixture;

const GATEWAY: &str = "192.168.1.1";
const INTERNET: &str = "203.0.113.9";

fn packet(mac: u8, to: &str, protocol: u8, port: u16) -> IpPacket {
    let destination: IpAddr = to.parse().expect("an address");
    IpPacket {
        source: IpAddr::from([192, 168, 1, 100 + mac]).into(),
        destination: destination.into(),
        interface: 2,
        mac: Mac::new([2, 0, 0, 0, 0, mac]),
        protocol,
        source_port: 40_000,
        destination_port: port,
        opening: protocol == TCP,
        ..IpPacket::default()
    }
}

fn reason(fixture: &Fixture, packet: IpPacket) -> Reason {
    let compiled = fixture.compiled();
    decide(&Ok(Classified::Ip(packet)), &PlanMaps::new(Some(&compiled.plan.dataplane))).reason
}

fn device(fixture: &mut Fixture, number: u8, more: &Value) -> Id {
    let mut body = json!({"name": format!("device-{number}"), "mac": format!("02:00:00:00:00:0{number}")});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fixture.create("device", body).expect("a device")
}

/// Ports for administration and others of the gateway, and the reason of the verdict on a packet to each.
fn reached(fixture: &Fixture, mac: u8) -> Vec<Reason> {
    let ports = [(TCP, 8080), (TCP, 22), (TCP, 53), (UDP, 8080)];
    ports.into_iter().map(|(protocol, port)| reason(fixture, packet(mac, GATEWAY, protocol, port))).collect()
}

const ALL: [Reason; 4] = [Reason::ToGateway; 4];
const NO_ADMIN: [Reason; 4] =
    [Reason::AdminDenied, Reason::AdminDenied, Reason::ToGateway, Reason::ToGateway];

#[test]
fn administration_is_for_devices_that_may_as_soon_as_there_is_one() {
    let mut fixture = Fixture::new();
    fixture.network.admin_port = 8080;
    device(&mut fixture, 1, &json!({}));
    assert_eq!((reached(&fixture, 1), reached(&fixture, 9)), (ALL.into(), ALL.into()), "nobody could");
    let admin = device(&mut fixture, 2, &json!({"trust_class": "trusted"}));
    assert_eq!(reached(&fixture, 1), NO_ADMIN, "another device");
    assert_eq!(reached(&fixture, 9), NO_ADMIN, "an unknown host");
    assert_eq!(reached(&fixture, 2), ALL);
    assert_ne!(reason(&fixture, packet(1, INTERNET, TCP, 22)), Reason::AdminDenied);

    let quarantine = json!({"type": "quarantine", "device_id": admin, "duration_min": 10});
    fixture.create("exception", quarantine).expect("an exception");
    assert_eq!(reached(&fixture, 2), NO_ADMIN, "in quarantine");
}

#[test]
fn device_in_quarantine_never_administers() {
    let mut fixture = Fixture::new();
    fixture.network.admin_port = 8080;
    device(&mut fixture, 1, &json!({"status": "quarantined"}));
    assert_eq!((reached(&fixture, 1), reached(&fixture, 9)), (NO_ADMIN.into(), ALL.into()));
}

/// A policy with two hops, of which those in `down` are not usable.
fn failing(hop_mode: &str, fail_policy: &str, down: &[&str]) -> Fixture {
    let mut fixture = Fixture::new();
    for name in ["a", "b"] {
        fixture.tunnel(name);
        fixture.set_usable(name, !down.contains(&name));
    }
    let hops: Vec<Value> = ["a", "b"].iter().map(|name| json!({"type": "vpn", "target": name})).collect();
    fixture.policy(json!({
        "name": "p", "source_type": "all", "hops": hops, "hop_mode": hop_mode, "fail_policy": fail_policy
    }));
    fixture.apply();
    device(&mut fixture, 1, &json!({"privacy_class": "open"}));
    device(&mut fixture, 2, &json!({"privacy_class": "strict"}));
    device(&mut fixture, 3, &json!({"privacy_class": "isolated"}));
    fixture
}

#[test]
fn policy_may_not_fail_below_the_floor_of_a_device() {
    use Reason::{FloorReject, PolicyDirect, PolicyEgress, PolicyReject};
    let table: [(&str, &str, &[&str], [Reason; 3]); 6] = [
        ("failover", "fail-open", &[], [PolicyEgress, PolicyEgress, PolicyEgress]),
        ("failover", "fail-open", &["a"], [PolicyEgress, PolicyEgress, PolicyEgress]),
        ("failover", "fail-open", &["a", "b"], [PolicyDirect, FloorReject, FloorReject]),
        ("path", "fail-degraded", &["a"], [PolicyEgress, PolicyEgress, FloorReject]),
        ("path", "fail-degraded", &["a", "b"], [PolicyReject, PolicyReject, PolicyReject]),
        ("path", "fail-closed", &["a"], [PolicyReject, PolicyReject, PolicyReject]),
    ];
    for (mode, fail_policy, down, expected) in table {
        let fixture = failing(mode, fail_policy, down);
        let reasons = [1, 2, 3].map(|mac| reason(&fixture, packet(mac, INTERNET, TCP, 443)));
        assert_eq!(reasons, expected, "{mode} {fail_policy} without {down:?}");
    }
}

#[test]
fn dns_query_of_a_device_leaves_no_weaker_than_its_packets() {
    let fixture = failing("failover", "fail-open", &["a", "b"]);
    let egress = |mac: u8| {
        let client = Client {
            mac: Some(MacAddr([2, 0, 0, 0, 0, mac])),
            address: [192, 168, 1, 100 + mac].into(),
            interface: Some(2),
            vlan: 0,
        };
        of_client(&fixture.input(), &fixture.compiled(), &client, [9, 9, 9, 9].into()).0
    };
    assert_eq!(egress(1), HostEgress::Default);
    assert!(matches!(egress(2), HostEgress::Blocked(_)), "{:?}", egress(2));
}

#[test]
fn floor_is_explained() {
    let fixture = failing("failover", "fail-open", &["a", "b"]);
    let request = Request { device_id: Some(fixture.ids["device-2"]), ..Request::default() };
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    assert_eq!(answer.decision, Decision::Block);
    assert!(answer.sentence.contains("fails less strictly than the privacy classes"), "{}", answer.sentence);
}

#[test]
fn floor_of_a_group_is_for_its_members() {
    let mut fixture = failing("failover", "fail-open", &["a", "b"]);
    let member = fixture.ids["device-1"].to_string();
    let group = json!({"name": "kids", "members": [member], "privacy_class": "strict"});
    fixture.create("device_group", group).expect("a group");
    assert_eq!(reason(&fixture, packet(1, INTERNET, TCP, 443)), Reason::FloorReject);
    assert_eq!(reason(&fixture, packet(9, INTERNET, TCP, 443)), Reason::PolicyDirect, "an unknown host");
}

#[test]
fn class_that_forbids_exceptions_ends_their_effect() {
    let mut fixture = failing("failover", "fail-closed", &[]);
    let device = fixture.ids["device-1"];
    let exception = json!({"type": "temporary-direct", "device_id": device, "allow_direct": true});
    fixture.create("exception", exception.clone()).expect("an exception");
    assert_eq!(reason(&fixture, packet(1, INTERNET, TCP, 443)), Reason::PolicyDirect);
    let group = json!({"name": "cameras", "members": [device.to_string()], "privacy_class": "isolated"});
    fixture.create("device_group", group).expect("a group");
    assert_eq!(reason(&fixture, packet(1, INTERNET, TCP, 443)), Reason::PolicyEgress);
    let request = Request { device_id: Some(device), ..Request::default() };
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    let effective: Vec<bool> = answer.effective.exceptions.iter().map(|one| one.effective).collect();
    assert_eq!(effective, [false]);
    fixture.create("exception", exception).expect_err("the class of a group counts");
}

#[test]
fn ntp_queries_are_answered_by_the_gateway() {
    let mut fixture = Fixture::new();
    device(&mut fixture, 1, &json!({"privacy_class": "strict"}));
    device(&mut fixture, 2, &json!({}));
    let query = |mac| packet(mac, INTERNET, UDP, 123);
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    let verdict = decide(&Ok(Classified::Ip(query(9))), &maps);
    assert_eq!((verdict.action, verdict.mark), (Action::Mark, Mark::FORCED_NTP.0), "the default is for all");
    assert_ne!(compiled.plan.nft.ntp_port, 0);
    let blocks = PrivacyBlocks { all: Default::default(), ..PrivacyBlocks::default() };
    fixture.state.set_group(&blocks);
    let reasons = [1, 2, 9].map(|mac| reason(&fixture, query(mac)));
    assert_eq!(reasons, [Reason::ForcedNtp, Reason::NoPolicy, Reason::NoPolicy]);
    assert_eq!(reason(&fixture, packet(1, INTERNET, TCP, 123)), Reason::NoPolicy);
    assert_eq!(reason(&fixture, packet(1, "224.0.1.1", UDP, 123)), Reason::LinkLocal);
    assert_eq!(reason(&fixture, packet(1, GATEWAY, UDP, 123)), Reason::ToGateway);
}
