//! Ways of several hops: what carries what, when it moves, and how large its packets are.

use gateway_common::wire::{ChoiceKind, Mark};
use gateway_core::compile::{Compiled, CompiledPolicy, Leg, Underlay};
use gateway_core::indexes::LegId;
use gateway_core::network::UplinkSettings;
use gateway_model::kinds::routing_policy::{FailPolicy, HopType, PolicyStatus};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::fixture::{Fixture, leg as leg_id};

fn hops(names: &[&str]) -> Value {
    let kind = |name: &str| match name {
        "wan0" | "wan1" => "interface",
        "mesh" => "mesh_peer",
        _ => "vpn",
    };
    names.iter().map(|name| json!({"type": kind(name), "target": name})).collect()
}

fn policy(name: &str, priority: u32, names: &[&str], more: Value) -> Value {
    let mut policy = json!({"name": name, "priority": priority, "source_type": "vlan", "source_value": priority.to_string(), "hops": hops(names)});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    policy
}

/// Two uplinks, and tunnels a, b and c.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.network.uplinks.push(UplinkSettings {
        number: leg_id(2),
        interface: "wan1".into(),
        ..UplinkSettings::default()
    });
    fixture.link("wan1", 4).address("wan1", "198.51.101.2/24");
    fixture.default_route("wan1", "198.51.101.1").default_route("wan1", "2001:db8:fffe::1");
    for name in ["a", "b", "c"] {
        fixture.tunnel(name);
    }
    fixture
}

fn world_with(policies: &[Value]) -> Fixture {
    let mut fixture = fixture();
    for policy in policies {
        fixture.policy(policy.clone());
    }
    fixture.apply();
    fixture
}

fn leg<'a>(compiled: &'a Compiled, name: &str) -> &'a Leg {
    compiled.legs.tunnel(name).or_else(|| compiled.legs.uplink(name)).expect("a leg")
}

fn over(compiled: &Compiled, name: &str) -> Underlay {
    Underlay::Leg(leg(compiled, name).number)
}

fn found<'a>(compiled: &'a Compiled, name: &str) -> &'a CompiledPolicy {
    compiled.policies.iter().find(|policy| policy.name == name).expect("a policy")
}

/// The tunnel or uplink by which new flows leave; `Err` is the kind of failure.
fn out(compiled: &Compiled, name: &str) -> Result<String, ChoiceKind> {
    let choice = &found(compiled, name).v4;
    assert_eq!(choice, &found(compiled, name).v6);
    match choice.kind() {
        ChoiceKind::Legs => Ok(compiled.legs.get(leg_id(choice.legs[0])).expect("a leg").interface.clone()),
        kind => Err(kind),
    }
}

#[test]
fn each_hop_is_carried_by_the_one_before() {
    let fixture = world_with(&[policy("p", 1, &["wan1", "a", "b"], json!({}))]);
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "p").as_deref(), Ok("wg-b"));
    assert_eq!(
        (leg(&compiled, "b").underlay, leg(&compiled, "a").underlay),
        (over(&compiled, "a"), over(&compiled, "wan1"))
    );
    assert_eq!(leg(&compiled, "c").underlay, Underlay::Default);
    let marks = ["wg-a", "wg-b", "wg-c"].map(|name| compiled.plan.wireguard[name].fwmark.0);
    assert_eq!(marks, [0x4701_0002, 0x4701_0010, 0x4701_0000]);
    assert_eq!([leg(&compiled, "a").mtu, leg(&compiled, "b").mtu], [1420, 1340]);
}

#[test]
fn a_path_that_degrades_leaves_out_what_is_down_and_others_stay_closed() {
    let degrades = json!({"fail_policy": "fail-degraded"});
    let mut fixture = world_with(&[
        policy("degrades", 1, &["wan1", "a", "b"], degrades),
        policy("closed", 2, &["a", "b"], json!({})),
        policy("open", 3, &["a", "b"], json!({"fail_policy": "fail-open"})),
        policy("alone", 4, &["b"], json!({})),
    ]);
    let compiled = fixture.compiled();
    for name in ["degrades", "closed", "open", "alone"] {
        assert_eq!(out(&compiled, name).as_deref(), Ok("wg-b"), "{name}");
        assert_eq!(found(&compiled, name).status, PolicyStatus::Active, "{name}");
    }
    fixture.set_usable("a", false);
    let compiled = fixture.compiled();
    assert_eq!(leg(&compiled, "b").underlay, over(&compiled, "wan1"));
    assert_eq!(leg(&compiled, "b").mtu, 1420);
    assert_eq!(out(&compiled, "degrades").as_deref(), Ok("wg-b"));
    assert_eq!(found(&compiled, "degrades").status, PolicyStatus::Degraded);
    assert_eq!(out(&compiled, "closed"), Err(ChoiceKind::Reject));
    let hops = &found(&compiled, "closed").hops;
    assert_eq!(hops[1].reason, "it is carried by wan1 at present");
    assert_eq!(out(&compiled, "open"), Err(ChoiceKind::Direct));
    assert_eq!(out(&compiled, "alone").as_deref(), Ok("wg-b"));
    fixture.facts.links.get_mut("wan1").expect("a link").up = false;
    let compiled = fixture.compiled();
    assert_eq!(leg(&compiled, "b").underlay, Underlay::Default);
    assert_eq!(out(&compiled, "degrades").as_deref(), Ok("wg-b"));
    fixture.set_usable("b", false);
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "degrades"), Err(ChoiceKind::Reject), "an uplink alone is no way");
}

