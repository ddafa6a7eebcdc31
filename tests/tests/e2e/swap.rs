//! The swap proof: no packet ever sees half of a plan.

use gateway_tests::scene::{Scene, policy};
use gateway_tests::traffic::Load;
use serde_json::json;

use crate::{assert_blocked, assert_nothing_leaked, assert_the_tap_sees};

const APPLIES: usize = 1000;

#[test]
fn a_thousand_applies_between_two_plans_that_forbid_the_direct_way_leak_nothing() {
    let scene = Scene::start().expect("scene");
    let network = &scene.network;
    assert_the_tap_sees(&scene, &network.laptop);
    let laptop = scene.device(&network.laptop).expect("device");
    let mut tunnel = network.exit_a.tunnel("wg-a");
    tunnel["enabled"] = json!(false);
    scene.api().post("/tunnels", &tunnel).expect("tunnel");
    // One plan blocks by the device, the other by everything; neither has the other's entry to fall back on.
    let plans = [policy("one", 10, ("device", &laptop), &["wg-a"]), policy("one", 20, ("all", ""), &[])];
    let id = scene.policy(&plans[0]).expect("policy");
    let load = Load::start(&network.laptop).expect("load");
    for number in 1..=APPLIES {
        scene
            .replace_policy(&id, &plans[number % 2])
            .unwrap_or_else(|error| panic!("apply {number}: {error:#}"));
    }
    assert_blocked(&network.laptop);
    let sent = load.stop();
    assert!(sent.v4 > 500 && sent.v6 > 500, "{sent:?}");
    assert!(sent.answers.is_empty(), "{sent:?}");
    let counts = assert_nothing_leaked(&scene);
    assert_eq!(counts.tunnel.total(), 0, "{counts}");
}
