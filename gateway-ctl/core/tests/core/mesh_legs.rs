//! Peers of a mesh as hops of policies.

use gateway_common::wire::{ChoiceKind, EgressAllowKey, LocalKind, Mark};
use gateway_core::compile::{Compiled, CompiledPolicy};
use gateway_core::matrix::per_hop::leak_matrix_per_hop;
use gateway_core::plan::{Plan, RouteKey, RouteValue, names};
use gateway_model::kinds::routing_policy::PolicyStatus;
use serde_json::{Value, json};

use crate::fixture::{Fixture, leg};

const EXIT: &[&str] = &["0.0.0.0/0", "::/0"];

fn policy(name: &str, priority: u32, hops: &[(&str, &str)], more: Value) -> Value {
    let hops: Vec<Value> =
        hops.iter().map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    let mut policy = json!({"name": name, "priority": priority, "source_type": "vlan",
        "source_value": priority.to_string(), "hops": hops});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    policy
}

fn fixture(policies: &[Value]) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    for policy in policies {
        fixture.policy(policy.clone());
    }
    fixture.apply();
    fixture
}

fn found<'a>(compiled: &'a Compiled, name: &str) -> &'a CompiledPolicy {
    compiled.policies.iter().find(|policy| policy.name == name).expect("a policy")
}

/// Interfaces by which new IPv4 flows leave; `Err` is the kind of failure.
fn out(compiled: &Compiled, name: &str) -> Result<Vec<String>, ChoiceKind> {
    let choice = &found(compiled, name).v4;
    let legs = choice.legs.iter().take(usize::from(choice.count));
    match choice.kind() {
        ChoiceKind::Legs => {
            Ok(legs.map(|number| compiled.legs.get(leg(*number)).expect("a leg").interface.clone()).collect())
        }
        kind => Err(kind),
    }
}

fn reason(compiled: &Compiled, name: &str) -> String {
    found(compiled, name).hops[0].reason.clone()
}

fn route<'p>(plan: &'p Plan, number: u8, to: &str, metric: u32) -> Option<&'p RouteValue> {
    let (table, destination) = (names::TABLE_BASE + u32::from(number), to.parse().expect("a network"));
    plan.routes.get(&RouteKey { table, destination, metric })
}

#[test]
fn traffic_leaves_by_the_interface_of_the_peer_and_by_no_other() {
    let mut fixture = fixture(&[policy("p", 1, &[("mesh_peer", "home")], json!({}))]);
    fixture.mesh_peer("home", 250, EXIT);
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "p"), Ok(vec!["mesh250".to_owned()]));
    assert_eq!(found(&compiled, "p").status, PolicyStatus::Active);
    let plan = &compiled.plan;
    let by_peer = RouteValue::Unicast { interface: "mesh250".to_owned(), gateway: None };
    assert_eq!(route(plan, 250, "0.0.0.0/0", 100), Some(&by_peer));
    assert_eq!(route(plan, 250, "::/0", 100), Some(&by_peer));
    for rest in ["0.0.0.0/0", "::/0"] {
        assert_eq!(route(plan, 250, rest, names::METRIC_LAST), Some(&RouteValue::Unreachable), "{rest}");
    }
    for mesh in ["100.64.0.0/10", "fd7a:115c:a1e0::/48"] {
        assert_eq!(route(plan, 250, mesh, 100), Some(&RouteValue::Unreachable), "no peer is behind another");
    }
    let mark = Mark::leg(250).0;
    let allowed: Vec<u32> =
        plan.dataplane.authorised.keys().filter(|key| key.mark == mark).map(|key| key.index).collect();
    assert_eq!(allowed, [fixture.facts.links["mesh250"].index], "its mark leaves by its interface alone");
    let index = fixture.facts.links["mesh0"].index;
    assert!(!plan.dataplane.authorised.contains_key(&EgressAllowKey { mark, index }));
    assert!(plan.nft.tunnels.contains(&"mesh250".to_owned()), "it is masqueraded");
}