#[test]
fn without_its_carrier_a_tunnel_does_not_show_itself() {
    let mut fixture =
        world_with(&[policy("p", 1, &["a", "b"], json!({})), policy("mesh", 2, &["mesh", "c"], json!({}))]);
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "mesh"), Err(ChoiceKind::Reject));
    assert_eq!(compiled.plan.wireguard["wg-c"].fwmark, Mark::OWN_NOWHERE);
    let id = fixture.ids["a"].to_string();
    gateway_model::registry::kind("tunnel")
        .expect("a kind")
        .delete(&mut fixture.state, &id, None, true)
        .expect("gone");
    let compiled = fixture.compiled();
    assert_eq!(leg(&compiled, "b").underlay, Underlay::Nowhere);
    assert_eq!(leg(&compiled, "b").reason, "vpn a below it is missing");
    assert_eq!(compiled.plan.wireguard["wg-b"].fwmark, Mark::OWN_NOWHERE);
    assert_eq!(out(&compiled, "p"), Err(ChoiceKind::Reject));
    // Down and there is another matter: what it sends ends in the table of the one below.
    let mut fixture = world_with(&[policy("p", 1, &["a", "b"], json!({}))]);
    fixture.set_usable("a", false);
    assert_eq!(leg(&fixture.compiled(), "b").underlay, over(&fixture.compiled(), "a"));
}

#[test]
fn a_mesh_peer_is_skipped_where_the_policy_degrades() {
    let degrades = json!({"fail_policy": "fail-degraded"});
    let fixture = world_with(&[policy("p", 1, &["mesh", "c"], degrades)]);
    let compiled = fixture.compiled();
    assert_eq!(out(&compiled, "p").as_deref(), Ok("wg-c"));
    assert_eq!(leg(&compiled, "c").underlay, Underlay::Default);
    assert_eq!(found(&compiled, "p").hops[0].reason, "this gateway is in no mesh at present");
}

/// Policies that contradict one another are not in force together, unless the clock is set back.
#[test]
fn tunnels_are_never_carried_in_a_circle() {
    let past = json!({"expires_at": "2026-11-20T11:00:00Z"});
    let mut fixture =
        world_with(&[policy("p", 1, &["a", "b"], past), policy("q", 2, &["b", "a"], json!({}))]);
    assert_eq!(leg(&fixture.compiled(), "a").underlay, over(&fixture.compiled(), "b"));
    fixture.now = "2026-11-20T10:00:00Z".parse().expect("a time");
    let compiled = fixture.compiled();
    let mut at = leg(&compiled, "a").underlay;
    for _ in 0..3 {
        at = at.leg().and_then(|leg| compiled.legs.get(leg)).map_or(Underlay::Nowhere, |leg| leg.underlay);
    }
    assert_eq!(at, Underlay::Nowhere, "{:?}", compiled.legs);
}

#[test]
fn a_tunnel_keeps_to_its_own_uplink_and_contradictions_are_refused() {
    let mut fixture = fixture();
    let tunnel = |uplink: &str| {
        json!({"name": "d", "type": "wireguard", "private_key": crate::fixture::PRIVATE_KEY, "addresses": ["10.64.0.4/32"],
               "uplink": uplink, "peers": []})
    };
    fixture.create("tunnel", tunnel("wan1")).expect("a tunnel");
    let underlay = |fixture: &Fixture| leg(&fixture.compiled(), "d").underlay;
    assert_eq!(underlay(&fixture), Underlay::Leg(leg_id(2)));
    for first in ["wan0", "a"] {
        let refused = fixture.create("routing_policy", policy("p", 1, &[first, "d"], json!({})));
        let error = refused.expect_err("two underlays");
        assert!(matches!(error, gateway_model::EditError::PolicyConflict { .. }), "{error}");
        assert!(error.to_string().contains("\"p\"") && error.to_string().contains("wan1"), "{error}");
    }
    let id = fixture.policy(policy("p", 1, &["wan1", "d"], json!({})));
    let kind = gateway_model::registry::kind("tunnel").expect("a kind");
    let change = |fixture: &mut Fixture, uplink: &str| {
        let own = fixture.ids["d"].to_string();
        kind.replace(&mut fixture.state, &own, None, tunnel(uplink)).map(drop)
    };
    match change(&mut fixture, "wan0").expect_err("the policy demands another") {
        gateway_model::EditError::PolicyConflict { policies, reason } => {
            assert_eq!(policies, [id]);
            assert!(reason.contains("\"p\""), "{reason}");
        }
        other => panic!("{other}"),
    }
    change(&mut fixture, "auto").expect("no contradiction");
    fixture.apply();
    assert_eq!(underlay(&fixture), Underlay::Leg(leg_id(2)));
}

