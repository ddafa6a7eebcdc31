//! The rules persist without the daemon, and exist before its first start.

use std::fs;
use std::net::IpAddr;

use gateway_tests::netns::remove_pins;
use gateway_tests::scene::{Scene, policy};
use gateway_tests::services::IDENT;
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::{Load, PATIENCE, UdpFlow};
use gateway_tests::wait::wait_for;

use crate::e2e::{
    FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_the_tap_sees,
    assert_through, wait_until_through,
};

/// Returns a scene with a laptop bound to exit A.
fn bound_scene() -> Scene {
    let scene = Scene::start().expect("scene");
    let network = &scene.network;
    let laptop = scene.device(&network.laptop).expect("device");
    scene.tunnel("wg-a", &network.exit_a).expect("tunnel");
    scene.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&scene, &network.tv);
    assert_through(&network.laptop, &network.exit_a);
    scene
}

#[test]
fn after_kill_9_under_load_the_rules_hold_and_a_restart_restores_the_way() {
    let mut scene = bound_scene();
    let load = Load::start(&scene.network.laptop).expect("load");
    for _ in 0..2 {
        load.run_for(200).expect("load");
        scene.daemon.kill9().expect("killed");
        load.run_for(400).expect("load");
        let pins = scene.daemon.pin_directory();
        assert!(
            fs::read_dir(pins).expect("pins").next().is_some(),
            "nothing is pinned in {}",
            pins.display()
        );
        scene.daemon.start().expect("started again");
        wait_until_through(&scene.network.laptop, &scene.network.exit_a);
    }
    let sent = load.stop();
    assert!(
        sent.answers.keys().all(|seen| FAMILIES.map(|v6| scene.network.exit_a.address(v6)).contains(seen))
    );
    assert_nothing_leaked(&scene);
}

#[test]
fn a_clean_stop_and_start_under_load_leaks_nothing() {
    let mut scene = bound_scene();
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(200).expect("load");
    let status = scene.daemon.terminate().expect("ended");
    assert!(status.success(), "{status}");
    load.run_for(400).expect("load");
    scene.daemon.start().expect("started again");
    wait_until_through(&scene.network.laptop, &scene.network.exit_a);
    load.stop();
    assert_nothing_leaked(&scene);
}

#[test]
fn traffic_that_may_leave_directly_does_so_without_the_daemon() {
    let mut scene = bound_scene();
    let flows: Vec<_> = FAMILIES
        .map(|ipv6| UdpFlow::open(&scene.network.tv, (server(ipv6), IDENT).into()).expect("flow"))
        .into();
    let answered = |flows: &[UdpFlow]| {
        for (flow, ipv6) in flows.iter().zip(FAMILIES) {
            assert_eq!(flow.ask(PATIENCE).expect("answer"), wan(ipv6));
        }
    };
    answered(&flows);
    scene.daemon.kill9().expect("killed");
    answered(&flows);
    assert_direct(&scene.network.tv);
    scene.daemon.start().expect("started again");
    answered(&flows);
}

