//! Report: where the probes may leave, compared with where they left.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gateway_common::verdict::Reason;
use schemars::JsonSchema;
use serde::Serialize;

use super::exit_address::compare_exits;
use super::risks::remaining_risks;
use super::{Check, Expected, Outcome, Plan, Probe, Run, SightingKind};

/// Result of a check, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LeakVerdict {
    /// Every probe was treated as expected.
    Pass,
    /// It is not known what became of a probe.
    Inconclusive,
    /// A probe left where it may not leave, or servers see the address of an uplink behind a tunnel.
    Fail,
}

/// Packets of probes at an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterfacePackets {
    pub interface: String,
    /// Probes, and DNS queries of the gateway for their names.
    pub packets: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckResult {
    pub check: Check,
    /// Treatment of the probes by the plan.
    pub expected: String,
    /// Treatment of the probes by the kernel.
    pub observed: String,
    /// True only if `outcome` is `pass`.
    pub pass: bool,
    pub outcome: LeakVerdict,
    /// One sentence for each probe that was not treated as expected; else how many there were. If the setting
    /// `privacy.leak_check` has servers, `ipv4` and `ipv6` add which addresses they saw.
    pub detail: String,
    /// Address that a server saw by the expected egress: for `ipv4` and `ipv6`, if the setting `privacy.leak_check` has
    /// servers. Null if none was asked, or none answered.
    pub exit_address: Option<IpAddr>,
    /// Interfaces by which packets left.
    pub packets: Vec<InterfacePackets>,
}

/// Results of all checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// The worst result.
    pub verdict: LeakVerdict,
    pub results: Vec<CheckResult>,
    /// Sentences about what can reveal names or addresses of the host although no check fails.
    pub remaining_risks: Vec<String>,
}

/// Returns the report of checks that could not send anything.
pub fn nothing_sent(checks: &[Check], reason: &str) -> Report {
    let result = |check: &Check| CheckResult {
        check: *check,
        expected: String::new(),
        observed: String::new(),
        pass: false,
        outcome: LeakVerdict::Inconclusive,
        detail: reason.to_owned(),
        exit_address: None,
        packets: Vec::new(),
    };
    let results = checks.iter().map(result).collect();
    Report { verdict: LeakVerdict::Inconclusive, results, remaining_risks: Vec::new() }
}

/// Compares a run of the probes with their plan.
pub fn compare(plan: &Plan, run: &Run) -> Report {
    let results: Vec<CheckResult> = plan.checks.iter().map(|check| check_result(plan, run, *check)).collect();
    let worst = results.iter().map(|result| result.outcome).max();
    let unanswered = results.iter().filter(|result| result.exit_address.is_none());
    let unanswered: Vec<Check> = unanswered.map(|result| result.check).collect();
    let remaining_risks = remaining_risks(plan, &unanswered);
    Report { verdict: worst.unwrap_or(LeakVerdict::Inconclusive), results, remaining_risks }
}

fn check_result(plan: &Plan, run: &Run, check: Check) -> CheckResult {
    let nothing = Outcome::default();
    let outcomes = run.outcomes.iter().chain(std::iter::repeat(&nothing));
    let probes: Vec<(&Probe, &Outcome)> =
        plan.probes.iter().zip(outcomes).filter(|(probe, _)| probe.check == check).collect();
    let unsent = plan.unsent.iter().filter(|(of, _)| *of == check);
    let unsent = unsent.map(|(_, reason)| (LeakVerdict::Inconclusive, reason.clone()));
    let compared = probes.iter().map(|(probe, outcome)| probe_result(plan, run, probe, outcome));
    let compared: Vec<(LeakVerdict, String)> = compared.chain(unsent).collect();
    let outcome = compared.iter().map(|(verdict, _)| *verdict).max().unwrap_or(LeakVerdict::Inconclusive);
    let exits = plan.exits.iter().find(|exits| exits.check == check);
    let exits = exits.map(|exits| compare_exits(exits, &run.exits)).unwrap_or_default();
    let outcome = if exits.is_exposed { LeakVerdict::Fail } else { outcome };
    let deviations = compared.into_iter().filter(|(verdict, _)| *verdict != LeakVerdict::Pass);
    let deviations: Vec<String> = deviations.map(|(_, sentence)| sentence).collect();
    let detail = match (probes.len(), deviations.is_empty()) {
        (0, true) => "Nothing was sent.".to_owned(),
        (number, true) => format!("All {number} probes were treated as expected."),
        _ => deviations.join(" "),
    };
    let detail = [vec![detail], exits.sentences].concat().join(" ");
    let mut packets: BTreeMap<&str, u64> = BTreeMap::new();
    for (sighting, number) in probes.iter().flat_map(|(_, outcome)| &outcome.sightings) {
        if sighting.kind != SightingKind::Answer {
            *packets.entry(&sighting.interface).or_default() += number;
        }
    }
    let packets = packets.into_iter();
    CheckResult {
        check,
        expected: listed(probes.iter().map(|(probe, _)| expectation(&probe.expected))),
        observed: listed(probes.iter().map(|(_, outcome)| observation(outcome))),
        pass: outcome == LeakVerdict::Pass,
        outcome,
        detail,
        exit_address: exits.address,
        packets: packets
            .map(|(interface, packets)| InterfacePackets { interface: interface.to_owned(), packets })
            .collect(),
    }
}