#[test]
fn packets_fit_what_carries_them() {
    let mut fixture = world_with(&[policy("p", 1, &["wan1", "a", "b"], json!({}))]);
    let mtu = |fixture: &Fixture, name: &str| leg(&fixture.compiled(), name).mtu;
    // PPPoE, and a link for jumbo frames: the internet behind it takes none.
    fixture.facts.links.get_mut("wan1").expect("a link").mtu = 1492;
    assert_eq!((mtu(&fixture, "a"), mtu(&fixture, "b"), mtu(&fixture, "c")), (1412, 1332, 1412));
    fixture.facts.links.get_mut("wan1").expect("a link").mtu = 9000;
    assert_eq!((mtu(&fixture, "a"), mtu(&fixture, "b"), mtu(&fixture, "c")), (1420, 1340, 1420));
    // What is set by hand counts so far as it fits; the peers' endpoint is IPv4.
    let set = |fixture: &mut Fixture, name: &str, mtu: u16| {
        let id = fixture.ids[name].to_string();
        let kind = gateway_model::registry::kind("tunnel").expect("a kind");
        let (mut object, _) = kind.get(&fixture.state, &id).expect("a tunnel");
        object["mtu"] = mtu.into();
        kind.replace(&mut fixture.state, &id, None, object).expect("set");
    };
    fixture.facts.links.get_mut("wan1").expect("a link").mtu = 1500;
    set(&mut fixture, "a", 1460);
    set(&mut fixture, "b", 1000);
    set(&mut fixture, "c", 1430);
    assert_eq!((mtu(&fixture, "a"), mtu(&fixture, "b"), mtu(&fixture, "c")), (1440, 1000, 1430));
}

#[test]
fn a_flow_stays_in_its_tunnel_when_the_first_comes_back() {
    let failover = json!({"hop_mode": "failover"});
    let mut by_source = failover.clone();
    by_source["sticky"] = json!("source");
    let mut fixture = world_with(&[
        policy("flows", 1, &["a", "b", "wan1", "c"], failover),
        policy("sources", 2, &["a", "b"], by_source),
    ]);
    let legs = |fixture: &Fixture, name: &str| {
        let compiled = fixture.compiled();
        let policy = found(&compiled, name);
        (
            policy.v4.legs[..usize::from(policy.v4.count)].to_vec(),
            policy.v4.all()[usize::from(policy.v4.count)..].to_vec(),
        )
    };
    // Not on an uplink: what had to go out directly is to come back.
    assert_eq!(legs(&fixture, "flows"), (vec![16], vec![17, 18]));
    assert_eq!(legs(&fixture, "sources"), (vec![16], vec![]));
    fixture.set_usable("a", false);
    assert_eq!(legs(&fixture, "flows"), (vec![17], vec![18]));
    fixture.set_usable("b", false);
    assert_eq!(legs(&fixture, "flows"), (vec![2], vec![18]));
    let compiled = fixture.compiled();
    assert!(
        compiled.plan.rules.len() > 4 && compiled.legs_in_use().contains(&leg_id(18)),
        "kept legs need their rules"
    );
}

#[derive(Clone, Debug)]
struct Plan {
    names: Vec<&'static str>,
    fail_policy: &'static str,
    mode: &'static str,
}

