//! Anomalies in real traffic, of a device whose usual values are known from the weeks before.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;

use gateway_core::anomalies::{HOURS, Profile, Samples, Stored};
use gateway_model::Id;
use gateway_tests::dns::A;
use gateway_tests::mmdb;
use gateway_tests::services::BULK;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, server};
use gateway_tests::traffic::{scatter, transfer};
use gateway_tests::wait::wait_ok;
use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::e2e::SOON;
use crate::e2e::dns_policy::{client, resolving};

/// Bytes that are answered by the server as an upload of the host.
const UPLOAD: u64 = 4 << 20;

/// Returns samples of three weeks in which each hour had this value.
fn usual(value: u64) -> Samples {
    let mut samples = Samples::default();
    (0..3 * HOURS).for_each(|hour| samples.push(hour, value));
    samples
}

/// Restarts the daemon with a device that was observed for weeks.
fn restart_with_baseline(testbed: &mut Testbed, device: &str) {
    testbed.daemon.terminate().expect("ended");
    let file = testbed.daemon.state_directory().join("anomalies.json");
    let kept: Value = serde_json::from_slice(&fs::read(&file).expect("what was learned")).expect("JSON");
    assert!(kept["devices"][device].is_object(), "{kept}");
    let profile = Profile::known(504, usual(1000), usual(20), usual(0));
    let id: Id = device.parse().expect("an id");
    let stored = Stored { devices: BTreeMap::from([(id, profile)]), ..Stored::default() };
    fs::write(&file, serde_json::to_vec(&stored).expect("JSON")).expect("written");
    testbed.daemon.start().expect("started again");
}

fn send_queries(host: &Host) {
    let mut client = client(host);
    let mut ask = |name: &str| drop(client.ask(name, A).expect("an answer"));
    (0..450).for_each(|_| ask("www.example"));
    // Names below `invalid` do not exist (RFC 6761).
    (0..110).for_each(|number| ask(&format!("missing-{number}.invalid")));
    (0..25).for_each(|number| ask(&format!("q{number}w8z3k9x2r7t1.invalid")));
    (0..110).for_each(|number| ask(&format!("{number:040x}.t.tunnel.example")));
    ask("dns.google");
}

fn kinds(testbed: &Testbed, device: &str) -> BTreeMap<String, Value> {
    let list = testbed.api().get(&format!("/anomalies?device_id={device}")).expect("anomalies");
    let list = list.as_array().expect("a list").clone();
    list.into_iter().map(|anomaly| (anomaly["kind"].as_str().expect("a kind").to_owned(), anomaly)).collect()
}

/// Flows that an anomaly names are in the log.
fn assert_names_flows(testbed: &Testbed, anomaly: &Value, port: Option<u16>) {
    let ids = anomaly["flow_ids"].as_array().expect("a list");
    assert!(!ids.is_empty() && ids.len() <= 8, "{anomaly}");
    let id = ids[0].as_str().expect("an id");
    let flows = testbed.api().get(&format!("/flows?flow_id={id}")).expect("flows");
    assert_eq!(flows[0]["client"]["device_id"], anomaly["device_id"], "{anomaly}");
    if let Some(port) = port {
        assert_eq!(flows[0]["destination_port"], port, "{anomaly}");
    }
}

fn assert_countries(testbed: &Testbed) {
    let address = server(false);
    let flows = testbed.api().get(&format!("/flows?destination={address}&limit=1")).expect("flows");
    assert_eq!(flows[0]["country"], "XA", "{flows}");
    let top = testbed.api().get("/flows/top?by=country").expect("totals");
    let of_server = top["totals"].as_array().expect("a list").iter().find(|total| total["name"] == "XA");
    assert!(of_server.is_some_and(|total| total["flows"].as_u64() >= Some(40)), "{top}");
    testbed.api().put("/settings/countries.database", &json!({"value": null})).expect("set");
    wait_ok(2 * SOON, "no country", || {
        let flows = testbed.api().get(&format!("/flows?destination={address}&limit=1"))?;
        anyhow::ensure!(flows[0]["country"].is_null(), "{flows}");
        Ok(())
    })
    .expect("unknown");
    // What was added up before keeps its country (decision 0208).
    let now = testbed.api().get("/flows/top?by=country").expect("totals");
    let count = |top: &Value| {
        top["totals"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|total| total["flows"].as_u64())
            .sum::<u64>()
    };
    assert!(count(&now) >= count(&top), "{now} after {top}");
}

