//! Inputs of plans in parts: put together again, they compile to the same plan, and contain no secret.

use std::sync::Arc;

use gateway_core::compile::compile;
use gateway_core::evaluate::past::evaluate_at;
use gateway_core::evaluate::{Decision, Request, evaluate};
use gateway_core::facts::ProxyFact;
use gateway_core::plan_history::{Content, Entry, InForce, Part, Parts, PlanInputs, RecordHeader, digest};
use gateway_model::{Id, Revision};
use serde_json::json;

use crate::fixture::{Fixture, PRESHARED_KEY, PRIVATE_KEY, leg};

/// A gateway with an object of each kind that decides on traffic.
fn fixture() -> (Fixture, Id) {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", "02:00:00:00:00:01");
    fixture.tunnel("a");
    fixture.tunnel("b");
    fixture.facts.neighbours.insert([2, 0, 0, 0, 0, 1], ["192.168.1.20".parse().expect("an address")].into());
    fixture.facts.neighbours.insert([2, 0, 0, 0, 0, 2], ["fd00:1::7".parse().expect("an address")].into());
    let proxy = ProxyFact { usable: true, reason: String::new(), udp: true };
    fixture.facts.proxies.insert("office".into(), [(None, proxy.clone()), (Some(leg(16)), proxy)].into());
    fixture.facts.uplinks.failed.insert(leg(1), "no answer".into());
    for (name, hop) in [("through a", "a"), ("through b", "b")] {
        let policy = json!({
            "name": name, "source_type": "device", "source_value": laptop.to_string(),
            "hops": [{"type": "vpn", "target": hop}], "priority": 100, "enabled": hop == "a",
        });
        fixture.create("routing_policy", policy).expect("a policy");
    }
    fixture.state.freeze_applied();
    (fixture, laptop)
}

fn inputs(fixture: &Fixture) -> PlanInputs {
    PlanInputs {
        state: Arc::new(fixture.state.clone()),
        network: Arc::new(fixture.network.clone()),
        facts: Arc::new(fixture.facts.clone()),
        compiled_at: fixture.now,
    }
}

fn apply(parts: &mut Parts, changed: Vec<Part>) {
    changed.into_iter().for_each(|part| part.apply(parts));
}

fn digest_of(inputs: &PlanInputs) -> u64 {
    digest(&compile(&inputs.input()).plan.dataplane)
}

#[test]
fn restored_inputs_compile_to_the_same_plan() {
    let (fixture, _) = fixture();
    let before = inputs(&fixture);
    let mut parts = Parts::new();
    apply(&mut parts, before.parts_since(None));
    let restored = PlanInputs::of_parts(&parts, before.compiled_at).expect("parts");
    assert_eq!((&restored.facts, &restored.network), (&before.facts, &before.network));
    assert_eq!(restored.state.revision, before.state.revision);
    let (plan, again) = (compile(&before.input()).plan, compile(&restored.input()).plan);
    assert_eq!(again.dataplane, plan.dataplane);
    assert_eq!((&again.routes, &again.rules, &again.nft), (&plan.routes, &plan.rules, &plan.nft));
    assert_eq!(digest(&again.dataplane), digest(&plan.dataplane));
}