fn plan() -> impl Strategy<Value = Plan> {
    let names =
        (any::<bool>(), subsequence(vec!["a", "b", "c"], 1..=3).prop_shuffle(), any::<bool>(), any::<bool>());
    let names = names.prop_map(|(uplink, tunnels, second, mesh)| {
        let first = uplink.then_some(if second { "wan1" } else { "wan0" });
        first.into_iter().chain(mesh.then_some("mesh").filter(|_| second)).chain(tunnels).collect()
    });
    let fail_policy = select(vec!["fail-closed", "fail-degraded", "fail-open"]);
    (names, fail_policy, select(vec!["path", "path", "failover", "pool"]))
        .prop_map(|(names, fail_policy, mode)| Plan { names, fail_policy, mode })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever is down: nothing goes round, nothing goes where no policy lets it, and a closed path is the whole path.
    #[test]
    fn an_egress_follows_its_policy_or_its_failure_policy(
        plans in prop::collection::vec(plan(), 1..5),
        down in subsequence(vec!["a", "b", "c", "wan0", "wan1"], 0..4),
    ) {
        let mut fixture = fixture();
        for (n, plan) in plans.iter().enumerate() {
            let mut more = json!({"fail_policy": plan.fail_policy});
            match plan.mode {
                "failover" => more["hop_mode"] = "failover".into(),
                "pool" => more["splitting"] = true.into(),
                _ => {}
            }
            // Contradictions and hops in the wrong place are refused: that is another test's matter.
            let n = u32::try_from(n).expect("few") + 1;
            let _ = fixture.create("routing_policy", policy(&format!("p{n}"), n, &plan.names, more));
        }
        fixture.apply();
        for name in &down {
            match *name {
                "wan0" | "wan1" => fixture.facts.links.get_mut(*name).expect("a link").up = false,
                name => { fixture.set_usable(name, false); }
            }
        }
        let compiled = fixture.compiled();
        check_carriers(&fixture, &compiled);
        for policy in &compiled.policies {
            check_policy(&fixture, &compiled, policy, down.is_empty());
        }
    }
}

fn check_carriers(fixture: &Fixture, compiled: &Compiled) {
    for tunnel in ["a", "b", "c"] {
        let own = leg(compiled, tunnel);
        let mut at = own.underlay;
        for _ in 0..4 {
            at = at
                .leg()
                .and_then(|number| compiled.legs.get(number))
                .map_or(Underlay::Default, |leg| leg.underlay);
        }
        assert_eq!(at, Underlay::Default, "{tunnel} goes round");
        let below = own.underlay.leg().map(|number| compiled.legs.get(number).expect("a leg"));
        if let Some(below) = below {
            assert!(own.mtu + 60 <= below.mtu || own.mtu == 1280, "{tunnel} does not fit");
            assert!(!own.usable || below.usable, "{tunnel} is usable without what carries it");
        }
        // Where every policy wants it whole, it is nowhere else.
        let applied = fixture.state.applied.policies.iter();
        let mut demands = applied.filter_map(|policy| {
            Some((policy.fail_policy, policy.underlays().get(tunnel).copied().cloned()?))
        });
        if let Some((_, under)) = demands.next().filter(|(fail, _)| *fail != Some(FailPolicy::Degraded))
            && demands.all(|(fail, _)| fail != Some(FailPolicy::Degraded))
        {
            let wanted =
                compiled.legs.of_hop(&under).map_or(Underlay::Nowhere, |leg| Underlay::Leg(leg.number));
            assert!([wanted, Underlay::Nowhere].contains(&own.underlay), "{tunnel} is by {:?}", own.underlay);
        }
    }
}

fn check_policy(fixture: &Fixture, compiled: &Compiled, policy: &CompiledPolicy, all_up: bool) {
    let stored = fixture.input().policy(policy.id).expect("a policy");
    let mut all = fixture.state.applied.policies.iter().flat_map(|policy| &policy.hops);
    let has_mesh = all.any(|hop| hop.r#type == HopType::MeshPeer);
    if policy.v4.kind() != ChoiceKind::Legs {
        assert_eq!(
            policy.v4.kind() == ChoiceKind::Direct,
            policy.fail_policy == FailPolicy::Open,
            "{policy:?}"
        );
        assert!(!all_up || has_mesh, "everything is up: {policy:?} {:?}", compiled.legs);
        return;
    }
    for number in policy.v4.all() {
        let leg = compiled.legs.get(leg_id(*number)).expect("a leg");
        assert!(leg.usable, "{policy:?}");
        assert!(
            stored
                .hops
                .iter()
                .any(|hop| compiled.legs.of_hop(hop).is_some_and(|hop| hop.number.get() == *number))
        );
    }
    let path = stored.hop_mode == gateway_model::kinds::routing_policy::HopMode::Path && !stored.is_pool();
    if !path {
        return;
    }
    let mut carriers = Vec::new();
    let mut at = Underlay::Leg(leg_id(policy.v4.legs[0]));
    while let Some(number) = at.leg() {
        carriers.push(number);
        at = compiled.legs.get(number).expect("a leg").underlay;
    }
    carriers.reverse();
    let wanted: Vec<LegId> = policy.hops.iter().filter(|hop| hop.usable).filter_map(|hop| hop.leg).collect();
    if policy.fail_policy == FailPolicy::Degraded {
        let mut rest = carriers.iter();
        assert!(wanted.iter().all(|leg| rest.any(|underlay| underlay == leg)), "{wanted:?} in {carriers:?}");
    } else {
        assert!(
            policy.hops.iter().all(|hop| hop.usable) && carriers.ends_with(&wanted),
            "{wanted:?}, {carriers:?}"
        );
    }
}
