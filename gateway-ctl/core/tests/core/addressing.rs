//! Interfaces with addresses of the configuration or of a lease, in the plan.

use std::net::IpAddr;

use gateway_common::wire::LocalKind;
use gateway_core::facts::{Lease, MeshLink};
use gateway_core::interfaces::{InterfaceRole, lease_refusal, role};
use gateway_core::network::{InterfaceSettings, UplinkSettings};
use gateway_core::plan::{AddressKey, Plan, RouteKey, RouteValue, RuleAction, names};
use gateway_model::settings::groups::InterfaceMethod;

use crate::fixture::{Fixture, leg};

const MAIN: u32 = 254;

fn fixture(name: &str, method: InterfaceMethod, address: Option<&str>, gateway: Option<&str>) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.link("eth3", 7);
    let settings = InterfaceSettings {
        method,
        address: address.map(|address| address.parse().expect("an address")),
        gateway: gateway.map(|gateway| gateway.parse().expect("an address")),
        ..InterfaceSettings::default()
    };
    fixture.network.interfaces.insert(name.to_owned(), settings);
    fixture
}

fn lease(address: &str, gateway: Option<&str>) -> Lease {
    Lease {
        address: address.parse().expect("an address"),
        gateway: gateway.map(|gateway| gateway.parse().expect("an address")),
        dns: Vec::new(),
        server: None,
        seconds: 60,
    }
}

fn has_address(plan: &Plan, interface: &str, address: &str) -> bool {
    let key = AddressKey { interface: interface.to_owned(), address: address.parse().expect("an address") };
    plan.addresses.contains_key(&key)
}

fn route(plan: &Plan, table: u32, to: &str) -> Option<RouteValue> {
    let to = to.parse().expect("a network");
    let found = plan.routes.iter().find(|(key, _)| key.table == table && key.destination == to);
    found.map(|(_, value)| value.clone()).filter(|value| *value != RouteValue::Unreachable)
}

fn by(interface: &str, gateway: Option<&str>) -> Option<RouteValue> {
    let gateway = gateway.map(|gateway| gateway.parse().expect("an address"));
    Some(RouteValue::Unicast { interface: interface.to_owned(), gateway })
}

/// Tables that packets from an address look up, in order.
fn tables(plan: &Plan, source: &str) -> Vec<u32> {
    let source: IpAddr = source.parse().expect("an address");
    let rules = plan.rules.values().filter(|rule| rule.source.is_some_and(|net| net.addr() == source));
    let table = |action: &RuleAction| match action {
        RuleAction::Table(table) => *table,
        RuleAction::Prohibit | RuleAction::Unreachable => 0,
    };
    rules.map(|rule| table(&rule.action)).collect()
}

#[test]
fn gateway_of_an_interface_serves_its_address_only() {
    let plan =
        fixture("eth3", InterfaceMethod::Static, Some("10.44.0.7/24"), Some("10.44.0.1")).compiled().plan;
    let table = names::TABLE_INTERFACES + 7;
    assert!(has_address(&plan, "eth3", "10.44.0.7/24") && plan.configured.contains("eth3"));
    assert_eq!(route(&plan, MAIN, "10.44.0.0/24"), by("eth3", None));
    assert_eq!(route(&plan, MAIN, "0.0.0.0/0"), None);
    assert_eq!(route(&plan, table, "0.0.0.0/0"), by("eth3", Some("10.44.0.1")));
    assert_eq!(tables(&plan, "10.44.0.7"), [names::TABLE_LAN, table]);
}

#[test]
fn lease_stays_out_of_the_main_table() {
    let mut fixture = fixture("eth3", InterfaceMethod::Dhcp, None, None);
    assert!(!fixture.compiled().plan.addresses.keys().any(|key| key.interface == "eth3"), "no lease yet");
    fixture.facts.leases.insert("eth3".into(), lease("198.18.0.77/7", Some("198.18.0.1")));
    let plan = fixture.compiled().plan;
    assert!(has_address(&plan, "eth3", "198.18.0.77/7"));
    assert!(plan.routes.keys().all(|key: &RouteKey| key.table != MAIN), "{:?}", plan.routes.keys());
    let table = names::TABLE_INTERFACES + 7;
    assert_eq!(route(&plan, table, "198.0.0.0/7"), by("eth3", None));
    assert_eq!(tables(&plan, "198.18.0.77"), [names::TABLE_LAN, table]);
}

#[test]
fn lease_that_takes_addresses_of_others_is_not_used() {
    let mut fixture = fixture("eth3", InterfaceMethod::Dhcp, None, None);
    fixture.tunnel("a");
    fixture.network.resolvers = vec!["9.9.9.9".parse().expect("an address")];
    for (address, what) in [
        ("192.168.1.77/24", "the LAN"),
        ("192.168.0.1/16", "a network around the LAN"),
        ("198.51.100.2/32", "the uplink's address"),
        ("198.51.100.1/24", "the router of the uplink"),
        ("203.0.113.9/24", "the end of a tunnel"),
        ("9.9.9.9/8", "an upstream of the resolver"),
    ] {
        let lease = lease(address, None);
        assert!(lease_refusal(&fixture.input(), "eth3", &lease).is_some(), "{what}");
        fixture.facts.leases.insert("eth3".into(), lease);
        assert!(!has_address(&fixture.compiled().plan, "eth3", address), "{what}");
    }
    assert_eq!(lease_refusal(&fixture.input(), "eth3", &lease("10.44.0.7/24", None)), None);
}

