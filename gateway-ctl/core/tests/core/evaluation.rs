//! The dry run, in words and in fields.

use gateway_core::dns::Name;
use gateway_core::evaluate::{Decision, Evaluation, Family, Protocol, Refusal, Request, evaluate};
use gateway_model::Id;
use gateway_model::domain::DomainName;
use serde_json::json;

use crate::fixture::Fixture;

const LAPTOP: &str = "02:00:00:00:00:01";

fn laptop_bound_to_a() -> (Fixture, Id) {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.tunnel("wg-a");
    fixture.policy(json!({
        "name": "vpn-only", "priority": 10, "source_type": "device", "source_value": laptop.to_string(),
        "hops": [{"type": "vpn", "target": "wg-a"}],
    }));
    fixture.apply();
    (fixture, laptop)
}

fn of(device: Id) -> Request {
    Request { device_id: Some(device), ..Request::default() }
}

fn ask(fixture: &Fixture, request: &Request) -> Evaluation {
    evaluate(&fixture.input(), &fixture.compiled(), request).expect("an answer")
}

fn problems(fixture: &Fixture, request: &Request) -> Vec<String> {
    match evaluate(&fixture.input(), &fixture.compiled(), request) {
        Err(Refusal::Invalid(problems)) => problems.iter().map(|problem| problem.path.clone()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_working_tunnel_is_named_in_the_sentence() {
    let (fixture, laptop) = laptop_bound_to_a();
    let result = ask(&fixture, &of(laptop));
    assert_eq!(
        result.sentence,
        r#"laptop -> TUNNEL wg-a (vpn): policy "vpn-only" (priority 10, fail-closed) matched"#
    );
    assert_eq!(result.decision, Decision::Tunnel);
    assert_eq!(result.matched_policies.len(), 1);
    assert_eq!(result.matched_policies[0].name, "vpn-only");
    let four = result.families.ipv4.as_ref().expect("IPv4");
    assert_eq!((four.via.as_deref(), four.interface.as_deref()), (Some("vpn:wg-a"), Some("wg-wg-a")));
    assert_eq!(result.kernel.mark.as_deref(), Some("0x47000010"));
    assert_eq!(
        (result.kernel.table, result.kernel.leg, result.kernel.rank),
        (Some(47016), Some(16), Some(0))
    );
    assert_eq!(result.effective.hop.as_ref().map(|hop| hop.target.as_str()), Some("wg-a"));
    assert_eq!(result.device.trust_class.as_deref(), Some("standard"));
}

#[test]
fn a_tunnel_that_is_down_blocks_and_the_sentence_says_why() {
    let (mut fixture, laptop) = laptop_bound_to_a();
    fixture.set_usable("wg-a", false);
    let result = ask(&fixture, &of(laptop));
    assert_eq!(
        result.sentence,
        r#"laptop -> BLOCKED: policy "vpn-only" (priority 10, fail-closed) matched; its only hop vpn:wg-a is down (no handshake for 192 s)"#
    );
    assert_eq!(result.decision, Decision::Block);
    assert!(!result.hops[0].usable);
    assert_eq!(result.kernel.mark.as_deref(), Some("0x47008002"));
}

#[test]
fn a_link_that_went_down_after_the_plan_is_reported_as_blocked() {
    let (mut fixture, laptop) = laptop_bound_to_a();
    fixture.facts.links.get_mut("wg-wg-a").expect("a link").up = false;
    let result = ask(&fixture, &of(laptop));
    assert_eq!(result.decision, Decision::Block, "{}", result.sentence);
    assert!(result.sentence.contains("wg-a is chosen, but table 47016 has no route"), "{}", result.sentence);
}

#[test]
fn without_a_policy_traffic_goes_directly() {
    let (fixture, _) = laptop_bound_to_a();
    let mac = "02:00:00:00:00:77".parse().expect("an address");
    let result = ask(&fixture, &Request { mac: Some(mac), ..Request::default() });
    assert_eq!(result.sentence, "02:00:00:00:00:77 -> DIRECT: no policy matched");
    assert_eq!(result.decision, Decision::Direct);
    assert_eq!(result.families.ipv6.as_ref().and_then(|six| six.interface.as_deref()), Some("wan0"));
    assert_eq!(result.kernel.table, Some(254));
    assert!(result.device.id.is_none() && result.effective.policy.is_none());
    assert_eq!(result.considered.len(), 1);
    assert!(
        !result.considered[0].matched && result.considered[0].reason.contains("laptop"),
        "{:?}",
        result.considered
    );
}

#[test]
fn policies_that_do_not_match_are_listed_up_to_a_limit_and_matches_always() {
    let mut fixture = Fixture::new();
    fixture.device("laptop", LAPTOP);
    let none = json!({"source_type": "subnet", "source_value": "10.9.0.0/16"});
    for priority in 1..=1002 {
        let mut policy = none.clone();
        policy["priority"] = priority.into();
        fixture.policy(policy);
    }
    fixture.policy(
        json!({"name": "last", "priority": 2000, "source_type": "subnet", "source_value": "192.168.1.0/24"}),
    );
    fixture.apply();
    let mac = LAPTOP.parse().expect("an address");
    let result = ask(&fixture, &Request { mac: Some(mac), ..Request::default() });
    assert_eq!((result.considered.len(), result.considered_omitted), (1001, 2));
    let last = result.considered.last().expect("a policy");
    assert!(last.matched && last.reason.starts_with("IPv4: the source 192.168.1."), "{last:?}");
    let matched: Vec<_> = result.matched_policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(matched, ["last"]);
    let first = &result.considered[0];
    assert!(!first.matched && first.reason.ends_with("is not in 10.9.0.0/16"), "{first:?}");
}

#[test]
fn families_that_differ_are_both_reported() {
    let mut fixture = Fixture::new();
    fixture.device("laptop", LAPTOP);
    fixture.tunnel_with("four", &["10.64.0.2/32"]);
    fixture.policy(json!({"name": "p", "priority": 5, "source_type": "all", "hops": [{"type": "vpn", "target": "four"}]}));
    fixture.policy(
        json!({"name": "six", "priority": 1, "source_type": "subnet", "source_value": "fd00:2::/64"}),
    );
    fixture.apply();
    let laptop = fixture.ids["laptop"];
    let result = ask(&fixture, &of(laptop));
    assert_eq!(
        result.sentence,
        r#"laptop -> TUNNEL four (vpn), but IPv6 BLOCKED: policy "p" (priority 5, fail-closed) matched; vpn:four has no way for IPv6"#
    );
    assert_eq!(result.decision, Decision::Tunnel);

    // A router behind the LAN leads to that network.
    fixture.facts.prefixes.insert("lan0".into(), ["fd00:2::/64".parse().expect("a network")].into());
    let source = "fd00:2::9".parse().expect("an address");
    let result = ask(&fixture, &Request { source: Some(source), ..of(laptop) });
    assert_eq!(
        result.sentence,
        r#"laptop -> BLOCKED: policy "six" (priority 1, fail-closed) matched; it has no hops"#
    );
    assert!(result.families.ipv4.is_none());
    assert_eq!(result.matched_policies.len(), 2);
}

#[test]
fn the_more_exposed_family_decides_the_decision() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.policy(json!({"name": "four", "source_type": "subnet", "source_value": "0.0.0.0/0"}));
    fixture.apply();
    let result = ask(&fixture, &of(laptop));
    assert_eq!(result.decision, Decision::Direct);
    assert!(
        result.sentence.contains("BLOCKED")
            && result.sentence.ends_with("but IPv6 DIRECT: no policy matched"),
        "{}",
        result.sentence
    );
    assert_eq!(result.matched_policies.len(), 1);
    assert!(result.matched_policies[0].reason.starts_with("IPv4: "), "{:?}", result.matched_policies);
}

#[test]
fn a_pool_names_all_its_tunnels_and_an_uplink_is_direct() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.tunnel("a");
    fixture.tunnel("b");
    let pool = json!([{"type": "vpn", "target": "a"}, {"type": "vpn", "target": "b"}]);
    fixture.policy(json!({"name": "pool", "source_type": "all", "splitting": true, "hops": pool}));
    fixture.policy(json!({"name": "plain", "priority": 1, "source_type": "destination", "source_value": "203.0.113.0/24", "hops": [{"type": "interface", "target": "wan0"}]}));
    fixture.apply();
    let result = ask(&fixture, &of(laptop));
    assert!(result.sentence.starts_with("laptop -> TUNNEL one of a, b (vpn): "), "{}", result.sentence);
    let result = ask(&fixture, &Request { destination: Some("203.0.113.7:80".into()), ..of(laptop) });
    assert!(
        result.sentence.starts_with(r#"laptop -> DIRECT by wan0: policy "plain""#),
        "{}",
        result.sentence
    );
    assert_eq!(result.decision, Decision::Direct);
    assert_eq!(result.families.ipv4.expect("IPv4").destination, "203.0.113.7:80");
}

#[test]
fn the_default_destination_avoids_policies_for_destinations() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.policy(
        json!({"name": "some", "source_type": "destination", "source_value": "0.0.0.0/2,[2a00::/12]:443"}),
    );
    fixture.apply();
    let result = ask(&fixture, &of(laptop));
    let four = result.families.ipv4.expect("IPv4");
    assert_eq!((four.decision, four.destination.as_str()), (Decision::Direct, "64.1.1.1:443"));
    assert!(
        result.trace.iter().any(|step| step.contains("64.1.1.1 stands for the internet")),
        "{:?}",
        result.trace
    );
    // All of IPv6 that could be asked for has a policy, so the answer says which.
    assert_eq!(result.families.ipv6.expect("IPv6").decision, Decision::Block);
}

#[test]
fn trust_and_status_come_before_policies() {
    let (mut fixture, _) = laptop_bound_to_a();
    for (name, mac, more) in [
        ("blocked", "02:00:00:00:00:11", json!({"status": "blocked"})),
        ("quarantined", "02:00:00:00:00:12", json!({"status": "quarantined"})),
        ("guest", "02:00:00:00:00:13", json!({"trust_class": "guest"})),
    ] {
        let mut input = json!({"name": name, "mac": mac});
        input.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        fixture.create("device", input).expect("a device");
    }
    let sentence = |name: &str| ask(&fixture, &of(fixture.ids[name])).sentence;
    assert_eq!(sentence("blocked"), "blocked -> BLOCKED: the device is blocked");
    assert_eq!(
        sentence("quarantined"),
        r#"quarantined -> BLOCKED: its trust class "quarantine" keeps it off the internet"#
    );
    fixture.facts.addresses.insert("lan9".into(), Default::default());
    fixture.network.lan.push("lan9".into());
    fixture.link("lan9", 9).address("lan9", "192.168.9.1/24");
    let guest = of(fixture.ids["guest"]);
    let result = ask(&fixture, &Request { destination: Some("192.168.9.5".into()), ..guest.clone() });
    assert_eq!(
        result.sentence,
        r#"guest -> BLOCKED: its trust class "guest" keeps it off other networks of the LAN"#
    );
    let result = ask(&fixture, &Request { destination: Some("192.168.1.1".into()), ..guest });
    assert_eq!(result.sentence, "guest -> LOCAL: the destination is the gateway itself");
    assert_eq!(result.families.ipv4.expect("IPv4").via.as_deref(), Some("local"));
}

#[test]
fn stored_changes_that_are_not_applied_are_counted_and_not_considered() {
    let (mut fixture, laptop) = laptop_bound_to_a();
    fixture.state = fixture.state.begin(fixture.now);
    fixture.policy(json!({"name": "new", "priority": 1, "source_type": "all"}));
    let vpn_only = fixture.ids["vpn-only"];
    fixture
        .state
        .update(vpn_only, None, |policy: &mut gateway_model::RoutingPolicy| policy.priority = 2000)
        .expect("an edit");
    let result = ask(&fixture, &of(laptop));
    assert_eq!(result.pending_changes, 2);
    assert_eq!(result.decision, Decision::Tunnel);
    assert_eq!(result.considered.len(), 1);
    assert!(result.trace.last().expect("steps").contains("2 policy changes are saved and not applied"));
}

#[test]
fn tagged_flows_without_an_interface_of_their_own_are_not_fast() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.network.fast_path = true;
    fixture.network.lan.push("lan0.20".into());
    fixture.vlan_link("lan0.20", 20, "lan0", 20).address("lan0.20", "192.168.20.1/24");
    fixture.apply();
    for (vlan, reason) in [(None, None), (Some(20), None), (Some(30), Some("vlan"))] {
        let families = ask(&fixture, &Request { vlan, ..of(laptop) }).families;
        let fast = families.ipv4.expect("a verdict").fast_path;
        assert_eq!((fast.possible, fast.reason), (reason.is_none(), reason), "{vlan:?}");
    }
}

