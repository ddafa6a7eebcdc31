//! Blocked names: blocked with their reason for the configured time.

use std::net::{IpAddr, Ipv4Addr};

use gateway_tests::dns::{A, AAAA};
use gateway_tests::name_server;
use gateway_tests::testbed::create;
use gateway_tests::topology::server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;
use crate::e2e::dns_policy::{client, reply, resolving};

#[test]
fn a_blocked_name_is_blocked_with_its_reason() {
    let (testbed, upstream) = resolving();
    let mut laptop = client(&testbed.network.laptop);
    assert_eq!(laptop.ask("ads.example", A).expect("an answer"), reply(server(false)));
    testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("stored");
    wait_ok(SOON, "the name to be blocked", || {
        let answer = laptop.ask("www.ads.example", A)?;
        anyhow::ensure!(answer == reply(Ipv4Addr::UNSPECIFIED.into()), "{answer:?}");
        Ok(())
    })
    .expect("blocked");
    assert_eq!(laptop.ask("ads.example", AAAA).expect("an answer"), reply(IpAddr::from([0u16; 8])));
    let rule = json!({"pattern": "pests.example", "action": "block"});
    let id = create(testbed.api(), "/dns/filter-rules", &rule).expect("stored");
    wait_ok(SOON, "the hit of a rule to be counted", || {
        laptop.ask("www.pests.example", A)?;
        let rule = testbed.api().get(&format!("/dns/filter-rules/{id}"))?;
        anyhow::ensure!(rule["hits"].as_u64().is_some_and(|hits| hits > 0), "{rule}");
        anyhow::ensure!(rule["last_hit"].is_string(), "{rule}");
        Ok(())
    })
    .expect("counted");
    let about = |name: &str| {
        let question = json!({"mac": testbed.network.laptop.mac, "destination": name});
        let answer = testbed.api().post("/policy/evaluate", &question).expect("explained");
        answer["effective"]["dns"].as_str().unwrap_or_default().to_owned()
    };
    assert!(about("www.ads.example").starts_with("blocked by the blocklist ads.example"));
    assert!(about("pests.example:443").starts_with("blocked by the filter rule pests.example"));
    assert_eq!(about("www.example"), format!("{} by the default route", name_server::ADDRESS));
    let asked = upstream.askers("www.ads.example").len();
    laptop.ask("www.ads.example", A).expect("an answer");
    assert_eq!(upstream.askers("www.ads.example").len(), asked);
}

#[test]
fn a_feed_that_cannot_be_read_shows_its_reason() {
    let (testbed, _upstream) = resolving();
    let feed = json!({"name": "unreachable", "url": "http://127.0.0.1:1/list.txt", "format": "domains"});
    let id = create(testbed.api(), "/dns/threat-feeds", &feed).expect("stored");
    wait_ok(SOON, "the reason to be shown", || {
        let feed = testbed.api().get(&format!("/dns/threat-feeds/{id}"))?;
        anyhow::ensure!(feed["status"] == "error", "{feed}");
        anyhow::ensure!(feed["ignored"].is_null(), "{feed}");
        anyhow::ensure!(feed["error"].as_str().is_some_and(|text| !text.is_empty()), "{feed}");
        Ok(())
    })
    .expect("shown");
}

/// The kernel's cache is warm at each change: the client has queried the name several times.
#[test]
fn filter_changes_are_in_force_when_the_answer_arrives() {
    let (testbed, _upstream) = resolving();
    let mut laptop = client(&testbed.network.laptop);
    let (blocked, passed) = (reply(Ipv4Addr::UNSPECIFIED.into()), reply(server(false)));
    let rewritten = reply(Ipv4Addr::new(192, 0, 2, 9).into());
    let changes = [
        ("/dns/blocklist", json!({"domain": "ads.example"}), &blocked),
        ("/dns/filter-rules", json!({"pattern": "ads.example", "action": "block"}), &blocked),
        ("/dns/rewrites", json!({"domain": "ads.example", "answer": "192.0.2.9"}), &rewritten),
    ];
    for round in 0..10 {
        for (path, body, expected) in &changes {
            for _ in 0..4 {
                let answer = laptop.ask("ads.example", A).expect("an answer");
                assert_eq!(answer, passed, "round {round}, before {path}");
            }
            let id = create(testbed.api(), path, body).expect("stored");
            let answer = laptop.ask("ads.example", A).expect("an answer");
            assert_eq!(&answer, *expected, "round {round}, after POST {path}");
            testbed.api().delete(&format!("{path}/{id}")).expect("deleted");
        }
    }
}

#[test]
fn blocking_can_be_paused_and_filtering_switched_off_without_a_restart() {
    let (testbed, _upstream) = resolving();
    let mut laptop = client(&testbed.network.laptop);
    testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("stored");
    let mut until = |what: &str, address: IpAddr| {
        wait_ok(SOON, what, || {
            let answer = laptop.ask("ads.example", A)?;
            anyhow::ensure!(answer == reply(address), "{answer:?}");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error:#}"));
    };
    let (blocked, passed) = (Ipv4Addr::UNSPECIFIED.into(), server(false));
    let blocking = || testbed.api().get("/dns/status").expect("status")["blocking"].clone();
    until("the name to be blocked", blocked);
    for (key, value) in [
        ("dns.blocking_paused_until", json!("2100-01-01T00:00:00Z")),
        ("dns.filtering_enabled", json!(false)),
    ] {
        let path = format!("/settings/{key}");
        let set = testbed.api().put(&path, &json!({"value": value})).expect("set");
        assert_eq!((&set["apply"], &set["pending_restart"]), (&json!("live"), &json!(false)), "{set}");
        until("the name to pass", passed);
        let status = blocking();
        assert!(status["paused_until"] == value || status["enabled"] == value, "{status}");
        testbed.api().delete(&path).expect("taken back");
        until("the name to be blocked again", blocked);
        assert_eq!((&blocking()["paused_until"], &blocking()["enabled"]), (&json!(null), &json!(true)));
    }
}
