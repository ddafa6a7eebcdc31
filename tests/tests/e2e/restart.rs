//! The rules persist without the daemon, and exist before its first start.

use std::fs;
use std::net::IpAddr;

use gateway_tests::netns::remove_pins;
use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::{Load, TIMEOUT, UdpFlow};
use gateway_tests::wait::wait_for;

use crate::e2e::{
    FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_the_tap_sees,
    assert_through, wait_until_through,
};

/// Returns a scene with a laptop bound to exit A.
fn bound_scene() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);
    assert_through(&network.laptop, &network.exit_a);
    testbed
}

#[test]
fn after_kill_9_under_load_the_rules_hold_and_a_restart_restores_the_egress() {
    let mut testbed = bound_scene();
    let load = Load::start(&testbed.network.laptop).expect("load");
    for _ in 0..2 {
        load.run_for(200).expect("load");
        testbed.daemon.kill9().expect("killed");
        load.run_for(400).expect("load");
        let pins = testbed.daemon.pin_directory();
        assert!(
            fs::read_dir(pins).expect("pins").next().is_some(),
            "nothing is pinned in {}",
            pins.display()
        );
        testbed.daemon.start().expect("started again");
        wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    }
    let sent = load.stop();
    assert!(
        sent.answers.keys().all(|seen| FAMILIES.map(|v6| testbed.network.exit_a.address(v6)).contains(seen))
    );
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_clean_stop_and_start_under_load_leaks_nothing() {
    let mut testbed = bound_scene();
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(200).expect("load");
    let status = testbed.daemon.terminate().expect("ended");
    assert!(status.success(), "{status}");
    load.run_for(400).expect("load");
    testbed.daemon.start().expect("started again");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn traffic_that_may_leave_directly_does_so_without_the_daemon() {
    let mut testbed = bound_scene();
    let flows: Vec<_> = FAMILIES
        .map(|ipv6| UdpFlow::open(&testbed.network.tv, (server(ipv6), IDENT).into()).expect("flow"))
        .into();
    let answered = |flows: &[UdpFlow]| {
        for (flow, ipv6) in flows.iter().zip(FAMILIES) {
            assert_eq!(flow.ask(TIMEOUT).expect("answer"), wan(ipv6));
        }
    };
    answered(&flows);
    testbed.daemon.kill9().expect("killed");
    answered(&flows);
    assert_direct(&testbed.network.tv);
    testbed.daemon.start().expect("started again");
    answered(&flows);
}

#[test]
fn a_restart_keeps_what_was_stored_and_applied_and_not_what_was_only_stored() {
    let mut testbed = bound_scene();
    let tv = testbed.device(&testbed.network.tv).expect("device");
    testbed.store_policy(&policy("draft", 5, ("device", &tv), &[])).expect("policy");
    testbed.daemon.terminate().expect("ended");
    testbed.daemon.start().expect("started again");
    assert_direct(&testbed.network.tv);
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    let policies = testbed.api().get("/routing/policies").expect("policies");
    let names: Vec<_> = policies.as_array().expect("list").iter().map(|policy| &policy["name"]).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// A leak requires the removal of three independent layers; then the tap sees it.
#[test]
fn without_the_daemon_programs_and_nftables_hold_and_only_without_all_layers_it_leaks() {
    let mut testbed = bound_scene();
    testbed.daemon.kill9().expect("killed");
    flush_rules(&testbed);
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(300).expect("load");
    assert_blocked(&testbed.network.laptop);
    assert_clean_so_far(&testbed);
    // Without programs no packet has a mark, and nftables forwards none without one.
    remove_pins(testbed.daemon.pin_directory());
    load.run_for(300).expect("load");
    assert_blocked(&testbed.network.laptop);
    assert_clean_so_far(&testbed);
    testbed.network.gateway.nft("delete table inet gateway\n").expect("table deleted");
    wait_for(SOON, "a leak", || {
        let leaked = testbed.network.tap.counts().leaked;
        leaked.v4 > 0 && leaked.v6 > 0
    })
    .expect("the tap sees it");
    load.stop();
}

#[test]
fn without_the_daemon_the_ip_rules_hold_alone() {
    let mut testbed = bound_scene();
    testbed.daemon.kill9().expect("killed");
    remove_pins(testbed.daemon.pin_directory());
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(300).expect("load");
    assert_blocked(&testbed.network.laptop);
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn the_guard_blocks_the_lan_before_the_daemon_runs() {
    let mut testbed = Testbed::prepare().expect("scene");
    // A host that forwards and masquerades already: the worst case for the guard.
    testbed.network.forward_plainly().expect("forwarding");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    testbed.daemon.run(&["guard"]).expect("guard");
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(200).expect("load");
    assert_blocked(&testbed.network.laptop);
    load.stop();
    assert_nothing_leaked(&testbed);
    testbed.daemon.start().expect("daemon");
    assert_direct(&testbed.network.laptop);
}

#[test]
fn a_reboot_behind_the_guard_comes_up_without_a_leak() {
    let mut testbed = bound_scene();
    testbed.daemon.terminate().expect("ended");
    reboot(&testbed);
    testbed.daemon.run(&["guard"]).expect("guard");
    testbed.network.tap.reset();
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(200).expect("load");
    testbed.daemon.start().expect("started again");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn with_an_unreadable_store_the_lan_is_blocked() {
    let mut testbed = bound_scene();
    testbed.daemon.terminate().expect("ended");
    let state = testbed.daemon.state_directory();
    let mut spoiled = 0;
    for entry in fs::read_dir(&state).expect("state directory").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "redb") {
            fs::write(entry.path(), b"this is no database").expect("spoil");
            spoiled += 1;
        }
    }
    assert!(spoiled > 0, "no store in {}", state.display());
    reboot(&testbed);
    testbed.network.forward_plainly().expect("forwarding");
    testbed.daemon.spawn().expect("started");
    let closed = || testbed.network.tap.counts();
    wait_for(SOON, "the daemon to close the gateway", || {
        ask_server_quickly(&testbed, false).is_none() && ask_server_quickly(&testbed, true).is_none()
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}\n{}", closed(), testbed.daemon.last_words()));
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(400).expect("load");
    assert_blocked(&testbed.network.laptop);
    assert_blocked(&testbed.network.tv);
    load.stop();
    assert_nothing_leaked(&testbed);
    let well = testbed.daemon.api().get("/health").is_ok_and(|health| health["status"] == "ok");
    assert!(!well, "the daemon says that it is well");
}

#[test]
fn with_the_store_gone_the_live_plan_holds_and_the_daemon_refuses_to_begin_again() {
    let mut testbed = bound_scene();
    testbed.daemon.terminate().expect("ended");
    for entry in fs::read_dir(testbed.daemon.state_directory()).expect("state directory").flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
    }
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let load = Load::start(&testbed.network.laptop).expect("load");
    testbed.daemon.spawn().expect("started");
    wait_for(SOON, "the daemon to refuse", || testbed.daemon.ended().is_some_and(|status| !status.success()))
        .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
    assert!(
        testbed.daemon.last_words().contains("is gone while a plan is live"),
        "{}",
        testbed.daemon.last_words()
    );
    assert_blocked(&testbed.network.laptop);
    load.stop();
    assert_nothing_leaked(&testbed);
}

fn ask_server_quickly(testbed: &Testbed, ipv6: bool) -> Option<IpAddr> {
    gateway_tests::traffic::ask(
        &testbed.network.laptop,
        (server(ipv6), gateway_tests::services::HTTP).into(),
        crate::e2e::BLOCKED,
    )
    .seen()
}

/// Removes the state that the kernel loses at a reboot: programs, rules, routes, tables.
fn reboot(testbed: &Testbed) {
    let gateway = &testbed.network.gateway;
    remove_pins(testbed.daemon.pin_directory());
    gateway.nft("flush ruleset\n").expect("rule set flushed");
    flush_rules(testbed);
    gateway.sysctl("net.ipv4.ip_forward", "0").expect("sysctl");
    gateway.sysctl("net.ipv6.conf.all.forwarding", "0").expect("sysctl");
    // Disabling forwarding removes the IPv6 default route.
    gateway.ip("route replace default via 2001:db8:113::1").expect("default route");
    assert_eq!(ask_server_quickly(testbed, false), None);
}

/// Removes all ip rules except the default ones.
fn flush_rules(testbed: &Testbed) {
    let gateway = &testbed.network.gateway;
    for family in ["-4", "-6"] {
        gateway.run("ip", &[family, "rule", "flush"]).expect("rules flushed");
        gateway.run("ip", &[family, "rule", "add", "priority", "32766", "table", "main"]).expect("main rule");
    }
}

/// Asserts a clean tap under load, without waiting for silence.
fn assert_clean_so_far(testbed: &Testbed) {
    let counts = testbed.network.tap.counts();
    assert!(counts.is_clean(), "{counts}");
}
