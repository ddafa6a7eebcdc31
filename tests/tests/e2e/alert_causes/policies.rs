//! Policies that lose a hop.

use anyhow::ensure;
use gateway_tests::alerts::open_alert;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::traffic::Load;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::{set_rule, wait_for_alert, wait_for_end};
use crate::e2e::SOON;
use crate::e2e::alert_delivery::{delivered, receiver, wait_for};

const KINDS: [&str; 2] = ["policy_fallback", "policy_blocked"];

#[test]
fn policies_that_lose_a_hop_are_consequences_of_its_tunnel_and_else_stand_for_themselves() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    for kind in KINDS {
        set_rule(api, kind, &json!({"window_sec": 0, "cooldown_sec": 0}));
    }
    let laptop = testbed.device(&network.laptop).expect("device");
    let tv = testbed.device(&network.tv).expect("device");
    let first = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let mut either = policy("either", 10, ("device", &laptop), &["wg-a", "wg-b"]);
    either["hop_mode"] = json!("failover");
    let either = testbed.policy(&either).expect("policy");
    let only = testbed.policy(&policy("only", 20, ("device", &tv), &["wg-a"])).expect("policy");
    let receiver = receiver(&testbed);

    // The tunnel dies: one alert is sent, and the policies are consequences.
    let load = Load::start(&network.tv).expect("load");
    network.exit_a.kill9().expect("killed");
    let down = wait_ok(4 * SOON, "the tunnel to be down", || {
        load.run_for(100)?;
        open_alert(api, "tunnel_down", &first)
    })
    .expect("an alert");
    let caused = |kind: &str, policy: &str| {
        wait_ok(2 * SOON, &format!("{kind} with its cause"), || {
            let alert = open_alert(api, kind, policy)?;
            ensure!(alert["caused_by"] == down["id"], "{alert}");
            Ok(alert)
        })
        .expect("a consequence")
    };
    let fallback = caused("policy_fallback", &either);
    let blocked = caused("policy_blocked", &only);
    assert_eq!(
        (&fallback["resource_type"], &fallback["severity"]),
        (&json!("routing_policy"), &json!("warning"))
    );
    assert!(blocked["message"].as_str().is_some_and(|text| text.contains("wg-a")), "{blocked}");
    network.exit_a.start().expect("started again");
    for alert in [&down, &fallback, &blocked] {
        wait_for_end(api, alert, 4 * SOON);
    }
    load.stop();
    wait_for(&receiver, "tunnel_down", &["firing", "resolved"]);
    assert_eq!(KINDS.map(|kind| delivered(&receiver, kind).len()), [0, 0]);

    // A tunnel that an administrator takes down has no alert of its own.
    testbed.bring_down(&first).expect("down");
    let alone = [("policy_fallback", &either), ("policy_blocked", &only)].map(|(kind, policy)| {
        let alert = wait_for_alert(api, kind, policy, SOON);
        assert_eq!(alert["caused_by"], Value::Null, "{alert}");
        alert
    });
    for kind in KINDS {
        wait_for(&receiver, kind, &["firing"]);
    }
    testbed.bring_up(&first).expect("up");
    for (alert, kind) in alone.iter().zip(KINDS) {
        wait_for_end(api, alert, 2 * SOON);
        wait_for(&receiver, kind, &["firing", "resolved"]);
    }
}