#[test]
fn interface_and_vlan_of_a_request_reach_the_decision() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.network.lan.push("lan0.20".into());
    fixture.vlan_link("lan0.20", 20, "lan0", 20).address("lan0.20", "192.168.20.1/24");
    fixture.network.lan.push("br1".into());
    fixture
        .link("br1", 21)
        .address("br1", "192.168.21.1/24")
        .vlan_link("lan0.60", 22, "lan0", 60)
        .vlan_link("wan0.70", 23, "wan0", 70);
    for port in ["lan0.60", "wan0.70"] {
        fixture.facts.links.get_mut(port).expect("just made").master = Some("br1".to_owned());
    }
    fixture.policy(json!({"name": "child", "source_type": "interface", "source_value": "lan0.20"}));
    fixture.policy(json!({"name": "bridge", "source_type": "interface", "source_value": "br1"}));
    fixture.policy(json!({"name": "tag", "source_type": "vlan", "source_value": "30"}));
    fixture.apply();
    let won = |request: Request| ask(&fixture, &request).effective.policy.map(|policy| policy.name);
    assert_eq!(won(of(laptop)), None);
    assert_eq!(won(Request { interface: Some("lan0.20".into()), ..of(laptop) }).as_deref(), Some("child"));
    assert_eq!(won(Request { vlan: Some(20), ..of(laptop) }).as_deref(), Some("child"));
    let at_parent = Request { interface: Some("lan0".into()), vlan: Some(20), ..of(laptop) };
    assert_eq!(won(at_parent).as_deref(), Some("child"));
    for (parent, tag) in [("lan0", 60), ("wan0", 70)] {
        let at_parent = Request { interface: Some(parent.into()), vlan: Some(tag), ..of(laptop) };
        assert_eq!(won(at_parent).as_deref(), Some("bridge"), "{parent} {tag}");
        assert_eq!(won(Request { vlan: Some(tag), ..of(laptop) }).as_deref(), Some("bridge"), "{tag}");
    }
    assert_eq!(won(Request { vlan: Some(30), ..of(laptop) }).as_deref(), Some("tag"));
    let source = "192.168.20.7".parse().ok();
    assert_eq!(won(Request { source, ..of(laptop) }).as_deref(), Some("child"));
}

