//! Deterministic check of an edit that is not applied: its errors, and the differences that it would make.
//!
//! The edit is made in a draft. The issues are those of the fields, of the gating tests, the conflicts, the findings of
//! the compiler, the leaks of the changed policies, and the devices that would be more exposed than they are.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::bulk_edit::{ItemChange, Op, diff};
use gateway_model::id::Id;
use gateway_model::{EditError, Resource, RoutingPolicy, State, Warning};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::{Compiled, Finding, Input, compile};
use crate::conflicts::{Severity, conflicts};
use crate::evaluate::{self, Decision, Request};
use crate::matrix::{LeakRow, Risk, leak_matrix};
use crate::network_tests::failing_gates;
use crate::plan_diff::{PlanDiff, plan_diff};

/// Maximum number of devices whose exposure is compared.
const MAX_DEVICES: usize = 500;
/// Maximum number of names in a message.
const MAX_NAMES: usize = 5;

/// Part of the check that found an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IssueSource {
    /// Rules of the fields.
    Fields,
    /// Gating tests.
    Tests,
    /// Conflicts between policies.
    Conflicts,
    /// Findings of the compiler.
    Compiler,
    /// Leak matrix of the changed policies.
    LeakMatrix,
    /// Decisions on the traffic of the devices, before and after.
    Exposure,
}

/// Issue of an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Issue {
    pub source: IssueSource,
    /// An error makes the edit invalid.
    pub severity: Severity,
    /// Path of the field in the object; empty if it is about the whole.
    pub path: String,
    /// Human-readable description.
    pub message: String,
    /// Policies that it is about.
    pub policies: Vec<Id>,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PlanCheck {
    /// No issue is an error.
    pub valid: bool,
    pub issues: Vec<Issue>,
    /// Changes of the stored objects.
    pub changes: Vec<ItemChange>,
    /// Changes of the dataplane; null for an edit with errors in its fields.
    pub plan: Option<PlanDiff>,
    /// Rows of the leak matrix of the changed policies.
    pub leak_rows: Vec<LeakRow>,
}

/// Checks an edit of the present state, which stays as it is. Both sides of the comparison have the stored policies as the
/// applied ones, so that the difference is the one of the edit.
pub fn check_edit(
    input: &Input<'_>,
    edit: impl FnOnce(&mut State) -> Result<Vec<Warning>, EditError>,
) -> PlanCheck {
    let mut present = input.state.begin(input.now);
    present.freeze_applied();
    let mut draft = input.state.begin(input.now);
    let warnings = match edit(&mut draft) {
        Ok(warnings) => warnings,
        Err(error) => return PlanCheck { issues: refusal(&error), ..PlanCheck::default() },
    };
    draft.freeze_applied();
    let (before, after) = (Input { state: &present, ..*input }, Input { state: &draft, ..*input });
    let (compiled, planned) = (compile(&before), compile(&after));
    let changes = diff(input.state, &draft);
    let changed: BTreeSet<Id> = changes
        .iter()
        .filter(|change| change.kind == RoutingPolicy::NOUN && change.op != Op::Delete)
        .map(|change| change.id)
        .collect();
    let warned =
        |warning: Warning| issue(IssueSource::Fields, Severity::Warning, &warning.path, warning.message);
    let mut issues: Vec<Issue> = warnings.into_iter().map(warned).collect();
    issues.extend(failing_tests(&after));
    issues.extend(new_conflicts((&before, &compiled), (&after, &planned)));
    issues.extend(new_findings(&compiled.findings, &planned.findings));
    let mut leak_rows = leak_matrix(&after).rows;
    leak_rows.retain(|row| changed.contains(&row.policy_id));
    issues.extend(leak_rows.iter().filter_map(leak));
    issues.extend(exposure((&before, &compiled), (&after, &planned)));
    issues.extend(not_compared(after.state.devices.iter().count()));
    PlanCheck {
        valid: issues.iter().all(|issue| issue.severity != Severity::Error),
        issues,
        changes,
        plan: Some(plan_diff(&compiled, &planned)),
        leak_rows,
    }
}

