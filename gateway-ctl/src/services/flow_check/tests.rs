//! Records of flows against plans of the history.

use std::net::IpAddr;

use gateway_common::verdict::Reason;
use gateway_core::flow_log::{Client, Decision, FlowId, FlowPath};
use gateway_model::MacAddr;

use super::report::MAX_DIFFERENCES;
use super::*;
use crate::clock::SystemClock;
use crate::services::plan_history::tests::{Recorder, at};

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Flow of a host without a device, of which the plan of the recorder says that it takes the default route.
fn record(generation: u32, reason: u8, decision: Decision) -> FlowRecord {
    let client = Client {
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        address: address("192.0.2.1"),
        port: 40_000,
        interface: 2,
        interface_name: Some("lan0".to_owned()),
        vlan: 0,
        device: None,
        trust_class: None,
    };
    let path = FlowPath {
        at: at(15),
        generation,
        decision,
        reason,
        policy: None,
        hops: Vec::new(),
        leg: None,
        egress: None,
    };
    FlowRecord {
        flow_id: FlowId::new(at(15), &[reason]),
        part: 0,
        written_at: at(16),
        client: Some(client),
        destination: address("203.0.113.7"),
        destination_port: 443,
        protocol: 6,
        names: Vec::new(),
        server_name: None,
        paths: vec![path],
        path_changes: 0,
        sent: None,
        received: None,
        last_at: None,
        ended_at: None,
        end: None,
    }
}

fn reasons() -> impl Iterator<Item = u8> {
    (0..=u8::MAX).take_while(|code| Reason::from_wire(*code).is_some())
}

#[test]
fn only_the_result_that_the_plan_gives_agrees_and_every_other_one_is_found() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    let check = FlowCheck::default();
    let records: Vec<FlowRecord> = reasons()
        .flat_map(|reason| Decision::ALL.iter().map(move |decision| record(7, reason, *decision)))
        .collect();
    let found = check.check(&records, recorder.history(), at(20));
    let report = check.report();
    assert_eq!((report.agreed, report.differing), (1, found.len() as u64), "{found:?}");
    assert_eq!(report.agreed + report.differing + report.unknown, records.len() as u64);
    // No plan, and a reset, rest on what was before.
    assert_eq!(report.unknown, 2 * Decision::ALL.len() as u64, "{report:?}");
    assert_eq!(report.differences.len(), MAX_DIFFERENCES);
    assert!(found.iter().all(|found| found.difference.contains("the plan 7 says")), "{found:?}");

    let alerts = ActiveAlerts::new(SystemClock::shared());
    alert(&alerts, &found, at(20));
    let raised = alerts.list();
    assert_eq!((raised.len(), raised[0].kind, raised[0].subject.as_str()), (1, ALERT, SUBJECT));
    assert!(raised[0].until.is_some_and(|until| until >= at(20) + ALERT_TIME));
}

#[test]
fn a_leg_that_the_plan_does_not_offer_is_found() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    let agrees = |record: &FlowRecord| {
        let check = FlowCheck::default();
        check.check(std::slice::from_ref(record), recorder.history(), at(20));
        check.report().agreed == 1
    };
    let results = reasons().flat_map(|reason| Decision::ALL.iter().map(move |decision| (reason, *decision)));
    let agreeing = results.map(|(reason, decision)| record(7, reason, decision)).find(agrees);
    let mut leaked = agreeing.expect("a result of the plan");
    leaked.paths[0].leg = Some(17);
    let found = FlowCheck::default().check(&[leaked], recorder.history(), at(20));
    assert!(found.len() == 1 && found[0].difference.contains("leg 17"), "{found:?}");
}

#[test]
fn a_plan_that_is_not_kept_makes_the_result_unknown_and_no_alert() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    let check = FlowCheck::default();
    assert_eq!(check.check(&[record(6, 0, Decision::Dropped)], recorder.history(), at(20)), []);
    let anonymous = FlowRecord { client: None, ..record(7, 0, Decision::Dropped) };
    assert_eq!(check.check(&[anonymous], recorder.history(), at(20)), []);
    let report = check.report();
    assert_eq!((report.agreed, report.differing, report.unknown), (0, 0, 2));
    assert!(report.last_unknown.is_some());
}
