//! Upgrades between two ABI versions of the programs.
//!
//! The older version is this build under another version number: the test renames its pin folder while no daemon runs.
//! So its programs stay attached with their own maps and links.

use std::fs;

use gateway_common::abi::ABI_VERSION;
use gateway_tests::scene::{Scene, policy};
use gateway_tests::traffic::Load;
use gateway_tests::wait::wait_until;

use crate::nothing_past::doors::{
    FAMILIES, SOON, assert_nothing_leaked, assert_the_tap_sees, bind_laptop, programs, wait_until_through,
};

/// Ends the daemon and turns its pins into those of an older version.
fn age(scene: &mut Scene) {
    scene.daemon.terminate().expect("ended");
    let pins = scene.daemon.pin_directory();
    let folder = |version: u32| pins.join(format!("v{version}"));
    fs::rename(folder(ABI_VERSION), folder(ABI_VERSION - 1)).expect("pins of an older version");
}

/// Asserts that only this version's programs and pins remain.
fn assert_handed_over(scene: &Scene, old: &[u32]) {
    let gateway = &scene.network.gateway;
    for (interface, ingress) in [("eth1", true), ("eth0", false)] {
        let attached = programs(gateway, interface, ingress);
        assert!(attached.len() == 1 && !old.contains(&attached[0]), "{interface}: {attached:?}, old {old:?}");
    }
    let pins = fs::read_dir(scene.daemon.pin_directory()).expect("pins").flatten();
    let versions: Vec<_> = pins.map(|entry| entry.file_name()).collect();
    assert_eq!(versions, [format!("v{ABI_VERSION}").as_str()]);
}

fn attached(scene: &Scene) -> Vec<u32> {
    let gateway = &scene.network.gateway;
    [programs(gateway, "eth1", true), programs(gateway, "eth0", false)].concat()
}

#[test]
fn a_policy_of_the_new_version_is_not_overruled_by_the_programs_of_the_old() {
    let mut scene = Scene::start().expect("scene");
    assert_the_tap_sees(&scene, &scene.network.laptop);
    let load = Load::start(&scene.network.laptop).expect("load");
    load.run_for(50).expect("load");
    let old = attached(&scene);
    age(&mut scene);
    load.run_for(50).expect("load");
    scene.daemon.start().expect("the new version");
    assert_handed_over(&scene, &old);
    let network = &scene.network;
    let laptop = scene.device(&network.laptop).expect("device");
    scene.tunnel("wg-a", &network.exit_a).expect("tunnel");
    scene.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_a);
    network.tap.reset();
    load.run_for(200).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(network.exit_a.address(ipv6), SOON).expect("load through exit A");
    }
    load.stop();
    assert_nothing_leaked(&scene);
}

#[test]
fn an_upgrade_under_load_leaves_no_instant_without_enforcement() {
    let mut scene = Scene::start().expect("scene");
    bind_laptop(&scene);
    let load = Load::start(&scene.network.laptop).expect("load");
    for _ in 0..3 {
        let old = attached(&scene);
        load.run_for(50).expect("load");
        age(&mut scene);
        load.run_for(50).expect("load");
        scene.daemon.start().expect("the new version");
        assert_handed_over(&scene, &old);
        load.run_for(50).expect("load");
        wait_until_through(&scene.network.laptop, &scene.network.exit_a);
    }
    let sent = load.stop();
    let exits = FAMILIES.map(|ipv6| scene.network.exit_a.address(ipv6));
    assert!(sent.answers.keys().all(|seen| exits.contains(seen)), "{sent:?}");
    assert_nothing_leaked(&scene);
}

#[test]
fn a_store_that_is_lost_between_two_versions_is_no_first_start() {
    let mut scene = Scene::start().expect("scene");
    bind_laptop(&scene);
    age(&mut scene);
    for entry in fs::read_dir(scene.daemon.state_directory()).expect("state").flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
    }
    scene.network.settle().expect("silence");
    scene.network.tap.reset();
    let load = Load::start(&scene.network.laptop).expect("load");
    scene.daemon.spawn().expect("started");
    let is_started = wait_until(SOON, "the daemon to refuse, to rest or to start", || {
        let health = scene.api().get("/health").map(|health| health["status"] == "ok");
        health.ok().or_else(|| scene.daemon.ended().map(|_| false))
    })
    .expect("an outcome");
    assert!(!is_started, "the daemon takes it for a first start\n{}", scene.daemon.last_words());
    load.run_for(200).expect("load");
    load.stop();
    assert_nothing_leaked(&scene);
}