#[test]
fn uplinks_and_lans_have_static_addresses_only() {
    let plan =
        fixture("wan0", InterfaceMethod::Static, Some("192.0.2.7/24"), Some("192.0.2.1")).compiled().plan;
    assert_eq!(route(&plan, MAIN, "0.0.0.0/0"), by("wan0", Some("192.0.2.1")));
    assert!(tables(&plan, "192.0.2.7").is_empty());
    let plan = fixture("lan0", InterfaceMethod::Static, Some("10.1.0.1/24"), None).compiled().plan;
    assert_eq!(route(&plan, MAIN, "10.1.0.0/24"), by("lan0", None));
    for name in ["wan0", "lan0"] {
        let mut fixture = fixture(name, InterfaceMethod::Dhcp, None, None);
        fixture.facts.leases.insert(name.into(), lease("10.44.0.7/24", None));
        let plan = fixture.compiled().plan;
        assert!(!has_address(&plan, name, "10.44.0.7/24") && !plan.links.contains_key(name), "{name}");
    }
}

#[test]
fn missing_interface_is_reported() {
    let compiled = fixture("eth9", InterfaceMethod::Static, Some("10.44.0.7/24"), None).compiled();
    assert!(compiled.findings.iter().any(|finding| finding.code == "interface_missing"));
    assert!(!compiled.plan.links.contains_key("eth9"));
}

#[test]
fn roles_follow_the_configuration() {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    fixture.link("br0", 20).link("eth3", 21);
    fixture.facts.links.get_mut("eth3").expect("a link").master = Some("br0".to_owned());
    let role = |name| role(&fixture.state, &fixture.network, &fixture.facts, name);
    assert_eq!(
        ["lan0", "wan0", "wg-a", "lo", "eth3", "br0", "nowhere"].map(role),
        [
            InterfaceRole::Lan,
            InterfaceRole::Uplink,
            InterfaceRole::Tunnel,
            InterfaceRole::Loopback,
            InterfaceRole::Port,
            InterfaceRole::Other,
            InterfaceRole::Other,
        ]
    );
}

#[test]
fn answers_to_the_lan_look_up_its_networks_first() {
    let plan = Fixture::new().compiled().plan;
    assert_eq!(route(&plan, names::TABLE_LAN, "192.168.1.0/24"), by("lan0", None));
    assert_eq!(route(&plan, names::TABLE_LAN, "fd00:1::/64"), by("lan0", None));
    assert_eq!(route(&plan, names::TABLE_LAN, "198.51.100.0/24"), None, "of an uplink");
    let first = plan.rules.iter().find(|(_, rule)| rule.action == RuleAction::Table(names::TABLE_LAN));
    let (_, rule) = first.expect("a rule");
    assert_eq!((rule.input_interface.as_deref(), rule.fwmark), (Some("lo"), Some((0, 0xff00_0000))));
}

#[test]
fn uplink_on_demand_has_its_lease_behind_all_other_default_routes() {
    let mut fixture = fixture("bnep-wan", InterfaceMethod::Dhcp, None, None);
    fixture.network.interfaces.get_mut("bnep-wan").expect("settings").on_demand = true;
    let uplink = UplinkSettings { number: leg(2), interface: "bnep-wan".into(), ..UplinkSettings::default() };
    fixture.network.uplinks.push(uplink);
    let absent = fixture.compiled();
    assert!(absent.findings.iter().all(|finding| finding.code != "interface_missing"), "it comes and goes");
    fixture.link("bnep-wan", 9);
    assert!(!fixture.compiled().plan.addresses.keys().any(|key| key.interface == "bnep-wan"), "no lease yet");
    fixture.facts.leases.insert("bnep-wan".into(), lease("198.18.0.77/7", Some("198.18.0.1")));
    let plan = fixture.compiled().plan;
    assert!(has_address(&plan, "bnep-wan", "198.18.0.77/7") && tables(&plan, "198.18.0.77").is_empty());
    assert_eq!(route(&plan, MAIN, "198.18.0.1/32"), by("bnep-wan", None));
    assert_eq!(route(&plan, MAIN, "198.0.0.0/7"), None, "the phone claims it");
    let key = |key: &&RouteKey| key.table == MAIN && key.destination.prefix_len() == 0;
    let metrics: Vec<u32> = plan.routes.keys().filter(key).map(|key| key.metric).collect();
    assert_eq!(metrics, [65_002]);
    // Without the mark of an interface that comes and goes, an uplink takes no lease.
    fixture.network.interfaces.get_mut("bnep-wan").expect("settings").on_demand = false;
    assert!(!has_address(&fixture.compiled().plan, "bnep-wan", "198.18.0.77/7"));
}

/// CVE-2019-14899: a host on an uplink must not reach into the flows of a mesh.
#[test]
fn no_leg_reaches_the_address_in_a_mesh() {
    let mut fixture = Fixture::new();
    fixture.link("mesh0", 9);
    let address: IpAddr = "100.64.0.5".parse().expect("an address");
    fixture.facts.mesh = Some(MeshLink {
        interface: "mesh0".to_owned(),
        mtu: 1280,
        port: 41641,
        addresses: [address].into(),
        peers: ["100.64.0.6/32".parse().expect("a network")].into(),
        ..MeshLink::default()
    });
    let plan = fixture.compiled().plan;
    let value = plan.dataplane.locals[&address.into()];
    assert!(value.is(LocalKind::Forbidden) && value.leg == 0, "{value:?}");
    assert_eq!(route(&plan, MAIN, "100.64.0.6/32"), by("mesh0", None));
}
