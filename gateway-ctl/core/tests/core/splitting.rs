//! Pools: which share each member takes, and what becomes of the flows of one that is taken out.

use gateway_common::classify::{IpPacket, TCP};
use gateway_common::decide::evaluate;
use gateway_common::policy_maps::{PolicyInput, PreviousEgress};
use gateway_common::verdict::{Reason, Verdict};
use gateway_common::wire::{Address, ChoiceKind, Mark};
use gateway_core::compile::{Compiled, CompiledPolicy, DRAIN};
use gateway_core::plan_maps::PlanMaps;
use gateway_model::Tunnel;
use gateway_model::kinds::tunnel::AdminState;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Tunnels a, b and c (legs 16, 17 and 18), and a policy over some of them.
fn split(names: &[&str], more: Value) -> Fixture {
    let mut fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.tunnel(name);
    }
    let hops: Value = names.iter().map(|name| json!({"type": "vpn", "target": name})).collect();
    let mut policy =
        json!({"name": "p", "source_type": "all", "source_value": "", "hops": hops, "splitting": true});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fixture.policy(policy);
    fixture.apply();
    fixture
}

fn take_down(fixture: &mut Fixture, name: &str) {
    let (id, now) = (fixture.ids[name], fixture.now);
    let set = |tunnel: &mut Tunnel| tunnel.set_admin_state(AdminState::Down, now);
    fixture.state.update::<Tunnel>(id, None, set).expect("down");
}

fn p(compiled: &Compiled) -> &CompiledPolicy {
    compiled.policies.iter().find(|policy| policy.name == "p").expect("the policy")
}

/// Legs of new flows, and those that are kept.
fn legs(compiled: &Compiled) -> (Vec<u8>, Vec<u8>) {
    let choice = p(compiled).v4;
    assert_eq!(choice, p(compiled).v6);
    let (new, kept) = choice.all().split_at(choice.count.into());
    (new.to_vec(), kept.to_vec())
}

#[test]
fn a_tunnel_that_is_taken_down_drains_for_half_a_minute() {
    let mut fixture = split(&["a", "b"], json!({}));
    assert_eq!(legs(&fixture.compiled()), (vec![16, 17], vec![]));
    take_down(&mut fixture, "a");
    let compiled = fixture.compiled();
    assert_eq!(legs(&compiled), (vec![17], vec![16]));
    assert_eq!(compiled.plan.valid_until, Some(fixture.now + DRAIN));
    assert!(compiled.plan.wireguard.contains_key("wg-a"), "what is in it needs it");
    fixture.now += DRAIN - SignedDuration::from_secs(1);
    assert_eq!(legs(&fixture.compiled()), (vec![17], vec![16]));
    fixture.now += SignedDuration::from_secs(1);
    let compiled = fixture.compiled();
    assert_eq!((legs(&compiled), compiled.plan.valid_until), ((vec![17], vec![]), None));
    assert!(!compiled.plan.wireguard.contains_key("wg-a"));
}

#[test]
fn a_leg_without_an_alternative_is_down_at_once() {
    for (names, more) in [
        (&["a"][..], json!({})),
        (&["a", "b"], json!({"splitting": false})),
        (&["a", "b"], json!({"splitting": false, "hop_mode": "failover", "sticky": "source"})),
    ] {
        let mut fixture = split(names, more);
        take_down(&mut fixture, "a");
        assert!(!fixture.compiled().plan.wireguard.contains_key("wg-a"), "{names:?}");
    }
    let mut fixture = split(&["a", "b"], json!({}));
    fixture.set_usable("b", false);
    take_down(&mut fixture, "a");
    let compiled = fixture.compiled();
    assert!(!compiled.plan.wireguard.contains_key("wg-a"));
    assert_eq!(p(&compiled).v4.kind(), ChoiceKind::Reject);
    // Nor does a disabled one drain, nor one that lost its interface.
    let mut fixture = split(&["a", "b"], json!({}));
    take_down(&mut fixture, "a");
    fixture.facts.links.remove("wg-a");
    assert_eq!(legs(&fixture.compiled()), (vec![17], vec![]));
}