/// Compares a probe with the plan. The sentence explains every verdict but a pass.
fn probe_result(plan: &Plan, run: &Run, probe: &Probe, outcome: &Outcome) -> (LeakVerdict, String) {
    let label = &probe.label;
    let (left, asked) =
        (by_interface(outcome, SightingKind::Left), by_interface(outcome, SightingKind::Asked));
    let names = || left.iter().copied().collect::<Vec<_>>().join(", ");
    let fail = |text: String| (LeakVerdict::Fail, text);
    let unknown = |text: String| (LeakVerdict::Inconclusive, text);
    match &probe.expected {
        Expected::Stopped(reason) if !left.is_empty() => {
            return fail(format!("{label} left by {}, although it must not leave: {reason}.", names()));
        }
        Expected::Proxied(proxy) if !left.is_empty() => {
            return fail(format!("{label} left by {}, past the proxy {proxy}.", names()));
        }
        Expected::Leaves { by } if left.iter().any(|interface| !by.contains(*interface)) => {
            let by = by.iter().cloned().collect::<Vec<_>>().join(", ");
            return fail(format!("{label} left by {}, although it may leave by {by} only.", names()));
        }
        _ if probe.leaves_directly() && plan.is_protected && probe.check != Check::Route => {
            return fail(format!("{label} may leave by an uplink, although TCP to the internet may not."));
        }
        Expected::Answered if !left.is_empty() => {
            return fail(format!("{label} left by {}, although the gateway answers it.", names()));
        }
        _ => {}
    }
    if let Some(uplink) = asked.iter().find(|name| plan.is_protected && plan.uplinks.contains(**name)) {
        return fail(format!("The gateway asked for the name of {label} in plain text by {uplink}."));
    }
    if let Some(failure) = &run.failure {
        return unknown(format!("{label} was not observed: {failure}."));
    }
    if outcome.verdict.is_none() {
        return unknown(format!("{label} did not reach the kernel program."));
    }
    match &probe.expected {
        Expected::Leaves { .. } if left.is_empty() => {
            let verdict = outcome.verdict.map_or("", Reason::as_str);
            unknown(format!("{label} was let through ({verdict}), but was not seen at any interface."))
        }
        _ => (LeakVerdict::Pass, String::new()),
    }
}

/// Returns the interfaces at which packets of this kind were seen.
fn by_interface(outcome: &Outcome, kind: SightingKind) -> BTreeSet<&str> {
    let sightings = outcome.sightings.keys().filter(|sighting| sighting.kind == kind);
    sightings.map(|sighting| sighting.interface.as_str()).collect()
}

fn expectation(expected: &Expected) -> String {
    match expected {
        Expected::Stopped(reason) => format!("stopped ({reason})"),
        Expected::Answered => "answered by the gateway".to_owned(),
        Expected::Leaves { by } => {
            format!("leaves by {}", by.iter().cloned().collect::<Vec<_>>().join(" or "))
        }
        Expected::Proxied(proxy) => format!("carried by the proxy {proxy}"),
    }
}

fn observation(outcome: &Outcome) -> String {
    let names = |kind| by_interface(outcome, kind).into_iter().collect::<Vec<_>>().join(", ");
    let (left, asked, answered) =
        (names(SightingKind::Left), names(SightingKind::Asked), names(SightingKind::Answer));
    let mut texts = Vec::new();
    match outcome.verdict {
        _ if !left.is_empty() => texts.push(format!("left by {left}")),
        Some(verdict) => texts.push(format!("did not leave ({})", verdict.as_str())),
        None => texts.push("not observed".to_owned()),
    }
    if !asked.is_empty() {
        texts.push(format!("the gateway asked for the name in plain text by {asked}"));
    }
    if !answered.is_empty() {
        texts.push("answered".to_owned());
    }
    texts.join(", ")
}

/// Joins texts, each once, in order.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut list: Vec<String> = Vec::new();
    for text in texts {
        if !list.contains(&text) {
            list.push(text);
        }
    }
    list.join("; ")
}
