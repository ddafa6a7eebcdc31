//! Upgrades between two ABI versions of the programs.
//!
//! The older version is this build under another version number: the test renames its pin folder while no daemon runs.
//! So its programs stay attached with their own maps and links.

use std::fs;

use gateway_common::abi::ABI_VERSION;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::traffic::Load;
use gateway_tests::wait::wait_until;

use crate::nothing_past::doors::{
    FAMILIES, SOON, assert_nothing_leaked, assert_the_tap_sees, bind_laptop, programs, wait_until_through,
};

/// Ends the daemon and turns its pins into those of an older version.
fn age(testbed: &mut Testbed) {
    testbed.daemon.terminate().expect("ended");
    let pins = testbed.daemon.pin_directory();
    let folder = |version: u32| pins.join(format!("v{version}"));
    fs::rename(folder(ABI_VERSION), folder(ABI_VERSION - 1)).expect("pins of an older version");
}

/// Asserts that only this version's programs and pins remain.
fn assert_handed_over(testbed: &Testbed, old: &[u32]) {
    let gateway = &testbed.network.gateway;
    for (interface, ingress) in [("eth1", true), ("eth0", false)] {
        let attached = programs(gateway, interface, ingress);
        assert!(attached.len() == 1 && !old.contains(&attached[0]), "{interface}: {attached:?}, old {old:?}");
    }
    let pins = fs::read_dir(testbed.daemon.pin_directory()).expect("pins").flatten();
    let versions: Vec<_> = pins.map(|entry| entry.file_name()).collect();
    assert_eq!(versions, [format!("v{ABI_VERSION}").as_str()]);
}

fn attached(testbed: &Testbed) -> Vec<u32> {
    let gateway = &testbed.network.gateway;
    [programs(gateway, "eth1", true), programs(gateway, "eth0", false)].concat()
}

#[test]
fn a_policy_of_the_new_version_is_not_overruled_by_the_programs_of_the_old() {
    let mut testbed = Testbed::start().expect("scene");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(50).expect("load");
    let old = attached(&testbed);
    age(&mut testbed);
    load.run_for(50).expect("load");
    testbed.daemon.start().expect("the new version");
    assert_handed_over(&testbed, &old);
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_a);
    network.tap.reset();
    load.run_for(200).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(network.exit_a.address(ipv6), SOON).expect("load through exit A");
    }
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn an_upgrade_under_load_leaves_no_instant_without_enforcement() {
    let mut testbed = Testbed::start().expect("scene");
    bind_laptop(&testbed);
    let load = Load::start(&testbed.network.laptop).expect("load");
    for _ in 0..3 {
        let old = attached(&testbed);
        load.run_for(50).expect("load");
        age(&mut testbed);
        load.run_for(50).expect("load");
        testbed.daemon.start().expect("the new version");
        assert_handed_over(&testbed, &old);
        load.run_for(50).expect("load");
        wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    }
    let sent = load.stop();
    let exits = FAMILIES.map(|ipv6| testbed.network.exit_a.address(ipv6));
    assert!(sent.answers.keys().all(|seen| exits.contains(seen)), "{sent:?}");
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_store_that_is_lost_between_two_versions_is_no_first_start() {
    let mut testbed = Testbed::start().expect("scene");
    bind_laptop(&testbed);
    age(&mut testbed);
    for entry in fs::read_dir(testbed.daemon.state_directory()).expect("state").flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
    }
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let load = Load::start(&testbed.network.laptop).expect("load");
    testbed.daemon.spawn().expect("started");
    let is_started = wait_until(SOON, "the daemon to refuse, to rest or to start", || {
        let health = testbed.api().get("/health").map(|health| health["status"] == "ok");
        health.ok().or_else(|| testbed.daemon.ended().map(|_| false))
    })
    .expect("an outcome");
    assert!(!is_started, "the daemon takes it for a first start\n{}", testbed.daemon.last_words());
    load.run_for(200).expect("load");
    load.stop();
    assert_nothing_leaked(&testbed);
}
