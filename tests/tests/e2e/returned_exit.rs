//! Splitting over an exit that was dead and came back before the daemon was killed.

use std::collections::BTreeMap;

use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{Load, connections};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::{FAMILIES, SOON, assert_nothing_leaked, wait_until_through};

/// Seconds without an answer to data after which a tunnel is down: the least that can be set.
const LIVENESS_SEC: u32 = 12;

/// Waits until a tunnel has a status.
fn wait_for_status(testbed: &Testbed, tunnel: &str, status: &str, load: Option<&Load>) {
    wait_ok(3 * SOON, &format!("the tunnel to be {status}"), || {
        load.map_or(Ok(()), |load| load.run_for(100))?;
        let object = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
        anyhow::ensure!(object["status"] == status, "{object}");
        Ok(())
    })
    .expect("the status");
}

#[test]
fn returned_exit_takes_its_share_after_kill_9() {
    let mut testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let mut tunnel = testbed.network.exit_a.tunnel("wg-a");
    tunnel["health_check"] = json!({"liveness_sec": LIVENESS_SEC});
    let tunnel = create(testbed.api(), "/tunnels", &tunnel).expect("a tunnel");
    testbed.bring_up(&tunnel).expect("up");
    testbed.tunnel("wg-b", &testbed.network.exit_b).expect("tunnel");
    let vpn_only = testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);

    let load = Load::start(&testbed.network.laptop).expect("load");
    testbed.network.exit_a.kill9().expect("killed");
    wait_for_status(&testbed, &tunnel, "degraded", Some(&load));
    load.stop();
    testbed.network.exit_a.start().expect("started again");
    wait_for_status(&testbed, &tunnel, "up", None);
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);

    let load = Load::start(&testbed.network.laptop).expect("load");
    testbed.daemon.kill9().expect("killed");
    load.run_for(500).expect("load");
    testbed.daemon.start().expect("started again");
    let exit = testbed.network.exit_a.address(false);
    load.wait_for_answer_to(exit, SOON).expect("exit A after the restart");
    load.stop();

    let mut both = policy("vpn-only", 10, ("device", &laptop), &["wg-a", "wg-b"]);
    both["splitting"] = json!(true);
    testbed.replace_policy(&vpn_only, &both).expect("replaced");
    for ipv6 in FAMILIES {
        let mut seen = BTreeMap::new();
        for address in connections(&testbed.network.laptop, server(ipv6), 20).expect("connections") {
            *seen.entry(address).or_insert(0) += 1;
        }
        let expected =
            [&testbed.network.exit_a, &testbed.network.exit_b].map(|exit| (exit.address(ipv6), 10));
        let status = testbed.api().get("/splitting/status").expect("the status");
        assert_eq!(seen, BTreeMap::from(expected), "{status}");
    }
    assert_nothing_leaked(&testbed);
}