#[test]
fn a_failover_keeps_the_flows_of_a_first_hop_that_was_taken_down() {
    let mut fixture = split(&["a", "b"], json!({"splitting": false, "hop_mode": "failover"}));
    assert_eq!(legs(&fixture.compiled()), (vec![16], vec![17]));
    take_down(&mut fixture, "a");
    assert_eq!(legs(&fixture.compiled()), (vec![17], vec![16]));
}

#[test]
fn endpoints_weigh_and_take_out_without_an_apply() {
    let mut fixture = split(&["a", "b"], json!({}));
    fixture.create("splitting_endpoint", json!({"tunnel": "a", "weight": 3})).expect("endpoint");
    assert_eq!(legs(&fixture.compiled()), (vec![16, 16, 17, 16], vec![]));
    // What is said of this policy goes before what is said of all.
    let id = fixture.ids["p"].to_string();
    let own = json!({"tunnel": "a", "weight": 1, "enabled": false, "policy_id": id});
    fixture.create("splitting_endpoint", own).expect("endpoint");
    let compiled = fixture.compiled();
    assert_eq!(legs(&compiled), (vec![17], vec![16]));
    assert_eq!(p(&compiled).hops[0].reason, "its splitting endpoint is disabled");
    fixture.now += DRAIN;
    assert_eq!(legs(&fixture.compiled()), (vec![17], vec![]));
    assert!(fixture.compiled().plan.wireguard.contains_key("wg-a"), "the tunnel itself is up");
}

#[test]
fn a_kept_leg_fits_among_any_weights() {
    let mut fixture = split(&["a", "b", "c"], json!({}));
    for (tunnel, weight) in [("a", 16), ("b", 15)] {
        fixture.create("splitting_endpoint", json!({"tunnel": tunnel, "weight": weight})).expect("endpoint");
    }
    take_down(&mut fixture, "c");
    let (new, kept) = legs(&fixture.compiled());
    assert_eq!(kept, [18]);
    assert!(new.len() <= 15 && new.contains(&16) && new.contains(&17), "{new:?}");
}

/// Returns the verdict for a segment of an established connection on leg 16.
fn decided(compiled: &Compiled, opening: bool) -> Verdict {
    let packet = IpPacket {
        source: Address::v4([192, 168, 1, 7]),
        destination: Address::v4([203, 0, 113, 80]),
        interface: 2,
        protocol: TCP,
        opening,
        ..IpPacket::default()
    };
    let environment = PlanMaps::new(Some(&compiled.plan.dataplane));
    let mut verdict = Verdict::DROP;
    let plan = compiled.plan.dataplane.header;
    let question = PolicyInput {
        slot: 1,
        plan,
        previous: PreviousEgress { leg: 16, ..PreviousEgress::NONE },
        recorded: true,
        continued: true,
        ..PolicyInput::default()
    };
    evaluate(&packet, &question, &environment, &mut verdict);
    verdict
}

#[test]
fn an_orphaned_connection_is_reset_and_a_new_one_takes_another_leg() {
    let mut fixture = split(&["a", "b"], json!({}));
    let leg = |verdict: Verdict| (verdict.reason, verdict.leg);
    assert_eq!(leg(decided(&fixture.compiled(), false)), (Reason::PolicyEgress, 16));
    fixture.set_usable("a", false);
    let verdict = decided(&fixture.compiled(), false);
    assert_eq!((leg(verdict), verdict.mark), ((Reason::PolicyReset, 16), Mark::RESET.0));
    assert_eq!(leg(decided(&fixture.compiled(), true)), (Reason::PolicyEgress, 17));
    // With nowhere to go it is rejected, and waits for its tunnel.
    fixture.set_usable("b", false);
    assert_eq!(decided(&fixture.compiled(), false).reason, Reason::PolicyReject);
}