#[test]
fn each_change_follows_from_the_parts_that_it_changed() {
    let (mut fixture, laptop) = fixture();
    let mut parts = Parts::new();
    let mut last = inputs(&fixture);
    apply(&mut parts, last.parts_since(None));
    let mut digests = vec![digest_of(&last)];
    let id = fixture.ids["through a"];
    for step in 0..6 {
        // The state of the gateway is copied on each write, so that rows that stay are shared.
        fixture.state = last.state.begin(fixture.now);
        match step {
            0 => drop(fixture.facts.neighbours.remove(&[2, 0, 0, 0, 0, 2])),
            1 => {
                fixture.set_usable("a", false);
            }
            2 => {
                fixture.state.remove::<gateway_model::RoutingPolicy>(id, None, true).expect("removed");
                fixture.state.freeze_applied();
            }
            3 => fixture.state.set("privacy.mode", json!("system")),
            4 => {
                fixture
                    .state
                    .update::<gateway_model::Device>(laptop, None, |device| device.name = "notebook".into())
                    .expect("renamed");
            }
            _ => fixture.network.lan.push("lan1".into()),
        }
        let next = inputs(&fixture);
        let changed = next.parts_since(Some(&last));
        assert!(!changed.is_empty() && changed.len() < 5, "step {step}: {changed:?}");
        apply(&mut parts, changed);
        let restored = PlanInputs::of_parts(&parts, fixture.now).expect("parts");
        assert_eq!(restored.facts, next.facts, "step {step}");
        assert_eq!(digest_of(&restored), digest_of(&next), "step {step}");
        let name = |inputs: &PlanInputs| inputs.state.devices.get(laptop).expect("the device").name.clone();
        assert_eq!(name(&restored), name(&next), "step {step}");
        assert_eq!(restored.parts_since(None).len(), next.parts_since(None).len(), "step {step}");
        digests.push(digest_of(&next));
        last = next;
    }
    digests.dedup();
    assert!(digests.len() > 2, "plans that differ have other digests");
    assert!(last.parts_since(Some(&last)).is_empty());
}

#[test]
fn no_part_contains_a_secret() {
    let (mut fixture, _) = fixture();
    fixture.state.set_secret("dns.tsig", gateway_model::Secret::new("transfer-key-of-the-zone"));
    fixture
        .create("proxy", json!({"name": "p", "type": "socks5", "address": "203.0.113.5", "port": 1080, "username": "u", "password": "proxy-password"}))
        .expect("a proxy");
    let parts = inputs(&fixture).parts_since(None);
    for secret in [PRIVATE_KEY, PRESHARED_KEY, "transfer-key-of-the-zone", "proxy-password"] {
        let holds = |part: &&Part| {
            part.value.as_deref().is_some_and(|value| String::from_utf8_lossy(value).contains(secret))
        };
        assert_eq!(parts.iter().find(holds).map(|part| &part.key), None);
    }
    assert!(parts.iter().all(|part| !part.key.contains("/users/") && !part.key.contains("/api_keys/")));
}

#[test]
fn an_evaluation_of_the_past_is_that_of_then() {
    let (mut fixture, laptop) = fixture();
    let then = inputs(&fixture);
    let mut parts = Parts::new();
    apply(&mut parts, then.parts_since(None));
    let request =
        Request { device_id: Some(laptop), to: Some("203.0.113.7:443".into()), ..Request::default() };
    let before = evaluate(&then.input(), &compile(&then.input()), &request).expect("evaluated");
    let id = fixture.ids["through a"];
    fixture.state.remove::<gateway_model::RoutingPolicy>(id, None, true).expect("removed");
    fixture.state.freeze_applied();
    let now = inputs(&fixture);
    let after = evaluate(&now.input(), &compile(&now.input()), &request).expect("evaluated");
    assert_eq!((before.decision, after.decision), (Decision::Tunnel, Decision::Direct));

    let restored = PlanInputs::of_parts(&parts, then.compiled_at).expect("parts");
    let compiled = compile(&restored.input());
    let header = RecordHeader {
        content: Content::Whole,
        generation: 12,
        at: fixture.now,
        compiled_at: fixture.now,
        revision: Revision(3).0,
        digest: 0,
    };
    let in_force = InForce { entry: Entry { id: 1, header }, records: 1, from: fixture.now, until: None };
    let past = evaluate_at(&request, fixture.now, &restored, &compiled, &in_force, true).expect("evaluated");
    assert_eq!((past.decision, &past.sentence), (Decision::Tunnel, &before.sentence));
    assert_eq!(past.families.ipv4.expect("IPv4").via.as_deref(), Some("vpn:a"));
    assert_eq!(past.as_of.map(|plan| (plan.generation, plan.until)), Some((12, None)));
    assert_eq!(past.trace[1..], before.trace);
}