#[test]
fn a_restart_keeps_what_was_stored_and_applied_and_not_what_was_only_stored() {
    let mut scene = bound_scene();
    let tv = scene.device(&scene.network.tv).expect("device");
    scene.store_policy(&policy("draft", 5, ("device", &tv), &[])).expect("policy");
    scene.daemon.terminate().expect("ended");
    scene.daemon.start().expect("started again");
    assert_direct(&scene.network.tv);
    wait_until_through(&scene.network.laptop, &scene.network.exit_a);
    let policies = scene.api().get("/routing/policies").expect("policies");
    let names: Vec<_> = policies.as_array().expect("list").iter().map(|policy| &policy["name"]).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// A leak requires the removal of three independent layers; then the tap sees it.
#[test]
fn without_the_daemon_programs_and_nftables_hold_and_only_without_all_layers_it_leaks() {
    let mut scene = bound_scene();
    scene.daemon.kill9().expect("killed");
    flush_rules(&scene);
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(300).expect("load");
    assert_blocked(&scene.network.laptop);
    assert_clean_so_far(&scene);
    // Without programs no packet has a mark, and nftables forwards none without one.
    remove_pins(scene.daemon.pin_directory());
    load.run_for(300).expect("load");
    assert_blocked(&scene.network.laptop);
    assert_clean_so_far(&scene);
    scene.network.gateway.nft("delete table inet gateway\n").expect("table deleted");
    wait_for(SOON, "a leak", || {
        let leaked = scene.network.tap.counts().leaked;
        leaked.v4 > 0 && leaked.v6 > 0
    })
    .expect("the tap sees it");
    load.stop();
}

#[test]
fn without_the_daemon_the_ip_rules_hold_alone() {
    let mut scene = bound_scene();
    scene.daemon.kill9().expect("killed");
    remove_pins(scene.daemon.pin_directory());
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(300).expect("load");
    assert_blocked(&scene.network.laptop);
    load.stop();
    assert_nothing_leaked(&scene);
}

#[test]
fn the_guard_blocks_the_lan_before_the_daemon_runs() {
    let mut scene = Scene::prepare().expect("scene");
    // A host that forwards and masquerades already: the worst case for the guard.
    scene.network.forward_plainly().expect("forwarding");
    assert_the_tap_sees(&scene, &scene.network.laptop);
    scene.daemon.run(&["guard"]).expect("guard");
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(200).expect("load");
    assert_blocked(&scene.network.laptop);
    load.stop();
    assert_nothing_leaked(&scene);
    scene.daemon.start().expect("daemon");
    assert_direct(&scene.network.laptop);
}

#[test]
fn a_reboot_behind_the_guard_comes_up_without_a_leak() {
    let mut scene = bound_scene();
    scene.daemon.terminate().expect("ended");
    reboot(&scene);
    scene.daemon.run(&["guard"]).expect("guard");
    scene.network.tap.reset();
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(200).expect("load");
    scene.daemon.start().expect("started again");
    wait_until_through(&scene.network.laptop, &scene.network.exit_a);
    load.stop();
    assert_nothing_leaked(&scene);
}

#[test]
fn with_an_unreadable_store_the_lan_is_blocked() {
    let mut scene = bound_scene();
    scene.daemon.terminate().expect("ended");
    let state = scene.daemon.state_directory();
    let mut spoiled = 0;
    for entry in fs::read_dir(&state).expect("state directory").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "redb") {
            fs::write(entry.path(), b"this is no database").expect("spoil");
            spoiled += 1;
        }
    }
    assert!(spoiled > 0, "no store in {}", state.display());
    reboot(&scene);
    scene.network.forward_plainly().expect("forwarding");
    scene.daemon.spawn().expect("started");
    let closed = || scene.network.tap.counts();
    wait_for(SOON, "the daemon to close the gateway", || {
        ask_server_quickly(&scene, false).is_none() && ask_server_quickly(&scene, true).is_none()
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}\n{}", closed(), scene.daemon.last_words()));
    scene.network.settle().expect("silence");
    scene.network.tap.reset();
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(400).expect("load");
    assert_blocked(&scene.network.laptop);
    assert_blocked(&scene.network.tv);
    load.stop();
    assert_nothing_leaked(&scene);
    let well = scene.daemon.api().get("/health").is_ok_and(|health| health["status"] == "ok");
    assert!(!well, "the daemon says that it is well");
}

#[test]
fn with_the_store_gone_the_live_plan_holds_and_the_daemon_refuses_to_begin_anew() {
    let mut scene = bound_scene();
    scene.daemon.terminate().expect("ended");
    for entry in fs::read_dir(scene.daemon.state_directory()).expect("state directory").flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
    }
    scene.network.settle().expect("silence");
    scene.network.tap.reset();
    let load = Load::start(&scene.network.laptop).expect("load");
    scene.daemon.spawn().expect("started");
    wait_for(SOON, "the daemon to refuse", || scene.daemon.ended().is_some_and(|status| !status.success()))
        .unwrap_or_else(|error| panic!("{error:#}\n{}", scene.daemon.last_words()));
    assert!(
        scene.daemon.last_words().contains("is gone while a plan is live"),
        "{}",
        scene.daemon.last_words()
    );
    assert_blocked(&scene.network.laptop);
    load.stop();
    assert_nothing_leaked(&scene);
}

fn ask_server_quickly(scene: &Scene, ipv6: bool) -> Option<IpAddr> {
    gateway_tests::traffic::ask(
        &scene.network.laptop,
        (server(ipv6), gateway_tests::services::HTTP).into(),
        crate::e2e::BLOCKED,
    )
    .seen()
}

/// Removes the state that the kernel loses at a reboot: programs, rules, routes, tables.
fn reboot(scene: &Scene) {
    let gateway = &scene.network.gateway;
    remove_pins(scene.daemon.pin_directory());
    gateway.nft("flush ruleset\n").expect("rule set flushed");
    flush_rules(scene);
    gateway.sysctl("net.ipv4.ip_forward", "0").expect("sysctl");
    gateway.sysctl("net.ipv6.conf.all.forwarding", "0").expect("sysctl");
    // Disabling forwarding removes the IPv6 default route.
    gateway.ip("route replace default via 2001:db8:113::1").expect("default route");
    assert_eq!(ask_server_quickly(scene, false), None);
}

/// Removes all ip rules except the default ones.
fn flush_rules(scene: &Scene) {
    let gateway = &scene.network.gateway;
    for family in ["-4", "-6"] {
        gateway.run("ip", &[family, "rule", "flush"]).expect("rules flushed");
        gateway.run("ip", &[family, "rule", "add", "priority", "32766", "table", "main"]).expect("main rule");
    }
}

/// Asserts a clean tap under load, without waiting for silence.
fn assert_clean_so_far(scene: &Scene) {
    let counts = scene.network.tap.counts();
    assert!(counts.is_clean(), "{counts}");
}
