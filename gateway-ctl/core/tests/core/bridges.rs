//! Bridges: what becomes of a tunnel that names one, and which place a segment has among the policies.

use gateway_common::wire::{ChoiceKind, Mark};
use gateway_core::compile::Compiled;
use gateway_core::facts::TransportFact;
use gateway_core::plan::TransportKind;
use gateway_model::kinds::bridge::Bridge;
use gateway_model::registry::kind;
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Two tunnels, of which `a` names a bridge.
fn fixture(transport: Value) -> Fixture {
    let mut fixture = Fixture::new();
    let bridge = json!({"name": "over", "kind": "transport", "transport": transport});
    fixture.create("bridge", bridge).expect("a bridge");
    for name in ["a", "b"] {
        fixture.tunnel(name);
    }
    edit(&mut fixture, "tunnel", "a", |tunnel| tunnel["bridge"] = json!("over"));
    fixture
}

fn edit(fixture: &mut Fixture, noun: &str, name: &str, change: impl FnOnce(&mut Value)) {
    let kind = kind(noun).expect("a kind");
    let id = fixture.ids[name].to_string();
    let (mut value, _) = kind.get(&fixture.state, &id).expect("an object");
    change(&mut value);
    kind.replace(&mut fixture.state, &id, None, value).expect("replaced");
}

fn udp2tcp() -> Value {
    json!({"type": "udp2tcp", "address": "192.0.2.8", "port": 443})
}

fn connected(fixture: &mut Fixture, connected: bool) {
    let fact = TransportFact { connected, reason: if connected { "" } else { "refused" }.to_owned() };
    fixture.facts.transports.insert(fixture.ids["a"].to_string(), fact);
}

fn reason(compiled: &Compiled) -> &str {
    &compiled.legs.tunnel("a").expect("a leg").reason
}

#[test]
fn a_tunnel_over_a_bridge_knows_a_loopback_address_only() {
    let mut fixture = fixture(udp2tcp());
    assert_eq!(reason(&fixture.compiled()), "its bridge over is not connected: it has not been tried yet");
    connected(&mut fixture, true);
    let compiled = fixture.compiled();
    assert_eq!(reason(&compiled), "");
    let device = &compiled.plan.wireguard["wg-a"];
    assert_eq!(device.fwmark, Mark::OWN_NOWHERE, "whatever it sends elsewhere is rejected");
    let endpoints: Vec<String> =
        device.peers.values().filter_map(|p| p.endpoint).map(|e| e.to_string()).collect();
    assert_eq!(endpoints, ["127.71.0.16:4703"]);
    let transport = &compiled.plan.transports[&fixture.ids["a"].to_string()];
    assert_eq!((transport.mark, transport.kind.clone()), (Some(Mark::OWN), TransportKind::Udp2Tcp));
    assert_eq!(transport.near.to_string(), "127.71.0.16:4703");
    assert_eq!(transport.address.map(|at| at.to_string()).as_deref(), Some("192.0.2.8:443"));
    // The other tunnel is none of its business.
    assert_eq!((compiled.plan.transports.len(), compiled.plan.wireguard["wg-b"].fwmark), (1, Mark::OWN));
    assert_eq!(compiled.legs.tunnel("a").expect("a leg").mtu, 1500 - 40 - 34 - 32);
}

#[test]
fn a_bridge_is_carried_by_what_should_carry_the_tunnel() {
    let mut fixture = fixture(udp2tcp());
    connected(&mut fixture, true);
    let hops = json!([{"type": "vpn", "target": "b"}, {"type": "vpn", "target": "a"}]);
    fixture.policy(json!({"name": "p", "source_type": "all", "hops": hops}));
    fixture.apply();
    let compiled = fixture.compiled();
    let b = compiled.legs.tunnel("b").expect("a leg").number;
    assert_eq!(compiled.plan.transports[&fixture.ids["a"].to_string()].mark, Some(Mark::carried_by(b.get())));
    assert_eq!(compiled.plan.wireguard["wg-a"].fwmark, Mark::OWN_NOWHERE);
}

#[test]
fn a_tunnel_without_its_bridge_is_unavailable_and_still_sends_nothing_elsewhere() {
    let mut fixture = fixture(udp2tcp());
    fixture.policy(json!({"name": "p", "source_type": "all", "hops": [{"type": "vpn", "target": "a"}]}));
    fixture.apply();
    connected(&mut fixture, true);
    assert_eq!(fixture.compiled().policies[0].v4.kind(), ChoiceKind::Legs);
    connected(&mut fixture, false);
    let compiled = fixture.compiled();
    assert_eq!(reason(&compiled), "its bridge over is not connected: refused");
    assert_eq!(compiled.policies[0].v4.kind(), ChoiceKind::Reject);
    connected(&mut fixture, true);
    edit(&mut fixture, "bridge", "over", |bridge| bridge["enabled"] = json!(false));
    let compiled = fixture.compiled();
    assert_eq!(reason(&compiled), "its bridge over is disabled");
    assert_eq!(compiled.policies[0].v6.kind(), ChoiceKind::Reject);
    assert!(compiled.plan.transports.is_empty());
    let device = &compiled.plan.wireguard["wg-a"];
    assert_eq!(device.fwmark, Mark::OWN_NOWHERE);
    assert!(device.peers.values().all(|peer| peer.endpoint.is_some_and(|at| at.ip().is_loopback())));
}

#[test]
fn a_proxy_receives_the_address_of_the_peer() {
    let mut fixture = fixture(json!({"type": "socks5", "address": "proxy.example", "port": 1080}));
    let compiled = fixture.compiled();
    let transport = &compiled.plan.transports[&fixture.ids["a"].to_string()];
    assert_eq!(transport.kind, TransportKind::Socks5 { to: "203.0.113.9:51820".into() });
    assert_eq!(transport.address, None);
    let at = "192.0.2.9:1080".parse().expect("an address");
    fixture.facts.endpoints.insert("proxy.example:1080".into(), at);
    let compiled = fixture.compiled();
    assert_eq!(compiled.plan.transports[&fixture.ids["a"].to_string()].address, Some(at));
    assert_eq!(compiled.legs.tunnel("a").expect("a leg").mtu, 1500 - 40 - 8 - 6 - 17 - 32);
}

#[test]
fn a_segment_ranks_after_all_policies_and_fails_closed() {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    let object = json!({
        "name": "guests", "kind": "segment", "source": {"type": "interface", "value": "lan0"},
        "target": {"type": "vpn", "target": "a"},
    });
    let id = fixture.create("bridge", object).expect("a bridge");
    fixture.policy(json!({"name": "p", "source_type": "vlan", "source_value": "7", "hops": []}));
    fixture.apply();
    let compiled = fixture.compiled();
    let names: Vec<&str> = compiled.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["p", "bridge guests"]);
    assert_eq!(compiled.policies[1].v4.kind(), ChoiceKind::Legs);
    assert_eq!(
        fixture.input().policy(id).map(|policy| policy.name.clone()).as_deref(),
        Some("bridge guests")
    );
    fixture.set_usable("a", false);
    assert_eq!(fixture.compiled().policies[1].v4.kind(), ChoiceKind::Reject);
    edit(&mut fixture, "bridge", "guests", |bridge| bridge["enabled"] = json!(false));
    assert_eq!(fixture.compiled().policies.len(), 1);
    assert!(fixture.state.find::<Bridge>("guests").is_some());
}
