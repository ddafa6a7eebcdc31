//! Leak check: probes, their recognition behind NAT, and the report on them.

use gateway_common::verdict::Reason;
use gateway_core::leak_check::{
    Check, Expected, LeakVerdict, Outcome, Plan, Run, Sighting, SightingKind, compare, plan, recognise,
};
use proptest::prelude::*;

use crate::fixture::Fixture;

const RANDOM: u64 = 0x1234_5678_9abc_def0;

fn planned(fixture: &Fixture) -> Plan {
    plan(&fixture.input(), &fixture.compiled(), None, &Check::ALL, RANDOM).expect("a LAN")
}

fn left_by(interface: &str) -> Outcome {
    let sighting = Sighting { interface: interface.to_owned(), kind: SightingKind::Left };
    Outcome { sightings: [(sighting, 1)].into(), verdict: Some(Reason::NoPolicy), ..Outcome::default() }
}

/// Outcomes of a kernel that does what the plan says.
fn as_expected(plan: &Plan) -> Run {
    let outcome = |expected: &Expected| match expected {
        Expected::Leaves { by, .. } => left_by(by.first().expect("an interface")),
        _ => Outcome { verdict: Some(Reason::Malformed), ..Outcome::default() },
    };
    let outcomes = plan.probes.iter().map(|probe| outcome(&probe.expected)).collect();
    Run { outcomes, ..Run::default() }
}

#[test]
fn a_packet_at_another_interface_fails_and_an_unseen_one_is_inconclusive() {
    let plan = planned(&Fixture::new());
    let uplink = Expected::Leaves { by: ["wan0".to_owned()].into() };
    assert!(plan.probes.iter().all(|probe| probe.expected == uplink), "{plan:?}");
    let run = as_expected(&plan);
    assert_eq!(compare(&plan, &run).verdict, LeakVerdict::Pass);
    for index in 0..plan.probes.len() {
        let with = |outcome: Outcome| {
            let mut run = run.clone();
            run.outcomes[index] = outcome;
            compare(&plan, &run).verdict
        };
        assert_eq!(with(left_by("wan9")), LeakVerdict::Fail);
        let unseen = Outcome { verdict: Some(Reason::NoPolicy), ..Outcome::default() };
        assert_eq!(with(unseen), LeakVerdict::Inconclusive);
        assert_eq!(with(Outcome::default()), LeakVerdict::Inconclusive);
    }
    let blind = Run { failure: Some("no tap".to_owned()), ..run };
    assert_eq!(compare(&plan, &blind).verdict, LeakVerdict::Inconclusive);
}

#[test]
fn a_missing_route_protects_nothing() {
    let mut fixture = Fixture::new();
    fixture.facts.default_routes.retain(|route| route.ipv6);
    let plan = planned(&fixture);
    let leaves = |probe: &&gateway_core::leak_check::Probe| matches!(probe.expected, Expected::Leaves { .. });
    let leaving: Vec<bool> = plan.probes.iter().filter(leaves).map(|probe| probe.packet.ipv6).collect();
    assert!(!leaving.is_empty() && leaving.iter().all(|ipv6| *ipv6), "{plan:?}");
    assert_eq!(compare(&plan, &as_expected(&plan)).verdict, LeakVerdict::Pass);
}

#[test]
fn a_packet_that_must_not_leave_fails() {
    let mut fixture = Fixture::new();
    fixture.facts.default_routes.clear();
    let plan = planned(&fixture);
    assert!(plan.probes.iter().all(|probe| matches!(probe.expected, Expected::Stopped(_))), "{plan:?}");
    let mut run = as_expected(&plan);
    assert_eq!(compare(&plan, &run).verdict, LeakVerdict::Pass);
    run.outcomes[0] = left_by("wan0");
    let report = compare(&plan, &run);
    assert_eq!(report.verdict, LeakVerdict::Fail);
    let failed: Vec<Check> =
        report.results.iter().filter(|result| !result.pass).map(|result| result.check).collect();
    assert_eq!(failed, [plan.probes[0].check]);
}

/// Returns the packet of a probe behind the gateway: its source translated, one hop fewer.
fn translated(frame: &[u8]) -> Vec<u8> {
    let mut packet = frame[14..].to_vec();
    if packet[0] >> 4 == 4 {
        packet[8] -= 1;
        packet[12..16].fill(9);
    } else {
        packet[7] -= 1;
        packet[8..24].fill(9);
    }
    packet
}

#[test]
fn probes_are_recognised_behind_nat_and_each_as_itself() {
    let plan = planned(&Fixture::new());
    assert!(plan.probes.len() > 10);
    for (index, probe) in plan.probes.iter().enumerate() {
        let packet = translated(&probe.frame);
        assert_eq!(recognise(&plan.probes, &packet), Some((index, SightingKind::Left)), "{}", probe.label);
    }
    let others = plan_of_another_run();
    for probe in &others.probes {
        assert_eq!(recognise(&plan.probes, &translated(&probe.frame)), None, "{}", probe.label);
    }
}

fn plan_of_another_run() -> Plan {
    let fixture = Fixture::new();
    plan(&fixture.input(), &fixture.compiled(), None, &Check::ALL, !RANDOM).expect("a LAN")
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 4..7u8) {
        let plan = planned(&Fixture::new());
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | *first & 15;
        }
        let _ = recognise(&plan.probes, &bytes);
    }
}