/// The main interface and those of peers have the same addresses: packets of this host from them take the main one.
#[test]
fn addresses_in_the_mesh_are_of_the_mesh_alone() {
    let mut fixture = fixture(&[policy("p", 1, &[("mesh_peer", "home")], json!({}))]);
    fixture.mesh_peer("home", 250, EXIT).mesh_peer("office", 249, EXIT);
    let plan = fixture.compiled().plan;
    let own: ipnet::IpNet = "100.64.0.5/32".parse().expect("an address");
    let value = plan.dataplane.locals[&own];
    assert!(value.is(LocalKind::Forbidden) && value.leg == 0, "{value:?}");
    for number in [249, 250] {
        assert!(plan.dataplane.shared_addresses.contains(&(leg(number), own.addr())), "leg {number}");
    }
    let rules: Vec<_> = plan.rules.values().filter(|rule| rule.source == Some(own)).collect();
    assert_eq!(rules.len(), 2);
    assert!(rules.iter().all(|rule| rule.output_interface.is_some()), "{rules:?}");
}

#[test]
fn without_the_peer_the_failure_policy_decides() {
    let peer = [("mesh_peer", "home")];
    let mut fixture = fixture(&[
        policy("closed", 1, &peer, json!({})),
        policy("dropped", 2, &peer, json!({"reject": "drop"})),
        policy("degraded", 3, &peer, json!({"fail_policy": "fail-degraded"})),
        policy("open", 4, &peer, json!({"fail_policy": "fail-open"})),
        policy("next", 5, &[("mesh_peer", "home"), ("vpn", "a")], json!({"hop_mode": "failover"})),
    ]);
    let check = |fixture: &Fixture, expected: &str| {
        let compiled = fixture.compiled();
        let closed = ["closed", "dropped", "degraded", "open"].map(|name| out(&compiled, name));
        let (reject, drop, direct) = (ChoiceKind::Reject, ChoiceKind::Drop, ChoiceKind::Direct);
        assert_eq!(closed, [Err(reject), Err(drop), Err(reject), Err(direct)], "{expected}");
        assert_eq!(out(&compiled, "next"), Ok(vec!["wg-a".to_owned()]));
        assert_eq!(reason(&compiled, "closed"), expected);
    };
    check(&fixture, "this gateway is in no mesh at present");
    fixture.mesh_peer("office", 249, EXIT);
    check(&fixture, "it is not looked for yet");
    let mesh = fixture.facts.mesh.as_mut().expect("a mesh");
    mesh.missing.insert("home".to_owned(), "the mesh has no peer of this name".to_owned());
    check(&fixture, "the mesh has no peer of this name");
    fixture.mesh_peer("home", 250, EXIT);
    assert_eq!(out(&fixture.compiled(), "next"), Ok(vec!["mesh250".to_owned()]));
    fixture.set_peer_usable("home", false);
    check(&fixture, "no answer for 15 s");
    fixture.set_peer_usable("home", true);
    fixture.facts.links.remove("mesh250");
    check(&fixture, "its interface does not exist");
}

#[test]
fn peers_share_flows_with_each_other_and_with_tunnels() {
    let hops = [("mesh_peer", "home"), ("vpn", "a"), ("mesh_peer", "office")];
    let mut fixture = fixture(&[policy("pool", 1, &hops, json!({"splitting": true}))]);
    fixture.mesh_peer("home", 250, EXIT).mesh_peer("office", 249, EXIT);
    let names = |fixture: &Fixture| {
        let mut names = out(&fixture.compiled(), "pool").expect("legs");
        names.sort_unstable();
        names
    };
    assert_eq!(names(&fixture), ["mesh249", "mesh250", "wg-a"]);
    fixture.set_peer_usable("home", false);
    assert_eq!(names(&fixture), ["mesh249", "wg-a"]);
    fixture.set_usable("a", false).set_peer_usable("office", false);
    assert_eq!(out(&fixture.compiled(), "pool"), Err(ChoiceKind::Reject));
}

/// One socket sends the packets of all peers, so none of them can be inside of something else.
#[test]
fn peer_is_reached_through_no_other_hop() {
    let mut fixture = fixture(&[
        policy("behind", 1, &[("vpn", "a"), ("mesh_peer", "home")], json!({})),
        policy("uplink", 2, &[("interface", "wan0"), ("mesh_peer", "home")], json!({})),
    ]);
    fixture.mesh_peer("home", 250, EXIT);
    let compiled = fixture.compiled();
    for name in ["behind", "uplink"] {
        assert_eq!(out(&compiled, name), Err(ChoiceKind::Reject), "{name}");
        assert_eq!(found(&compiled, name).hops[1].reason, "a mesh peer is reached through no other hop");
    }
}

