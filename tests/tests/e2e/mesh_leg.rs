//! A peer of the mesh as a hop of policies: hosts of a LAN leave by the uplink of another gateway, or not at all.

use std::time::Duration;

use anyhow::{Result, ensure};
use gateway_tests::mesh::{INTERNET, LanHost, MeshGateway, MeshNetwork, MeshServer};
use gateway_tests::process::Process;
use gateway_tests::testbed::create;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
/// Addresses of the uplinks of both gateways.
const NEAR: &str = "10.9.0.11";
const EXIT: &str = "10.9.0.12";

/// A gateway with a host in its LAN, a gateway that is its exit, and a server of the internet.
struct Mesh {
    // Field order is drop order.
    _page: Process,
    near: MeshGateway,
    exit: MeshGateway,
    server: MeshServer,
    host: LanHost,
    network: MeshNetwork,
    policy: String,
}

impl Mesh {
    /// The policy of the host has this failure policy, and the peer as its only hop.
    fn start(fail_policy: &str, prepare: impl Fn(&MeshNetwork)) -> Mesh {
        let network = MeshNetwork::create(3).expect("network");
        prepare(&network);
        let page = network.serve_internet().expect("server");
        let server = MeshServer::start(&network).expect("coordinator");
        let key = server.key(true, false).expect("key");
        let (near, host) = MeshGateway::start_with_host(&network, 1).expect("gateway");
        let exit = MeshGateway::start(&network, 2).expect("exit");
        exit.set("mesh.member.advertise_exit", &json!(true)).expect("setting");
        near.join(&server, &key).expect("join");
        exit.join(&server, &key).expect("join of the exit");
        let device =
            create(near.api(), "/devices", &json!({"name": "host", "mac": host.mac})).expect("device");
        let policy = json!({
            "name": "by the exit", "priority": 1, "enabled": true, "source_type": "device", "source_value": device,
            "hops": [{"type": "mesh_peer", "target": "gateway-2"}], "fail_policy": fail_policy,
        });
        let policy = create(near.api(), "/routing/policies", &policy).expect("policy");
        near.api().act("/routing/policies/apply").expect("apply");
        network.count_leaks(1).expect("count");
        Mesh { _page: page, near, exit, server, host, network, policy }
    }

    /// Approves these prefixes of the exit.
    fn approve(&self, routes: &Value) {
        wait_ok(SOON, "the offer of the exit", || {
            let peer = self.server.peer("gateway-2")?;
            ensure!(peer.as_ref().is_some_and(|peer| peer["routes"][1]["cidr"] == "::/0"), "{peer:?}");
            Ok(())
        })
        .expect("an offer");
        let id = self.server.peer("gateway-2").expect("peers").expect("the exit")["id"].clone();
        let path = format!("/mesh/peers/{}/routes", id.as_str().expect("an id"));
        self.server.api().post(&path, &json!({"routes": routes})).expect("approval");
    }

    /// Returns the address by which the server of the internet sees the host.
    fn seen(&self) -> Result<String> {
        let url = format!("http://{INTERNET}/");
        self.host.namespace.run("curl", &["--silent", "--show-error", "--fail", "--max-time", "3", &url])
    }

    fn wait_for_exit(&self) {
        wait_ok(SOON, "the way by the exit", || {
            let seen = self.seen()?;
            ensure!(seen == EXIT, "{seen}");
            Ok(())
        })
        .unwrap_or_else(|error| {
            panic!(
                "{error:?}\n{:?}\n{:?}\n{}\n{}",
                self.hop(),
                self.near.peer("gateway-2"),
                self.near.daemon.last_words(),
                self.exit.daemon.last_words()
            )
        });
    }

    /// The hop as `/policy/paths/graph` shows it.
    fn hop(&self) -> Result<Value> {
        let paths = self.near.api().get("/policy/paths/graph")?;
        Ok(paths["hops"][0].clone())
    }

