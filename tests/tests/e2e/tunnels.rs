//! Tunnels as objects: created, imported, brought up and down, shown without their secrets.

use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::{SOON, assert_blocked, assert_nothing_leaked, assert_through, wait_until_through};

#[test]
fn an_imported_file_is_a_tunnel_that_works() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let file = network.exit_a.configuration_file();
    let id = create(testbed.api(), "/tunnels/import-wireguard", &json!({"name": "wg-a", "config": file}))
        .expect("import");
    testbed.bring_up(&id).expect("up");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn commands_in_an_imported_file_are_never_run() {
    let testbed = Testbed::start().expect("scene");
    let sign = testbed.daemon.state_directory().join("hook-was-run");
    let hook = format!("[Interface]\nPostUp = touch {0}\nPreUp = touch {0}\n", sign.display());
    let file = testbed.network.exit_a.configuration_file().replace("[Interface]\n", &hook);
    let body = json!({"name": "wg-a", "config": file});
    let id = create(testbed.api(), "/tunnels/import-wireguard", &body).expect("import");
    testbed.bring_up(&id).expect("up");
    assert!(!sign.exists());
}

#[test]
fn secrets_of_a_tunnel_are_shown_nowhere() {
    let testbed = Testbed::start().expect("scene");
    let id = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    let secret = &testbed.network.exit_a.client.private;
    for path in [
        format!("/tunnels/{id}"),
        "/tunnels".into(),
        format!("/tunnels/{id}/config"),
        "/audit".into(),
        "/render".into(),
    ] {
        let reply = testbed.api().send("GET", &path, None).expect("answer");
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        assert!(!reply.body.to_string().contains(secret), "{path} shows the private key");
    }
    let log = std::fs::read_to_string(testbed.daemon.log_file()).expect("log");
    assert!(!log.contains(secret), "the log shows the private key");
}

#[test]
fn an_exit_that_comes_back_is_used_again() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    network.exit_a.kill9().expect("exit killed");
    assert_blocked(&network.laptop);
    network.exit_a.start().expect("exit started");
    wait_until_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_tunnel_tells_its_state_and_which_policies_use_it() {
    let testbed = Testbed::start().expect("scene");
    let id = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    let used = testbed.policy(&policy("all", 10, ("all", ""), &["wg-a"])).expect("policy");
    let egress = testbed.api().get("/tunnels/egress").expect("egress");
    let row = egress.as_array().and_then(|rows| rows.iter().find(|row| row["policy_id"] == json!(used)));
    let row = row.unwrap_or_else(|| panic!("the policy is missing in {egress}"));
    assert_eq!((&row["tunnel"], &row["state"]), (&json!("wg-a"), &json!("up")), "{egress}");
    testbed.bring_down(&id).expect("down");
    wait_ok(SOON, "the tunnel to be down", || {
        let object = testbed.api().get(&format!("/tunnels/{id}"))?;
        anyhow::ensure!(object["status"] == "down" && object["healthy"] == false, "{object}");
        anyhow::ensure!(object["enabled"] == true, "taking it down must not disable it: {object}");
        Ok(())
    })
    .expect("down");
}

#[test]
fn generated_keys_fit_together() {
    let testbed = Testbed::start().expect("scene");
    let keys = testbed.api().act("/tunnels/generate-keys").expect("keys");
    let private = keys["private_key"].as_str().expect("private key");
    let public = testbed.network.gateway.feed("wg", &["pubkey"], private).expect("wg takes the key");
    assert_eq!(keys["public_key"], json!(public.trim()));
}

/// The gateway's own answers have a tunnel's address as source, and the main table knows only the uplink.
#[test]
fn replies_of_the_gateway_into_a_tunnel_never_take_the_uplink() {
    let testbed = Testbed::start().expect("scene");
    let id = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.bring_up(&id).expect("up");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    for address in ["10.66.1.2", "fd66:1::2"] {
        let probe = || testbed.network.exit_a.namespace.run("ping", &["-n", "-c", "1", "-W", "1", address]);
        wait_ok(SOON, "the far end to reach the gateway through the tunnel", probe)
            .unwrap_or_else(|error| panic!("{error:#}: {}", testbed.network.tap.counts()));
    }
    assert_nothing_leaked(&testbed);
}