#[test]
fn icmp_has_no_port_that_could_match() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", LAPTOP);
    fixture.policy(json!({"name": "web", "source_type": "destination", "source_value": "203.0.113.7:2048,203.0.113.7:443"}));
    fixture.apply();
    let ask = |protocol| {
        ask(&fixture, &Request { destination: Some("203.0.113.7".into()), protocol, ..of(laptop) })
    };
    assert_eq!(ask(None).decision, Decision::Block);
    assert_eq!(ask(Some(Protocol::Udp)).decision, Decision::Block);
    let icmp = ask(Some(Protocol::Icmp));
    assert_eq!(icmp.decision, Decision::Direct);
    assert_eq!(icmp.families.ipv4.expect("IPv4").destination, "203.0.113.7");
}

#[test]
fn an_address_seen_behind_a_device_makes_a_stranger_that_device() {
    let (mut fixture, _) = laptop_bound_to_a();
    fixture.facts.neighbours.insert([2, 0, 0, 0, 0, 1], ["192.168.1.10".parse().expect("an address")].into());
    let mac = "02:00:00:00:00:99".parse().ok();
    let result = ask(&fixture, &Request { mac, source: "192.168.1.10".parse().ok(), ..Request::default() });
    assert_eq!(result.decision, Decision::Tunnel);
    assert!(
        result.trace.iter().any(|step| step.contains("makes it the device laptop")),
        "{:?}",
        result.trace
    );
}

