//! The flow log against the decision function: every flow of a run with applies, a failover and exceptions took the path
//! that its plan decides, and a record that says otherwise is found.

use std::net::SocketAddr;
use std::time::Duration;

use gateway_core::flow_log::{FlowFilter, FlowId, FlowRecord};
use gateway_ctl::handles::Handle as _;
use gateway_ctl::services::flow_check::FlowCheck;
use gateway_ctl::services::flow_log::FlowLog;
use gateway_ctl::services::plan_history::PlanHistory;
use gateway_tests::daemon::Reply;
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::{ask, scatter};
use gateway_tests::wait::wait_ok;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::e2e::{BLOCKED, SOON, assert_direct, assert_through, wait_until_through};

/// Environment variable with the number of flows.
const FLOWS: &str = "GATEWAY_FLOW_CHECK_FLOWS";
/// The budget of one device is 16 384 new flows.
const DEFAULT_FLOWS: usize = 10_000;
/// Phases of the run with flows of their own.
const PHASES: usize = 5;
const FIRST_PORT: usize = 10_000;

fn number_of_flows() -> usize {
    std::env::var(FLOWS).ok().map_or(DEFAULT_FLOWS, |text| text.parse().expect("a number of flows"))
}

/// Sends the flows of a phase, each from a port of its own. Denied flows are distinguished by the port of the
/// destination, which therefore varies.
fn send(host: &Host, phase: usize, count: usize) {
    let port = |number: usize| u16::try_from(number).expect("a port");
    let flows = (0..count).map(|flow| {
        let to: SocketAddr = (server(false), port(FIRST_PORT + flow)).into();
        (port(FIRST_PORT + phase * count + flow), to)
    });
    scatter(host, flows).expect("sent");
}

/// Returns all records of the log of a daemon that has ended.
pub(crate) fn records(testbed: &Testbed) -> (FlowLog, Vec<FlowRecord>) {
    let log = FlowLog::open(&testbed.daemon.state_directory(), Timestamp::now());
    let rows = log.read(&FlowFilter::default(), None, None, 1_000_000).rows;
    (log, rows.into_iter().map(|row| row.record).collect())
}

fn wait_until_direct(host: &Host) {
    wait_ok(SOON, "the default route", || {
        let answer = ask(host, (server(false), HTTP).into(), BLOCKED);
        anyhow::ensure!(answer.seen() == Some(wan(false)), "{answer}");
        Ok(())
    })
    .expect("direct");
}

