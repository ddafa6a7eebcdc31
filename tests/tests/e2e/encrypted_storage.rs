//! Records that wait for the encrypted storage. This needs no device-mapper: a container that nothing opens is enough. The
//! suite `vm` opens one.

use std::fs;
use std::path::Path;

use gateway_tests::alerts::{wait_for_alert, wait_for_end};
use gateway_tests::daemon::Api;
use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::LAN_V4;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;

/// Length of a container without a header.
const CONTAINER_BYTES: usize = 1 << 20;

fn wait_for_record(api: &Api, name: &str) {
    wait_ok(SOON, &format!("the record of {name}"), || {
        let log = api.get("/dns/log?limit=100")?.to_string();
        anyhow::ensure!(log.contains(name), "{log}");
        Ok(())
    })
    .expect("the query log");
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).into_iter().flatten().count()
}

#[test]
fn records_wait_for_a_storage_that_does_not_open_and_are_written_after_its_teardown() {
    let mut testbed = Testbed::prepare().expect("a scene");
    let _upstream = Upstream::start(&testbed.network.internet).expect("an upstream");
    let servers = json!({"dns": {"upstream_servers": [name_server::ADDRESS]}});
    testbed.daemon.configure(&servers).expect("the configuration");
    testbed.daemon.start().expect("the daemon");
    let state = testbed.daemon.state_directory();
    testbed.daemon.terminate().expect("ended");
    let plain = ["dns/log", "flows", "flow-rollups", "usage"].map(|name| state.join(name));
    // An earlier set-up has been cut off behind its rename.
    fs::create_dir_all(&plain[0]).expect("a folder");
    fs::write(plain[0].join("left"), "alice.example").expect("a record");
    fs::write(state.join("encrypted.new"), "unfinished").expect("a file");
    let contents = json!({"contents": ["query_log", "flow_log", "captures"]});
    fs::write(state.join("encrypted.json"), contents.to_string()).expect("settings");
    fs::write(state.join("encrypted.luks"), vec![7; CONTAINER_BYTES]).expect("a container");
    testbed.daemon.start().expect("the daemon");

    let api = testbed.api();
    let alert = wait_for_alert(api, "encrypted_storage_locked", "encrypted_storage", SOON).expect("an alert");
    assert!(
        alert["message"].as_str().is_some_and(|text| text.contains("query_log, flow_log, captures")),
        "{alert}"
    );
    assert!(!state.join("encrypted.new").exists());
    let status = api.get("/storage/encrypted").expect("the state");
    assert_eq!((&status["configured"], &status["mounted"]), (&json!(true), &json!(false)), "{status}");
    assert_eq!(status["waiting"], contents["contents"]);
    let health = api.get("/observer").expect("the health").to_string();
    assert!(health.contains("waiting for encrypted storage: query_log, flow_log, captures"), "{health}");
    let refused =
        api.send("POST", "/diagnostics/capture", Some(&json!({"interface": "eth1"}))).expect("an answer");
    assert_eq!(refused.status, 409, "{refused:?}");

    let mut client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
    client.ask("waiting.example", A).expect("an answer");
    wait_for_record(api, "waiting.example");
    assert_eq!(plain.each_ref().map(|folder| files(folder)), [0; 4], "written beside the storage");

    let torn = api.act("/storage/encrypted/teardown").expect("torn down");
    assert_eq!(torn["state"], "absent", "{torn}");
    wait_for_end(api, &alert, SOON).expect("it ended");
    assert!(!state.join("encrypted.luks").exists() && !state.join("encrypted.json").exists());
    client.ask("further.example", A).expect("an answer");
    wait_for_record(api, "further.example");
    wait_for_record(api, "waiting.example");
    testbed.daemon.terminate().expect("ended");
    assert!(files(&plain[0]) > 0, "the query log writes files again");
}