#[test]
fn inconsistent_requests_are_refused_with_every_wrong_field() {
    let (fixture, laptop) = laptop_bound_to_a();
    assert_eq!(problems(&fixture, &Request::default()), ["mac"]);
    let mac = "02:00:00:00:00:99".parse().ok();
    assert_eq!(problems(&fixture, &Request { mac, ..of(laptop) }), ["mac"]);
    let wrong = Request {
        destination: Some("no name".into()),
        vlan: Some(4095),
        interface: Some("wan0".into()),
        port: Some(0),
        ..of(laptop)
    };
    assert_eq!(problems(&fixture, &wrong), ["destination", "port", "vlan", "interface"]);
    let other_family =
        Request { destination: Some("203.0.113.7".into()), family: Some(Family::Ipv6), ..of(laptop) };
    assert_eq!(problems(&fixture, &other_family), ["family"]);
    let port = Request {
        destination: Some("[2001:db8::7]:443".into()),
        protocol: Some(Protocol::Icmp),
        ..of(laptop)
    };
    assert_eq!(problems(&fixture, &port), ["destination"]);
    match evaluate(&fixture.input(), &fixture.compiled(), &of(Id::NIL)) {
        Err(Refusal::NotFound { resource_type, .. }) => assert_eq!(resource_type, "device"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_without_an_address_is_distinguished_by_nothing() {
    let mut fixture = Fixture::new();
    let ghost = fixture.create("device", json!({"name": "ghost"})).expect("a device");
    fixture.policy(json!({"name": "p", "source_type": "device", "source_value": ghost.to_string()}));
    fixture.apply();
    let result = ask(&fixture, &of(ghost));
    assert_eq!(result.decision, Decision::Direct);
    assert!(result.trace.iter().any(|step| step.contains("no MAC address")), "{:?}", result.trace);
}

#[test]
fn a_plan_of_other_policies_is_noticed() {
    let (mut fixture, laptop) = laptop_bound_to_a();
    let old = fixture.compiled();
    fixture.policy(json!({"name": "first", "priority": 1, "source_type": "all"}));
    fixture.apply();
    let result = evaluate(&fixture.input(), &old, &of(laptop)).expect("an answer");
    assert_eq!(result.decision, Decision::Tunnel);
    assert!(
        result.trace.iter().any(|step| step.contains("compiled from other policies")),
        "{:?}",
        result.trace
    );
}

#[test]
fn a_destination_by_name_meets_policies_for_domains() {
    let (mut fixture, laptop) = laptop_bound_to_a();
    fixture.tunnel("wg-b");
    fixture.policy(json!({
        "name": "films", "priority": 1, "source_type": "domain", "source_value": "films.example",
        "hops": [{"type": "vpn", "target": "wg-b"}],
    }));
    fixture.apply();
    let to = |destination: &str| Request { destination: Some(destination.into()), ..of(laptop) };
    let result = ask(&fixture, &to("www.films.example:8443"));
    assert_eq!(result.matched_policies[0].name, "films", "{}", result.sentence);
    assert!(result.matched_policies[0].reason.contains("www.films.example"), "{:?}", result.matched_policies);
    let by_b = result.families.ipv4.expect("a verdict");
    assert_eq!((by_b.via.as_deref(), by_b.destination.ends_with(":8443")), (Some("vpn:wg-b"), true));
    let other = ask(&fixture, &to("www.example"));
    assert_eq!(other.families.ipv6.expect("a verdict").via.as_deref(), Some("vpn:wg-a"));
    // An address alone has no name, unless the device resolved one to it.
    let address = to("203.0.113.80");
    assert_eq!(ask(&fixture, &address).matched_policies[0].name, "vpn-only");
    let name = DomainName::parse("films.example").expect("a name");
    let known = Request { known_as: vec![Name::from(&name)], ..address };
    assert_eq!(ask(&fixture, &known).matched_policies[0].name, "films");
}