/// Makes the flows of all phases: through a tunnel, after a failover, by an exception, by another policy, and denied ones.
fn run(testbed: &Testbed, laptop: &str, flows: usize) {
    let network = &testbed.network;
    let first = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let mut bound = policy("by exit", 10, ("device", laptop), &["wg-a", "wg-b"]);
    bound["hop_mode"] = json!("failover");
    let id = testbed.policy(&bound).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    let count = flows / PHASES;
    send(&network.laptop, 0, count);

    testbed.bring_down(&first).expect("down");
    wait_until_through(&network.laptop, &network.exit_b);
    send(&network.laptop, 1, count);

    let bypass =
        json!({"type": "emergency-bypass", "device_id": laptop, "reason": "test", "allow_direct": true});
    let exception = testbed.api().post("/exceptions", &bypass).expect("an exception");
    wait_until_direct(&network.laptop);
    send(&network.laptop, 2, count);

    let exception = exception["id"].as_str().expect("an id");
    testbed.api().delete(&format!("/exceptions/{exception}")).expect("revoked");
    testbed.replace_policy(&id, &policy("by exit", 10, ("device", laptop), &["wg-b"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_b);
    send(&network.laptop, 3, count);

    testbed.replace_policy(&id, &policy("by exit", 10, ("device", laptop), &[])).expect("policy");
    wait_ok(SOON, "the block", || {
        let answer = ask(&network.laptop, (server(false), HTTP).into(), BLOCKED);
        anyhow::ensure!(answer.seen().is_none(), "{answer}");
        Ok(())
    })
    .expect("blocked");
    send(&network.laptop, 4, count);
    assert_direct(&network.tv);
}

#[test]
fn every_flow_of_a_run_took_the_path_that_its_plan_decides_and_a_wrong_record_is_an_alert() {
    let mut testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let flows = number_of_flows();
    run(&testbed, &laptop, flows);
    // A request reads the tables of the kernel once more.
    testbed.api().get("/flows?limit=1").expect("flows");
    testbed.daemon.terminate().expect("ended");

    let (log, records) = records(&testbed);
    let history = PlanHistory::open(&testbed.daemon.state_directory(), Timestamp::now());
    let check = FlowCheck::default();
    let found = check.check(&records, &history, Timestamp::now());
    let report = check.report();
    assert_eq!(found, [], "of {} records", records.len());
    println!("{} records: {} paths agree, {} are unknown", records.len(), report.agreed, report.unknown);
    assert!(report.agreed >= flows as u64, "{report:?}");
    assert!(report.unknown * 100 <= report.agreed, "{report:?}");
    let by = |egress: Option<&str>| {
        let is_of = |record: &&FlowRecord| record.paths.iter().any(|path| path.egress.as_deref() == egress);
        records.iter().filter(is_of).count()
    };
    for egress in [Some("wg-a"), Some("wg-b"), Some("auto"), None] {
        assert!(by(egress) >= flows / PHASES, "{} flows by {egress:?}", by(egress));
    }

    let right = records.iter().find(|record| record.paths[0].egress.as_deref() == Some("wg-b"));
    let wrong = leaked(right.expect("a flow through the tunnel"));
    log.import(&wrong, Timestamp::now());
    drop(log);
    testbed.daemon.start().expect("started again");
    assert_found(&testbed);
}

/// Time until the next sample: a hundred times what the last one took, which on busy processors is a second or more.
const CHECK_TIME: Duration = Duration::from_secs(240);

/// Returns records that say that a flow left by the default route, as many as make up all of a sample.
fn leaked(right: &FlowRecord) -> Vec<FlowRecord> {
    let wrong = |number: u32| {
        let mut record = right.clone();
        record.flow_id = FlowId::new(right.flow_id.start(), &number.to_le_bytes());
        record.written_at = Timestamp::now();
        (record.paths[0].leg, record.paths[0].egress) = (None, Some("auto".to_owned()));
        record
    };
    (0..1024).map(wrong).collect()
}

fn assert_found(testbed: &Testbed) {
    wait_ok(CHECK_TIME, "the check of the gateway", || {
        let verification = testbed.api().get("/verify")?;
        let checks = verification["checks"].as_array().expect("checks");
        let flows = checks.iter().find(|check| check["name"] == "flows").expect("the check of flows");
        anyhow::ensure!(flows["ok"] == false && verification["ok"] == false, "{flows}");
        let alerts = testbed.api().get("/alerts?kind=leak_detected&status=active")?;
        anyhow::ensure!(alerts.as_array().is_some_and(|alerts| alerts.len() == 1), "{alerts}");
        let message = alerts[0]["message"].as_str().expect("a message");
        anyhow::ensure!(message.contains("took another path than its plan decides"), "{message}");
        Ok(())
    })
    .expect("found");
}

fn explain(testbed: &Testbed, request: &Value) -> Reply {
    testbed.api().send("POST", "/policy/evaluate", Some(request)).expect("an answer")
}

#[test]
fn a_flow_from_before_an_apply_is_explained_by_the_plan_of_then() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let bound = testbed.policy(&policy("first", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    let mut flow = Value::Null;
    wait_ok(SOON, "the flow in the log", || {
        let flows = testbed.api().get(&format!("/flows?device={laptop}&egress=wg-a"))?;
        flow = flows[0]["flow_id"].clone();
        anyhow::ensure!(flow.is_string(), "{flows}");
        Ok(())
    })
    .expect("logged");
    testbed.replace_policy(&bound, &policy("second", 10, ("device", &laptop), &["wg-b"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_b);

    let reply = explain(&testbed, &json!({"flow_id": flow}));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let data = &reply.body["data"];
    assert_eq!(
        (&data["decision"], &data["effective"]["policy"]["name"]),
        (&json!("tunnel"), &json!("first"))
    );
    assert!(data["sentence"].as_str().is_some_and(|sentence| sentence.contains("TUNNEL wg-a")), "{data}");
    assert_eq!(data["flow"]["comparison"], json!({"result": "agrees", "detail": null}), "{data}");
    assert_eq!((&data["flow"]["flow_id"], &data["flow"]["egress"]), (&flow, &json!("wg-a")), "{data}");
    let now = explain(&testbed, &json!({"device_id": laptop, "to": format!("{}:{HTTP}", server(false))}));
    assert_eq!(now.body["data"]["effective"]["policy"]["name"], "second", "{}", now.body);
    assert_eq!((&now.body["data"]["flow"], &now.body["data"]["as_of"]), (&Value::Null, &Value::Null));
    let logged = testbed.api().get(&format!("/flows?flow_id={}", flow.as_str().expect("an id"))).expect("it");
    assert_eq!(data["as_of"]["generation"], logged[0]["paths"][0]["generation"], "{data}");
    let render = testbed.api().get("/render").expect("the plan");
    assert!(data["as_of"]["generation"].as_u64() < render["generation"].as_u64(), "{data}");
    refusals(&testbed, &laptop, &flow);
}

fn refusals(testbed: &Testbed, laptop: &str, flow: &Value) {
    let error = |reply: &Reply| (reply.status, reply.body["error"]["code"].clone());
    let missing = explain(testbed, &json!({"flow_id": "0123456789abcdef"}));
    assert_eq!(error(&missing), (404, json!("not_found")), "{}", missing.body);
    let details = &missing.body["error"]["details"];
    assert_eq!((&details["resource_type"], &details["field"]), (&json!("flow"), &json!("flow_id")));
    let both = explain(testbed, &json!({"flow_id": flow, "device_id": laptop}));
    assert_eq!(error(&both), (422, json!("validation_failed")), "{}", both.body);
    assert_eq!(both.body["error"]["details"]["fields"][0]["path"], "flow_id");
    let malformed = explain(testbed, &json!({"flow_id": "flow"}));
    assert_eq!(error(&malformed), (422, json!("validation_failed")), "{}", malformed.body);

    // A record of a plan that the history does not have.
    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    let wiped = explain(testbed, &json!({"flow_id": flow}));
    assert_eq!(error(&wiped), (404, json!("not_found")), "{}", wiped.body);
}
