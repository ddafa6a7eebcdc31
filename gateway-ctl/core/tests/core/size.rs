//! The same input gives the same plan, and many policies give one as well.

use gateway_core::compile::{Compiled, compile_egress};
use gateway_core::conflicts::conflicts;
use gateway_core::evaluate::{Request, evaluate};
use gateway_core::matrix::leak_matrix;
use gateway_core::plan::{Dataplane, Plan};
use gateway_core::render::render;
use gateway_model::MacAddr;
use serde_json::json;

use crate::fixture::Fixture;

/// Policies of all source types, `count` in number, that do not contradict each other.
fn large(count: usize) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    fixture.tunnel("b");
    for n in 0..count {
        let (high, low) = (n / 250 % 250, n % 250);
        let (kind, value) = match n % 4 {
            0 => ("subnet", format!("10.{high}.{low}.0/24")),
            1 => ("destination", format!("100.{high}.{low}.0/25")),
            2 => ("destination", format!("[2001:db8:{high:x}:{low:x}::/64]:443")),
            _ => {
                let mac = format!("02:00:00:{:02x}:{:02x}:{:02x}", n >> 16, n >> 8 & 255, n & 255);
                ("device", fixture.device(&format!("d{n}"), &mac).to_string())
            }
        };
        let tunnel = if n % 2 == 0 { "a" } else { "b" };
        fixture.policy(json!({"priority": n % 1000, "source_type": kind, "source_value": value, "hops": [{"type": "vpn", "target": tunnel}]}));
    }
    fixture.apply();
    fixture
}

fn same(one: &Compiled, other: &Compiled) {
    assert_eq!(one.plan.dataplane, other.plan.dataplane);
    assert_eq!(format!("{:?}", one.plan), format!("{:?}", other.plan));
    assert_eq!(one.findings, other.findings);
    assert_eq!(render(one, 1), render(other, 1));
}

#[test]
fn the_same_input_gives_the_same_plan() {
    let fixture = large(400);
    same(&fixture.compiled(), &fixture.compiled());
}

#[test]
fn a_plan_of_egresses_says_what_the_whole_plan_says_of_them() {
    let mut fixture = large(40);
    fixture.policy(json!({"source_type": "all", "fail_policy": "fail-open", "hops": [{"type": "vpn", "target": "a"}, {"type": "vpn", "target": "b"}]}));
    fixture.apply();
    fixture.facts.links.remove("wg-b");
    let (mut whole, egress) = (fixture.compiled(), compile_egress(&fixture.input()));
    assert_eq!(format!("{:?}", whole.policies), format!("{:?}", egress.policies));
    assert_eq!(format!("{:?}", whole.legs), format!("{:?}", egress.legs));
    // What matches packets is left out.
    let matching = std::mem::take(&mut whole.plan.dataplane);
    let rest = egress.plan.dataplane.clone();
    assert_eq!(matching.actions, rest.actions);
    assert_eq!((&matching.authorised, &matching.egress_legs), (&rest.authorised, &rest.egress_legs));
    assert_eq!(matching.locals, rest.locals);
    // Redirections of nftables follow from flags of devices.
    let nft = whole.plan.nft.clone();
    let egress = Plan { dataplane: Dataplane::default().into(), nft, ..egress.plan };
    assert_eq!(format!("{:?}", whole.plan), format!("{egress:?}"));
}

#[test]
fn ten_thousand_policies_compile_to_a_plan_of_their_size() {
    let time = |what: &str, run: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        run();
        println!("{what}: {:?}", start.elapsed());
    };
    for count in [1_000, 10_000] {
        let fixture = large(count);
        let mut compiled = Compiled::default();
        time(&format!("compile {count}"), &mut || compiled = fixture.compiled());
        assert_eq!(compiled.policies.len(), count);
        let plan = &compiled.plan.dataplane;
        assert_eq!(plan.actions.len(), count);
        // One key for each policy: what a policy costs does not depend on the others.
        let keys = plan.sources.len()
            + plan.destinations.len()
            + plan.destination_ports.len()
            + plan.devices_by_mac.len();
        assert_eq!(keys, count);
        let mut found = Vec::new();
        time(&format!("conflicts {count}"), &mut || found = conflicts(&fixture.input(), &compiled));
        assert_eq!(found, []);
        let mut rows = 0;
        time(&format!("leak matrix {count}"), &mut || rows = leak_matrix(&fixture.input()).rows.len());
        assert_eq!(rows, count);
        let request = Request { mac: Some(MacAddr([2, 0, 0, 0, 0, 3])), ..Request::default() };
        let mut all = 0;
        time(&format!("evaluate {count}"), &mut || {
            let evaluation = evaluate(&fixture.input(), &compiled, &request).expect("an answer");
            all = evaluation.considered.len() + evaluation.considered_omitted;
        });
        assert_eq!(all, count);
        time(&format!("render {count}"), &mut || assert_eq!(render(&compiled, 1).hash.len(), 64));
    }
}
