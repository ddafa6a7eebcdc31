//! Results of the runs: the last outcome of each subsystem and the recent drift.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::trigger::Reason;
use crate::os::Outcome;

/// Maximum number of drift items kept.
const DRIFT_KEPT: usize = 256;
/// Name of the subsystem, and the resource of a failure of all of it.
const DATAPLANE: &str = "dataplane";
/// Resource of the failure to write a plan. The plan before it is in force.
pub(super) const PLAN: &str = "plan";

#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Number of the run; 0 before the first.
    pub run: u64,
    /// Revision of the compiled state.
    pub revision: u64,
    pub reason: Reason,
    pub started: Timestamp,
    pub duration_ms: u64,
    pub subsystems: BTreeMap<&'static str, Subsystem>,
    /// Drift items, newest last.
    pub drift: VecDeque<DriftItem>,
    /// Number of drift items since the start, including those that are no longer kept.
    #[serde(skip)]
    pub drift_found: u64,
    /// Time at which the plan must be compiled again at the latest.
    pub valid_until: Option<Timestamp>,
}

/// State of a subsystem after the last run.
#[derive(Clone, Debug, Serialize)]
pub struct Subsystem {
    pub outcome: Outcome,
    /// Time of the last change of its health.
    pub since: Timestamp,
    pub checks: u64,
}

/// Object that another program had changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriftItem {
    #[serde(rename = "type")]
    pub subsystem: String,
    pub resource: String,
    pub field: String,
    pub expected: String,
    pub actual: String,
    pub severity: Severity,
    pub detected_at: Timestamp,
    pub repaired: bool,
}

/// Severity of drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DriftSeverity")]
pub enum Severity {
    Warning,
    /// The object protects against leaks, or its repair failed.
    Critical,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            run: 0,
            revision: 0,
            reason: Reason::Start,
            started: Timestamp::UNIX_EPOCH,
            duration_ms: 0,
            subsystems: BTreeMap::new(),
            drift: VecDeque::new(),
            drift_found: 0,
            valid_until: None,
        }
    }
}

impl Status {
    /// Reports whether every subsystem is in its wanted state.
    pub fn is_ok(&self) -> bool {
        self.subsystems.values().all(|subsystem| subsystem.outcome.is_ok())
    }

    /// Returns the first failure of a subsystem that prevents packets from leaving through a wrong interface.
    pub fn enforcement_failure(&self) -> Option<String> {
        let enforcing = ["dataplane", "nft", "rules"];
        let subsystems = enforcing.iter().filter_map(|name| Some((name, self.subsystems.get(*name)?)));
        let mut failures =
            subsystems.flat_map(|(name, it)| it.outcome.failed.iter().map(move |failure| (name, failure)));
        failures.next().map(|(name, failure)| format!("{name}: {}: {}", failure.resource, failure.error))
    }

    /// Returns the failure for which the last plan is not in force. Failures of single interfaces are none: there, the plan
    /// is not enforced by the program that failed.
    pub fn refusal(&self) -> Option<String> {
        let failed = &self.subsystems.get(DATAPLANE)?.outcome.failed;
        let refusal = failed.iter().find(|failure| [DATAPLANE, PLAN].contains(&&*failure.resource))?;
        Some(format!("{}: {}", refusal.resource, refusal.error))
    }

    /// Reports whether the dataplane enforces the last plan.
    pub fn is_plan_in_force(&self) -> bool {
        self.subsystems.contains_key(DATAPLANE) && self.refusal().is_none()
    }

    pub(super) fn record(&mut self, now: Timestamp, outcomes: BTreeMap<&'static str, Outcome>) {
        for (name, outcome) in outcomes {
            self.record_drift(name, now, &outcome);
            let before = self.subsystems.get(name);
            let same = before.is_some_and(|before| before.outcome.is_ok() == outcome.is_ok());
            let since = before.filter(|_| same).map_or(now, |before| before.since);
            let checks = before.map_or(0, |before| before.checks) + 1;
            self.subsystems.insert(name, Subsystem { outcome, since, checks });
        }
    }

    fn record_drift(&mut self, name: &'static str, now: Timestamp, outcome: &Outcome) {
        for entry in &outcome.drift {
            let guards = matches!(name, "nft" | "rules" | "routes" | "dataplane");
            let severity = if guards || !entry.repaired { Severity::Critical } else { Severity::Warning };
            self.drift_found += 1;
            if self.drift.len() == DRIFT_KEPT {
                self.drift.pop_front();
            }
            self.drift.push_back(DriftItem {
                subsystem: name.to_owned(),
                resource: entry.resource.clone(),
                field: entry.field.clone(),
                expected: entry.expected.clone(),
                actual: entry.actual.clone(),
                severity,
                detected_at: now,
                repaired: entry.repaired,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::{DriftEntry, Failure};

    fn drifting(repaired: bool) -> Outcome {
        let entry = DriftEntry {
            resource: "r".into(),
            field: "f".into(),
            expected: "e".into(),
            actual: "a".into(),
            repaired,
        };
        Outcome { drift: vec![entry], ..Outcome::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_ring_of_drift_keeps_the_newest() {
        let mut status = Status::default();
        for second in 0..300 {
            status.record(at(second), BTreeMap::from([("links", drifting(true))]));
        }
        assert_eq!(status.drift.len(), DRIFT_KEPT);
        assert_eq!(status.drift.back().unwrap().detected_at, at(299));
    }

    #[test]
    fn drift_of_a_guard_or_without_repair_is_critical() {
        let mut status = Status::default();
        let outcomes = [("links", drifting(true)), ("nft", drifting(true)), ("sysctl", drifting(false))];
        status.record(at(0), BTreeMap::from(outcomes));
        let severities: Vec<_> = status.drift.iter().map(|item| item.severity).collect();
        assert_eq!(severities, [Severity::Warning, Severity::Critical, Severity::Critical]);
    }

    #[test]
    fn since_tells_when_it_began() {
        let mut status = Status::default();
        let failing = Outcome {
            failed: vec![Failure { resource: "r".into(), error: "e".into() }],
            ..Outcome::default()
        };
        for (second, outcome) in [(1, Outcome::default()), (2, failing.clone()), (3, failing)] {
            status.record(at(second), BTreeMap::from([("links", outcome)]));
        }
        let links = &status.subsystems["links"];
        assert_eq!((links.since, links.checks), (at(2), 3));
        assert!(!status.is_ok());
    }

    #[test]
    fn a_plan_is_in_force_where_some_interface_fails() {
        let failing = |resource: &str| {
            let failure = Failure { resource: resource.to_owned(), error: "no place".into() };
            let outcome = Outcome { failed: vec![failure], ..Outcome::default() };
            let mut status = Status::default();
            status.record(at(0), BTreeMap::from([("dataplane", outcome)]));
            status
        };
        assert!(!Status::default().is_plan_in_force(), "before the first run");
        assert!(failing("eth0").is_plan_in_force());
        assert_eq!(failing("plan").refusal().as_deref(), Some("plan: no place"));
        assert!(!failing("plan").is_plan_in_force() && !failing("dataplane").is_plan_in_force());
    }
}