    fn wait_for_reason(&self, reason: &str) {
        wait_ok(SOON, &format!("the reason {reason:?}"), || {
            let hop = self.hop()?;
            ensure!(hop["usable"] == false && hop["reason"].as_str() == Some(reason), "{hop}");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error:?} {:?}", self.near.status()));
    }

    /// The host reaches nothing, and nothing of it has left by the uplink.
    fn assert_blocked(&self) {
        assert!(self.seen().is_err(), "the host reaches the server: {:?}", self.seen());
        assert_eq!(self.network.leaks().expect("counters"), 0, "packets left by the uplink");
    }
}

#[test]
fn host_leaves_by_the_exit_while_that_is_approved_and_by_nothing_else() {
    let mut mesh = Mesh::start("fail-closed", |_| {});
    mesh.wait_for_reason("it offers no routes, or the coordinator has approved none");
    mesh.assert_blocked();
    mesh.approve(&json!(["0.0.0.0/0", "::/0"]));
    mesh.wait_for_exit();
    let hop = mesh.hop().expect("a hop");
    assert_eq!(
        (&hop["type"], &hop["target"], &hop["status"]),
        (&json!("mesh_peer"), &json!("gateway-2"), &json!("up"))
    );
    mesh.approve(&json!([]));
    mesh.wait_for_reason("it offers no routes, or the coordinator has approved none");
    mesh.assert_blocked();
    mesh.approve(&json!(["0.0.0.0/0", "::/0"]));
    mesh.wait_for_exit();
    mesh.server.kill().expect("kill");
    mesh.wait_for_exit();
    assert_eq!(mesh.network.leaks().expect("counters"), 0);
    mesh.server.start_again().expect("restart");
    mesh.near.wait_for_state("up").expect("return");
    let id = mesh.server.peer("gateway-2").expect("peers").expect("the exit")["id"].clone();
    mesh.server.api().delete(&format!("/mesh/peers/{}", id.as_str().expect("an id"))).expect("removal");
    mesh.wait_for_reason("the mesh has no peer of this name");
    mesh.assert_blocked();
}

#[test]
fn nothing_leaves_without_the_daemon_and_after_its_restart() {
    let mut mesh = Mesh::start("fail-degraded", |_| {});
    mesh.approve(&json!(["0.0.0.0/0", "::/0"]));
    mesh.wait_for_exit();
    mesh.near.daemon.kill9().expect("kill");
    mesh.assert_blocked();
    mesh.near.daemon.start().expect("restart");
    mesh.wait_for_exit();
    mesh.near.api().act("/mesh/down").expect("down");
    mesh.wait_for_reason("this gateway is in no mesh at present");
    mesh.assert_blocked();
    mesh.near.api().act("/mesh/up").expect("up");
    mesh.wait_for_exit();
    mesh.exit.daemon.kill9().expect("kill");
    mesh.wait_for_reason("no answer for 15 s");
    mesh.assert_blocked();
}

#[test]
fn host_leaves_by_the_exit_over_the_relay_and_directly_where_the_policy_fails_open() {
    let mesh = Mesh::start("fail-open", |network| network.block_direct_paths().expect("filter"));
    wait_ok(SOON, "the default route", || {
        let seen = mesh.seen()?;
        ensure!(seen == NEAR, "{seen}");
        Ok(())
    })
    .expect("an answer");
    mesh.approve(&json!(["0.0.0.0/0", "::/0"]));
    mesh.wait_for_exit();
    mesh.near.wait_for_connection("gateway-2", "relay").expect("a path by the relay");
    mesh.near.api().delete(&format!("/routing/policies/{}", mesh.policy)).expect("deletion");
    mesh.near.api().act("/routing/policies/apply").expect("apply");
    wait_ok(SOON, "the default route", || {
        let seen = mesh.seen()?;
        ensure!(seen == NEAR, "{seen}");
        Ok(())
    })
    .expect("an answer");
}