/// Writes a database in which the network of the server is in a country.
fn write_countries(testbed: &Testbed) -> String {
    let IpAddr::V4(address) = server(false) else { panic!("an IPv4 address") };
    let network = Ipv4Net::new(address, 24).expect("a network");
    let file = testbed.daemon.state_directory().with_file_name("countries.mmdb");
    fs::write(&file, mmdb::countries(&[(network, "XA")])).expect("written");
    file.to_string_lossy().into_owned()
}

#[test]
fn what_a_device_does_far_from_what_is_usual_is_found_and_a_quiet_device_is_not() {
    let (mut testbed, _upstream) = resolving();
    let countries = write_countries(&testbed);
    testbed.api().put("/settings/countries.database", &json!({"value": countries})).expect("set");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let tv = testbed.device(&testbed.network.tv).expect("device");
    let set = |testbed: &Testbed, key: &str, value: u64| {
        testbed.api().put(&format!("/settings/{key}"), &json!({"value": value})).expect("set");
    };
    set(&testbed, "anomalies.learning_hours", 24);
    set(&testbed, "anomalies.large_upload_mib", 1);
    // Also the kinds that are off by default.
    testbed.api().put("/settings/anomalies.disabled_kinds", &json!({"value": []})).expect("set");
    wait_ok(2 * SOON, "the device to be observed", || {
        let stats = testbed.api().get("/anomalies/stats")?;
        anyhow::ensure!(stats["devices"] == 2 && stats["devices_learning"] == 2, "{stats}");
        Ok(())
    })
    .expect("observed");
    restart_with_baseline(&mut testbed, &laptop);
    wait_ok(SOON, "the baseline", || {
        let stats = testbed.api().get("/anomalies/stats")?;
        anyhow::ensure!(stats["devices_learning"] == 1 && stats["learning"] == false, "{stats}");
        Ok(())
    })
    .expect("known");
    send_queries(&testbed.network.laptop);
    let address: IpAddr = server(false);
    transfer(&testbed.network.laptop, address, UPLOAD).expect("uploaded");
    // Ports of one address, each from another port.
    let scanned = (0..40).map(|number| (21_000 + number, (address, 1000 + number).into()));
    scatter(&testbed.network.laptop, scanned).expect("scanned");
    let expected = [
        "dga_like",
        "dns_nxdomain_burst",
        "dns_tunnel_like",
        "dns_volume",
        "doh_usage",
        "large_upload",
        "new_destination_country",
        "new_port",
        "port_scan",
    ];
    wait_ok(2 * SOON, "all anomalies", || {
        let found = kinds(&testbed, &laptop);
        let missing: Vec<&str> = expected.into_iter().filter(|kind| !found.contains_key(*kind)).collect();
        anyhow::ensure!(missing.is_empty(), "{missing:?} of {found:?}");
        Ok(())
    })
    .expect("found");
    let found = kinds(&testbed, &laptop);
    let volume = &found["dns_volume"];
    assert_eq!((&volume["status"], &volume["rests_on"]), (&json!("open"), &json!("query_log")), "{volume}");
    assert_eq!(volume["baseline"]["basis"], "hour_of_week", "{volume}");
    assert!(
        volume["observed"].as_f64().expect("a number")
            >= volume["baseline"]["threshold"].as_f64().expect("a number")
    );
    for (kind, port) in [("port_scan", None), ("new_port", None), ("large_upload", Some(BULK))] {
        assert_names_flows(&testbed, &found[kind], port);
    }
    let country = found["new_destination_country"]["description"].as_str().expect("a description");
    assert!(country.contains("XA"), "{country}");
    assert!(kinds(&testbed, &tv).is_empty(), "it did nothing");
    assert_countries(&testbed);

    testbed.daemon.terminate().expect("ended");
    testbed.daemon.start().expect("started again");
    assert_eq!(kinds(&testbed, &laptop).len(), found.len(), "they outlive a restart");
    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    assert!(kinds(&testbed, &laptop).is_empty());
}
