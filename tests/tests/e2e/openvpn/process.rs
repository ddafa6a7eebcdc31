//! The process behind a tunnel: exactly one exists while required, whatever happens to it or to the daemon.

use anyhow::ensure;
use gateway_tests::traffic::Load;
use gateway_tests::wait::{wait_for, wait_ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::{Bound, only_process, processes};
use crate::e2e::{FAMILIES, SOON, assert_blocked, assert_nothing_leaked, assert_through, wait_until_through};

impl Bound {
    fn under_load(options: &str) -> (Self, Load) {
        let bound = Self::start(options);
        let load = Load::start(&bound.scene.network.laptop).expect("load");
        for ipv6 in FAMILIES {
            let exit = bound.scene.network.exit_a.address(ipv6);
            load.wait_for_answer_to(exit, SOON).expect("load through the tunnel");
        }
        (bound, load)
    }
}

#[test]
fn a_process_that_is_killed_under_load_leaks_nothing_and_is_started_again() {
    let (bound, load) = Bound::under_load("");
    let pid = only_process(&bound.scene);
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
    load.run_for(100).expect("load");
    let through = bound.scene.network.exit_a.address(false);
    load.wait_for_answer_to(through, SOON).expect("load through the tunnel again");
    wait_until_through(&bound.scene.network.laptop, &bound.scene.network.exit_a);
    assert_ne!(only_process(&bound.scene), pid);
    load.stop();
    assert_nothing_leaked(&bound.scene);
    let object = bound.object();
    assert!(object["restarts"].as_u64() >= Some(1), "{object}");
}

#[test]
fn a_daemon_that_is_killed_under_load_leaves_no_process_and_no_leak() {
    let (mut bound, load) = Bound::under_load("");
    let pid = only_process(&bound.scene);
    bound.scene.daemon.kill9().expect("killed");
    wait_for(SOON, "the process to die with the daemon", || processes(&bound.scene).is_empty())
        .expect("gone");
    load.run_for(400).expect("load");
    assert_blocked(&bound.scene.network.laptop);
    bound.scene.daemon.start().expect("started");
    bound.scene.bring_up(&bound.tunnel).expect("up");
    wait_until_through(&bound.scene.network.laptop, &bound.scene.network.exit_a);
    assert_ne!(only_process(&bound.scene), pid);
    load.stop();
    assert_nothing_leaked(&bound.scene);
}

#[test]
fn a_process_that_an_earlier_daemon_left_behind_is_ended() {
    let mut bound = Bound::start("");
    let pid = only_process(&bound.scene);
    // A process that the kernel does not end with the daemon, as if the signal were lost.
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("folder");
    bound.scene.daemon.kill9().expect("killed");
    wait_for(SOON, "the process to die with the daemon", || processes(&bound.scene).is_empty())
        .expect("gone");
    let mut command = bound.scene.network.gateway.command("openvpn");
    command.args(["--dev", "tun", "--ifconfig", "10.99.0.1", "10.99.0.2", "--remote", "198.51.100.99"]);
    command.current_dir(&folder).stdout(std::process::Stdio::null());
    let mut orphan = bound.scene.network.gateway.spawn(command).expect("orphan");
    wait_for(SOON, "the orphan to be known as one", || processes(&bound.scene).len() == 1).expect("orphan");
    bound.scene.daemon.start().expect("started");
    wait_for(SOON, "the orphan to end", || orphan.ended().is_some()).expect("ended");
    bound.scene.bring_up(&bound.tunnel).expect("up");
    only_process(&bound.scene);
}

#[test]
fn a_daemon_that_ends_in_order_leaves_no_process_and_the_policies_hold() {
    let (mut bound, load) = Bound::under_load("");
    bound.scene.daemon.terminate().expect("ended");
    assert_eq!(processes(&bound.scene), [0; 0]);
    load.run_for(400).expect("load");
    assert_blocked(&bound.scene.network.laptop);
    load.stop();
    assert_nothing_leaked(&bound.scene);
}

#[test]
fn each_change_has_exactly_one_process_with_the_new_settings() {
    let bound = Bound::start("");
    let (scene, path) = (&bound.scene, format!("/tunnels/{}", bound.tunnel));
    let first = only_process(scene);

    // Unrelated changes do not restart the process.
    let mut object = bound.object();
    object["notes"] = json!("a note");
    scene.api().put(&path, &object).expect("note");
    assert_through(&scene.network.laptop, &scene.network.exit_a);
    assert_eq!(only_process(scene), first);

    let mut object = bound.object();
    object["config"] = json!(bound.server.file("auth SHA512\nreneg-sec 1000").expect("file"));
    scene.api().put(&path, &object).expect("file exchanged");
    wait_for(SOON, "another process", || processes(scene).iter().any(|pid| *pid != first)).expect("process");
    scene.bring_up(&bound.tunnel).expect("up");
    let second = only_process(scene);
    assert_ne!(second, first);

    let mut object = bound.object();
    object["name"] = json!("a-rather-long-name");
    scene.api().put(&path, &object).expect("renamed");
    wait_for(SOON, "another process", || processes(scene).iter().any(|pid| *pid != second)).expect("process");
    scene.bring_up(&bound.tunnel).expect("up");
    only_process(scene);
    assert_eq!(scene.interface(&bound.tunnel).expect("interface"), "ov.a-rather-l.1");
    // The policy still has the old name of the tunnel.
    assert_blocked(&scene.network.laptop);

    scene.bring_down(&bound.tunnel).expect("down");
    wait_for(SOON, "no process", || processes(scene).is_empty()).expect("ended");
    scene.bring_up(&bound.tunnel).expect("up");
    only_process(scene);
    let mut object = bound.object();
    object["enabled"] = json!(false);
    scene.api().put(&path, &object).expect("disabled");
    wait_for(SOON, "no process", || processes(scene).is_empty()).expect("ended");
    scene.api().delete(&path).expect("deleted");
    wait_ok(SOON, "no interface", || {
        let links = scene.network.gateway.run("ip", &["-o", "link"])?;
        ensure!(!links.contains(": ov"), "{links}");
        Ok(())
    })
    .expect("no interface");
    scene.network.settle().expect("silence");
    assert_nothing_leaked(scene);
}

#[test]
fn a_tunnel_in_use_is_not_deleted_unless_forced() {
    let (bound, load) = Bound::under_load("");
    let path = format!("/tunnels/{}", bound.tunnel);
    let reply = bound.scene.api().send("DELETE", &path, None).expect("answer");
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("in_use")), "{}", reply.body);
    bound.scene.api().delete(&format!("{path}?force=true")).expect("deleted");
    load.run_for(400).expect("load");
    assert_blocked(&bound.scene.network.laptop);
    wait_for(SOON, "no process", || processes(&bound.scene).is_empty()).expect("ended");
    load.stop();
    assert_nothing_leaked(&bound.scene);
}

#[test]
fn addresses_that_somebody_takes_away_are_set_again() {
    let bound = Bound::start("");
    let gateway = &bound.scene.network.gateway;
    gateway.run("ip", &["address", "flush", "dev", "ov-nl"]).expect("flushed");
    bound.scene.api().act("/enforce/reconcile").expect("reconcile");
    wait_until_through(&bound.scene.network.laptop, &bound.scene.network.exit_a);
    gateway.ip("link set ov-nl down").expect("link down");
    bound.scene.api().act("/enforce/reconcile").expect("reconcile");
    wait_until_through(&bound.scene.network.laptop, &bound.scene.network.exit_a);
    assert_nothing_leaked(&bound.scene);
}