#[test]
fn tunnel_can_be_inside_the_path_to_a_peer() {
    let mut fixture = fixture(&[policy("p", 1, &[("mesh_peer", "home"), ("vpn", "a")], json!({}))]);
    fixture.mesh_peer("home", 250, EXIT);
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "p"), Ok(vec!["wg-a".to_owned()]));
    assert_eq!(compiled.plan.wireguard["wg-a"].fwmark, Mark::carried_by(250));
    fixture.set_peer_usable("home", false);
    assert_eq!(out(&fixture.compiled(), "p"), Err(ChoiceKind::Reject));
}

#[test]
fn peer_with_subnets_takes_those_alone() {
    let mut fixture = fixture(&[policy("p", 1, &[("mesh_peer", "office")], json!({}))]);
    fixture.mesh_peer("office", 249, &["10.50.0.0/16"]);
    let compiled = fixture.compiled();
    assert!(route(&compiled.plan, 249, "10.50.0.0/16", 100).is_some());
    assert_eq!(route(&compiled.plan, 249, "0.0.0.0/0", 100), None);
    let (v4, v6) = (found(&compiled, "p").v4.kind(), found(&compiled, "p").v6.kind());
    assert_eq!((v4, v6), (ChoiceKind::Legs, ChoiceKind::Reject), "it has no IPv6");
}

#[test]
fn number_of_a_tunnel_is_no_peers() {
    let mut fixture = fixture(&[policy("p", 1, &[("mesh_peer", "home")], json!({}))]);
    fixture.mesh_peer("home", 16, EXIT);
    let compiled = fixture.compiled();
    assert_eq!(compiled.legs.get(leg(16)).expect("a leg").interface, "wg-a");
    assert_eq!(out(&compiled, "p"), Err(ChoiceKind::Reject));
}

#[test]
fn leak_matrix_has_a_column_for_each_peer_and_no_leak() {
    let mut fixture = fixture(&[policy("p", 1, &[("mesh_peer", "home")], json!({}))]);
    fixture.mesh_peer("home", 250, EXIT);
    let matrix = leak_matrix_per_hop(&fixture.input());
    let shown = serde_json::to_value(&matrix).expect("a matrix");
    let row = shown["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "p"));
    let cells = row.expect("a row")["cells"].as_object().expect("cells");
    for (state, cell) in cells {
        assert_eq!(cell["leak"], false, "{state}: {cell}");
    }
    assert_eq!(cells["up"]["outcome"], "tunnel", "{cells:?}");
    assert_eq!(cells["mesh peer home down"]["outcome"], "blocked", "{cells:?}");
    assert_eq!(cells["daemon_down"]["outcome"], "blocked", "{cells:?}");
}

#[test]
fn accepted_prefixes_are_behind_all_policies() {
    let mut fixture =
        fixture(&[policy("p", 1, &[("vpn", "a")], json!({"source_type": "all", "source_value": ""}))]);
    fixture.mesh_peer("office", 249, &["10.50.0.0/16", "0.0.0.0/0"]);
    assert_eq!(fixture.compiled().policies.len(), 1, "they are not accepted");
    fixture
        .facts
        .mesh
        .as_mut()
        .and_then(|mesh| mesh.legs.get_mut("office"))
        .expect("a peer")
        .accepts_routes = true;
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "routes of office"), Ok(vec!["mesh249".to_owned()]));
    let ranks: Vec<u32> = compiled.policies.iter().map(|policy| policy.rank.get()).collect();
    assert!(found(&compiled, "routes of office").rank.get() == *ranks.iter().max().expect("a rank"));
    let destinations: Vec<String> =
        compiled.plan.dataplane.destinations.keys().map(ToString::to_string).collect();
    assert_eq!(destinations, ["10.50.0.0/16"], "an exit needs a hop");
    let id = found(&compiled, "routes of office").id;
    assert_eq!(fixture.input().policy(id).expect("a policy").name, "routes of office");
    fixture.set_peer_usable("office", false);
    assert_eq!(out(&fixture.compiled(), "routes of office"), Err(ChoiceKind::Reject));
}
