//! Bridge of the access point.

use gateway_model::State;
use gateway_model::registry::kind;
use serde_json::json;

use crate::bluetooth::nap::{NapRefusal, nap_bridge, nap_clients};
use crate::facts::{Facts, Link};
use crate::network::Network;

fn link(kind: &str, master: Option<&str>) -> Link {
    Link { up: true, kind: kind.to_owned(), master: master.map(str::to_owned), ..Link::default() }
}

#[test]
fn clients_join_the_bridge_of_a_segment_and_nothing_else() {
    let now = "2026-11-20T12:00:00Z".parse().unwrap();
    let mut state = State::new(now).begin(now);
    let mut create = |name: &str, interface: &str, vlan_id: Option<u16>, cidr: &str| {
        let body = json!({"name": name, "interface": interface, "vlan_id": vlan_id, "cidr": cidr});
        kind("segment").unwrap().create(&mut state, body).unwrap().id
    };
    let guests = create("guests", "br0", None, "10.1.0.0/24");
    create("cable", "eth1", None, "10.2.0.0/24");
    create("cameras", "br0", Some(7), "10.3.0.0/24");
    create("far", "br9", None, "10.4.0.0/24");
    let network = Network { lan: vec!["br0".to_owned(), "eth1".to_owned()], ..Network::default() };
    let mut facts = Facts::default();
    let links = [
        ("br0", link("bridge", None)),
        ("eth1", link("", None)),
        ("bnep0", link("", Some("br0"))),
        ("bnep1", link("", None)),
        ("veth0", link("veth", Some("br0"))),
    ];
    facts.links = links.map(|(name, link)| (name.to_owned(), link)).into();
    let of = |segment: Option<&str>| nap_bridge(&state, &network, &facts, segment);
    assert_eq!(of(Some("guests")), Ok("br0".to_owned()));
    assert_eq!(of(Some(&guests.to_string())), Ok("br0".to_owned()));
    assert_eq!(of(None), Err(NapRefusal::NoSegment));
    assert_eq!(of(Some("none")), Err(NapRefusal::UnknownSegment("none".to_owned())));
    assert_eq!(of(Some("cameras")), Err(NapRefusal::Vlan("cameras".to_owned())));
    assert_eq!(of(Some("far")), Err(NapRefusal::NoLan("br9".to_owned())));
    assert_eq!(of(Some("cable")), Err(NapRefusal::NoBridge("eth1".to_owned())));
    assert_eq!((nap_clients(&facts, "br0"), nap_clients(&facts, "br9")), (1, 0));
}
