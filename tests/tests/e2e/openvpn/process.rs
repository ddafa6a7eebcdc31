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
        let load = Load::start(&bound.testbed.network.laptop).expect("load");
        for ipv6 in FAMILIES {
            let exit = bound.testbed.network.exit_a.address(ipv6);
            load.wait_for_answer_to(exit, SOON).expect("load through the tunnel");
        }
        (bound, load)
    }
}

#[test]
fn a_process_that_is_killed_under_load_leaks_nothing_and_is_started_again() {
    let (bound, load) = Bound::under_load("");
    let pid = only_process(&bound.testbed);
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
    load.run_for(100).expect("load");
    let through = bound.testbed.network.exit_a.address(false);
    load.wait_for_answer_to(through, SOON).expect("load through the tunnel again");
    wait_until_through(&bound.testbed.network.laptop, &bound.testbed.network.exit_a);
    assert_ne!(only_process(&bound.testbed), pid);
    load.stop();
    assert_nothing_leaked(&bound.testbed);
    let object = bound.object();
    assert!(object["restarts"].as_u64() >= Some(1), "{object}");
}

#[test]
fn a_daemon_that_is_killed_under_load_leaves_no_process_and_no_leak() {
    let (mut bound, load) = Bound::under_load("");
    let pid = only_process(&bound.testbed);
    bound.testbed.daemon.kill9().expect("killed");
    wait_for(SOON, "the process to die with the daemon", || processes(&bound.testbed).is_empty())
        .expect("gone");
    load.run_for(400).expect("load");
    assert_blocked(&bound.testbed.network.laptop);
    bound.testbed.daemon.start().expect("started");
    bound.testbed.bring_up(&bound.tunnel).expect("up");
    wait_until_through(&bound.testbed.network.laptop, &bound.testbed.network.exit_a);
    assert_ne!(only_process(&bound.testbed), pid);
    load.stop();
    assert_nothing_leaked(&bound.testbed);
}

#[test]
fn a_process_that_an_earlier_daemon_left_behind_is_ended() {
    let mut bound = Bound::start("");
    let pid = only_process(&bound.testbed);
    // A process that the kernel does not end with the daemon, as if the signal were lost.
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("folder");
    bound.testbed.daemon.kill9().expect("killed");
    wait_for(SOON, "the process to die with the daemon", || processes(&bound.testbed).is_empty())
        .expect("gone");
    let mut command = bound.testbed.network.gateway.command("openvpn");
    command.args(["--dev", "tun", "--ifconfig", "10.99.0.1", "10.99.0.2", "--remote", "198.51.100.99"]);
    command.current_dir(&folder).stdout(std::process::Stdio::null());
    let mut orphan = bound.testbed.network.gateway.spawn(command).expect("orphan");
    wait_for(SOON, "the orphan to be known as one", || processes(&bound.testbed).len() == 1).expect("orphan");
    bound.testbed.daemon.start().expect("started");
    wait_for(SOON, "the orphan to end", || orphan.ended().is_some()).expect("ended");
    bound.testbed.bring_up(&bound.tunnel).expect("up");
    only_process(&bound.testbed);
}

#[test]
fn a_daemon_that_ends_in_order_leaves_no_process_and_the_policies_hold() {
    let (mut bound, load) = Bound::under_load("");
    bound.testbed.daemon.terminate().expect("ended");
    assert_eq!(processes(&bound.testbed), [0; 0]);
    load.run_for(400).expect("load");
    assert_blocked(&bound.testbed.network.laptop);
    load.stop();
    assert_nothing_leaked(&bound.testbed);
}

#[test]
fn each_change_has_exactly_one_process_with_the_new_settings() {
    let bound = Bound::start("");
    let (testbed, path) = (&bound.testbed, format!("/tunnels/{}", bound.tunnel));
    let first = only_process(testbed);

    // Unrelated changes do not restart the process.
    let mut object = bound.object();
    object["notes"] = json!("a note");
    testbed.api().put(&path, &object).expect("note");
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_eq!(only_process(testbed), first);

    let mut object = bound.object();
    object["config"] = json!(bound.server.file("auth SHA512\nreneg-sec 1000").expect("file"));
    testbed.api().put(&path, &object).expect("file exchanged");
    wait_for(SOON, "another process", || processes(testbed).iter().any(|pid| *pid != first))
        .expect("process");
    testbed.bring_up(&bound.tunnel).expect("up");
    let second = only_process(testbed);
    assert_ne!(second, first);

    let mut object = bound.object();
    object["name"] = json!("a-rather-long-name");
    testbed.api().put(&path, &object).expect("renamed");
    wait_for(SOON, "another process", || processes(testbed).iter().any(|pid| *pid != second))
        .expect("process");
    testbed.bring_up(&bound.tunnel).expect("up");
    only_process(testbed);
    assert_eq!(testbed.interface(&bound.tunnel).expect("interface"), "ov.a-rather-l.1");
    // The policy names it as it was.
    assert_blocked(&testbed.network.laptop);

    testbed.bring_down(&bound.tunnel).expect("down");
    wait_for(SOON, "no process", || processes(testbed).is_empty()).expect("ended");
    testbed.bring_up(&bound.tunnel).expect("up");
    only_process(testbed);
    let mut object = bound.object();
    object["enabled"] = json!(false);
    testbed.api().put(&path, &object).expect("disabled");
    wait_for(SOON, "no process", || processes(testbed).is_empty()).expect("ended");
    testbed.api().delete(&path).expect("deleted");
    wait_ok(SOON, "no interface", || {
        let links = testbed.network.gateway.run("ip", &["-o", "link"])?;
        ensure!(!links.contains(": ov"), "{links}");
        Ok(())
    })
    .expect("no interface");
    testbed.network.settle().expect("silence");
    assert_nothing_leaked(testbed);
}

#[test]
fn a_tunnel_in_use_is_not_deleted_unless_forced() {
    let (bound, load) = Bound::under_load("");
    let path = format!("/tunnels/{}", bound.tunnel);
    let reply = bound.testbed.api().send("DELETE", &path, None).expect("answer");
    assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("in_use")), "{}", reply.body);
    bound.testbed.api().delete(&format!("{path}?force=true")).expect("deleted");
    load.run_for(400).expect("load");
    assert_blocked(&bound.testbed.network.laptop);
    wait_for(SOON, "no process", || processes(&bound.testbed).is_empty()).expect("ended");
    load.stop();
    assert_nothing_leaked(&bound.testbed);
}

#[test]
fn removed_addresses_are_set_again() {
    let bound = Bound::start("");
    let gateway = &bound.testbed.network.gateway;
    gateway.run("ip", &["address", "flush", "dev", "ov-nl"]).expect("flushed");
    bound.testbed.api().act("/enforce/reconcile").expect("reconcile");
    wait_until_through(&bound.testbed.network.laptop, &bound.testbed.network.exit_a);
    gateway.ip("link set ov-nl down").expect("link down");
    bound.testbed.api().act("/enforce/reconcile").expect("reconcile");
    wait_until_through(&bound.testbed.network.laptop, &bound.testbed.network.exit_a);
    assert_nothing_leaked(&bound.testbed);
}
