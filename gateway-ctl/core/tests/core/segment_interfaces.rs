//! Hosts of segments and of the guest network: limits of their interfaces, and interfaces of segments.

use std::net::IpAddr;

use gateway_common::classify::{Classified, IpPacket, TCP};
use gateway_common::decide::decide;
use gateway_common::verdict::Reason;
use gateway_common::wire::Mac;
use gateway_core::evaluate::{Request, evaluate};
use gateway_core::network::{ApNetwork, InterfaceSettings};
use gateway_core::plan::VirtualLink;
use gateway_core::plan_maps::PlanMaps;
use gateway_core::segment_links::of_segments;
use gateway_model::settings::groups::InterfaceMethod;
use serde_json::json;

use crate::fixture::Fixture;

const OTHER_LAN: &str = "192.168.1.10";
const INTERNET: &str = "203.0.113.9";
const UNKNOWN: u8 = 9;

/// A second LAN, `lan1` with 192.168.2.1/24.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.link("lan1", 7).address("lan1", "192.168.2.1/24");
    fixture.network.lan.push("lan1".into());
    fixture
}

fn reason(fixture: &Fixture, mac: u8, to: &str, port: u16) -> Reason {
    let destination: IpAddr = to.parse().expect("an address");
    let packet = IpPacket {
        source: IpAddr::from([192, 168, 2, 100 + mac]).into(),
        destination: destination.into(),
        interface: 7,
        mac: Mac::new([2, 0, 0, 0, 0, mac]),
        protocol: TCP,
        source_port: 40_000,
        destination_port: port,
        opening: true,
        ..IpPacket::default()
    };
    let compiled = fixture.compiled();
    decide(&Ok(Classified::Ip(packet)), &PlanMaps::new(Some(&compiled.plan.dataplane))).reason
}

fn device(fixture: &mut Fixture, number: u8, class: Option<&str>) {
    let body = json!({"name": format!("device-{number}"), "mac": format!("02:00:00:00:00:0{number}"), "trust_class": class});
    fixture.create("device", body).expect("a device");
}

#[test]
fn class_of_a_segment_is_for_hosts_that_have_none() {
    let mut fixture = fixture();
    device(&mut fixture, 1, None);
    device(&mut fixture, 2, Some("trusted"));
    let to_lan = |fixture: &Fixture| [UNKNOWN, 1, 2].map(|mac| reason(fixture, mac, OTHER_LAN, 445));
    assert_eq!(to_lan(&fixture), [Reason::ToLan; 3]);
    let segment =
        json!({"name": "guests", "interface": "lan1", "cidr": "192.168.2.0/24", "trust_class": "guest"});
    fixture.create("segment", segment).expect("a segment");
    assert_eq!(to_lan(&fixture), [Reason::TrustLanDenied, Reason::TrustLanDenied, Reason::ToLan]);
    assert_eq!(reason(&fixture, UNKNOWN, INTERNET, 443), Reason::NoPolicy);
    // The device trusted may administer the gateway, so that guests may not.
    fixture.network.admin_port = 8080;
    let to_gateway = |fixture: &Fixture, mac| reason(fixture, mac, "192.168.2.1", 8080);
    assert_eq!(to_gateway(&fixture, UNKNOWN), Reason::AdminDenied);
    assert_eq!(to_gateway(&fixture, 2), Reason::ToGateway);
}

#[test]
fn denial_by_a_segment_names_it() {
    let mut fixture = fixture();
    device(&mut fixture, 1, None);
    let segment =
        json!({"name": "guests", "interface": "lan1", "cidr": "192.168.2.0/24", "trust_class": "guest"});
    fixture.create("segment", segment).expect("a segment");
    let request = Request {
        mac: Some("02:00:00:00:00:01".parse().expect("a MAC address")),
        destination: Some(OTHER_LAN.to_owned()),
        interface: Some("lan1".to_owned()),
        source: Some("192.168.2.101".parse().expect("an address")),
        ..Request::default()
    };
    let found = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    assert!(found.sentence.contains(r#"the trust class of the segment "guests""#), "{}", found.sentence);
}

#[test]
fn guests_of_the_access_point_are_limited_whatever_their_class() {
    let mut fixture = fixture();
    device(&mut fixture, 2, Some("trusted"));
    fixture.network.admin_port = 8080;
    let address = "192.168.2.1/24".parse().expect("a network");
    let network = |is_guest| ApNetwork { interface: "lan1".to_owned(), address, dhcp: true, is_guest };
    fixture.network.access_point = vec![network(false)];
    assert_eq!(reason(&fixture, 2, OTHER_LAN, 445), Reason::ToLan);
    fixture.network.access_point = vec![network(true)];
    for mac in [UNKNOWN, 2] {
        assert_eq!(reason(&fixture, mac, OTHER_LAN, 445), Reason::TrustLanDenied);
        assert_eq!(reason(&fixture, mac, "192.168.2.1", 8080), Reason::AdminDenied);
        assert_eq!(reason(&fixture, mac, "192.168.2.1", 53), Reason::ToGateway);
        assert_eq!(reason(&fixture, mac, INTERNET, 443), Reason::NoPolicy);
    }
}

#[test]
fn interface_of_a_segment_is_made_down_and_set_up_once_it_has_its_program() {
    let mut fixture = Fixture::new();
    let segment = json!({"name": "guests", "interface": "lan0", "vlan_id": 30, "cidr": "192.168.30.0/24"});
    fixture.create("segment", segment).expect("a segment");
    fixture.network.segment_links = of_segments(&fixture.state, &[]);
    fixture.network.lan.push("lan0.30".into());
    let settings = InterfaceSettings {
        method: InterfaceMethod::Static,
        address: fixture.network.segment_links["lan0.30"].address,
        on_demand: true,
        yields: true,
        ..InterfaceSettings::default()
    };
    fixture.network.interfaces.insert("lan0.30".to_owned(), settings);
    let plan = fixture.compiled().plan;
    assert_eq!(plan.virtual_links["lan0.30"], VirtualLink::Vlan { parent: "lan0".to_owned(), id: 30 });
    assert!(plan.attach.contains_key("lan0.30"), "its program is attached as soon as it exists");
    assert!(!plan.links.contains_key("lan0.30"));

    fixture.vlan_link("lan0.30", 9, "lan0", 30);
    let has_address = |fixture: &Fixture| {
        let plan = fixture.compiled().plan;
        assert!(plan.links["lan0.30"].up);
        plan.addresses.keys().any(|key| key.interface == "lan0.30")
    };
    assert!(has_address(&fixture));
    fixture.address("lan0.30", "192.168.30.1/24");
    assert!(has_address(&fixture), "its own");
    fixture.address("lan0.30", "192.168.30.254/24");
    assert!(!has_address(&fixture), "the host has given it another one");

    fixture.facts.links.remove("lan0.30");
    fixture.vlan_link("office", 10, "lan0", 30);
    assert!(fixture.compiled().plan.virtual_links.is_empty(), "the interface of the host is used");
}