/// Returns the issues of an edit that is refused.
fn refusal(error: &EditError) -> Vec<Issue> {
    let field =
        |path: &str, message: &str| issue(IssueSource::Fields, Severity::Error, path, message.to_owned());
    match error {
        EditError::Invalid(problems) => {
            problems.list().iter().map(|problem| field(&problem.path, &problem.message)).collect()
        }
        EditError::Conflict { field: path, message, .. } => vec![field(path, message)],
        other => vec![field("", &other.to_string())],
    }
}

fn issue(source: IssueSource, severity: Severity, path: &str, message: String) -> Issue {
    Issue { source, severity, path: path.to_owned(), message, policies: Vec::new() }
}

fn failing_tests(after: &Input<'_>) -> Vec<Issue> {
    let message = |name: &str, failures: &[String]| {
        format!("The gating test {name:?} would fail: {}.", failures.join("; "))
    };
    let failing = failing_gates(after).into_iter();
    failing
        .map(|test| issue(IssueSource::Tests, Severity::Error, "", message(&test.name, &test.failures)))
        .collect()
}

type View<'a> = (&'a Input<'a>, &'a Compiled);

fn new_conflicts(before: View<'_>, after: View<'_>) -> Vec<Issue> {
    let known = conflicts(before.0, before.1);
    let found = conflicts(after.0, after.1).into_iter().filter(|conflict| !known.contains(conflict));
    found
        .map(|conflict| Issue {
            policies: conflict.policies,
            ..issue(IssueSource::Conflicts, conflict.severity, "", conflict.message)
        })
        .collect()
}

fn new_findings(before: &[Finding], after: &[Finding]) -> Vec<Issue> {
    let found = after.iter().filter(|finding| !before.contains(finding));
    found
        .map(|finding| Issue {
            policies: finding.policy.into_iter().collect(),
            ..issue(IssueSource::Compiler, Severity::Warning, "", finding.message.clone())
        })
        .collect()
}

/// Returns the issue of a policy whose traffic leaks in some state.
fn leak(row: &LeakRow) -> Option<Issue> {
    let cells = &row.cells;
    let states = [
        ("all tunnels work", &cells.up),
        ("its first hop is down", &cells.degraded),
        ("all tunnels are down", &cells.down),
        ("the daemon is down", &cells.daemon_down),
    ];
    let leaking: Vec<&str> = states.iter().filter(|(_, cell)| cell.leak).map(|(state, _)| *state).collect();
    let severity = match row.risk {
        Risk::None => return None,
        Risk::Low => Severity::Info,
        Risk::High => Severity::Warning,
    };
    let message = format!(
        "Traffic of {:?} that is meant for a tunnel leaves directly while {}.",
        row.name,
        leaking.join(", or ")
    );
    Some(Issue { policies: vec![row.policy_id], ..issue(IssueSource::LeakMatrix, severity, "", message) })
}

/// Returns an issue if devices would be more exposed than now.
fn exposure(before: View<'_>, after: View<'_>) -> Option<Issue> {
    let now = decisions(before);
    let more: Vec<String> = decisions(after)
        .into_iter()
        .filter(|(device, decision)| now.get(device).is_some_and(|now| decision > now))
        .filter_map(|(device, _)| after.0.state.devices.get(device).map(|device| device.name.clone()))
        .collect();
    let names: Vec<String> = more.iter().take(MAX_NAMES).map(|name| format!("{name:?}")).collect();
    let rest = match more.len() - names.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let message = format!(
        "More exposed than now, by the present state of the tunnels: {}{rest}. Their traffic would leave by an egress \
         with less protection, or no longer be blocked.",
        names.join(", ")
    );
    (!more.is_empty()).then(|| issue(IssueSource::Exposure, Severity::Warning, "", message))
}

/// Returns an issue if the exposure of some devices was not compared.
fn not_compared(devices: usize) -> Option<Issue> {
    let message = format!("The exposure of {MAX_DEVICES} of {devices} devices was compared.");
    (devices > MAX_DEVICES).then(|| issue(IssueSource::Exposure, Severity::Info, "", message))
}

fn decisions((input, compiled): View<'_>) -> BTreeMap<Id, Decision> {
    let devices = input.state.devices.iter().take(MAX_DEVICES);
    let decision = |id: Id| {
        let request = Request { device_id: Some(id), ..Request::default() };
        evaluate::evaluate(input, compiled, &request).ok().map(|evaluation| evaluation.decision)
    };
    devices.filter_map(|device| Some((device.meta.id, decision(device.meta.id)?))).collect()
}
