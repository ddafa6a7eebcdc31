//! The registry of health checks: one list, read by `/health`, `/observer`, the verdict, the metrics and the log.
//!
//! Services report their checks; this module adds those of the reconcile loop and of the tasks, and follows all of them
//! over time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gateway_core::compile::Finding as PlanFinding;
use gateway_core::health::{Check, CheckHistory, CheckState, Finding, StateChange, TrackedCheck};
use gateway_ctl::service::Health;
use gateway_ctl::supervise::Supervisor;
use gateway_ctl::world::World;
use jiff::Timestamp;
use parking_lot::Mutex;

/// Interval of the checks.
pub(crate) const PERIOD: Duration = Duration::from_secs(2);
/// Age from which results are worthless.
const MAX_AGE: Duration = Duration::from_secs(30);
/// Code of the finding about a LAN interface whose packets the programs cannot parse.
const LAN_WITHOUT_ETHERNET: &str = "lan_without_ethernet";

/// Results of the checks, and their history.
#[derive(Debug, Default)]
pub struct Checks(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    history: CheckHistory,
    last: Option<(Instant, Arc<[TrackedCheck]>)>,
}

/// Result of a check with what its service adds.
#[derive(Clone, Debug)]
pub struct CheckResult {
    pub tracked: TrackedCheck,
    /// Number of checks so far, where the service counts them.
    pub checks: u64,
}

impl Checks {
    /// Returns the results of the last periodic check. Results that are too old are unknown: the daemon hangs.
    pub fn last(&self) -> Arc<[TrackedCheck]> {
        match &self.0.lock().last {
            Some((at, last)) if at.elapsed() <= MAX_AGE => last.clone(),
            Some((_, last)) => last.iter().cloned().map(outdated).collect(),
            None => Arc::default(),
        }
    }
}

fn outdated(tracked: TrackedCheck) -> TrackedCheck {
    let age = MAX_AGE.as_secs();
    let finding = Finding::not_checked(format!("the last check was more than {age} s ago"));
    TrackedCheck { check: Check::of(tracked.check.name, vec![finding], ""), ..tracked }
}

impl Checks {
    /// Takes over the reports of a run of all checks. Logs what has changed.
    pub fn take(&self, reports: Vec<Health>, now: Timestamp) -> Vec<CheckResult> {
        let (checks, numbers): (Vec<Check>, Vec<_>) =
            reports.into_iter().map(|report| (report.check, (report.since, report.checks))).unzip();
        let mut inner = self.0.lock();
        let (mut tracked, changes) = inner.history.track(checks, now);
        for (tracked, (since, _)) in tracked.iter_mut().zip(&numbers) {
            tracked.since = since.unwrap_or(tracked.since);
        }
        inner.last = Some((Instant::now(), tracked.clone().into()));
        drop(inner);
        changes.iter().for_each(log);
        let results = tracked.into_iter().zip(numbers);
        results.map(|(tracked, (_, checks))| CheckResult { tracked, checks }).collect()
    }
}

/// Returns the checks of the reconcile loop and of the tasks, which no service reports. `has_resolver`: a resolver was
/// started.
pub(crate) fn of_daemon(world: &World, supervisor: &Supervisor, has_resolver: bool) -> Vec<Health> {
    let mut checks = vec![plan(world), lan(world), tasks(supervisor)];
    checks.extend(resolver(world, has_resolver));
    checks.into_iter().map(Health::from).collect()
}

/// Writes one line for a change.
fn log(change: &StateChange) {
    let Check { name: check, state, code, message, remedy, .. } = &change.check;
    match state {
        CheckState::Ok => tracing::info!(check, "health check passes again"),
        CheckState::Unknown => tracing::info!(check, %code, reason = message, "health check is not possible"),
        CheckState::Degraded => {
            tracing::warn!(check, %code, reason = message, remedy, "health check: degraded")
        }
        CheckState::Failed => tracing::error!(check, %code, reason = message, remedy, "health check: failed"),
    }
}

/// Checks that the kernel enforces the plan.
fn plan(world: &World) -> Check {
    let failure = world.status.enforcement_failure();
    Check::of("plan", failure.iter().map(|reason| Finding::drift(reason)).collect(), "in force")
}

/// Checks that the programs can parse the packets of each LAN interface.
fn lan(world: &World) -> Check {
    let blocked = world.live().findings.iter().filter(|finding| is_without_ethernet(finding));
    let findings = blocked.map(|finding| Finding::lan_without_ethernet(&finding.message)).collect();
    Check::of("lan_interfaces", findings, "")
}

/// Reports whether the gateway forwards nothing from a LAN interface because it has no Ethernet.
fn is_without_ethernet(finding: &PlanFinding) -> bool {
    finding.code == LAN_WITHOUT_ETHERNET
}

/// Reports a resolver that could not be started. A running one reports itself.
fn resolver(world: &World, has_resolver: bool) -> Option<Check> {
    let is_missing = !has_resolver && world.attached.is_some();
    let finding = || Finding::not_running("the resolver", "its start failed");
    is_missing.then(|| Check::of("dns", vec![finding()], ""))
}

/// Checks that all tasks of the daemon run.
fn tasks(supervisor: &Supervisor) -> Check {
    let failure = supervisor.failure();
    Check::of("tasks", failure.iter().map(|failure| Finding::task_failed(failure)).collect(), "run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_results_are_unknown() {
        let check = Check::of("dns", Vec::new(), "answers");
        let tracked = TrackedCheck { check, since: Timestamp::UNIX_EPOCH };
        let checks = Checks::default();
        assert!(checks.last().is_empty());
        checks.0.lock().last = Some((Instant::now(), [tracked.clone()].into()));
        assert_eq!(checks.last()[0].check.state, CheckState::Ok);
        let Some(past) = Instant::now().checked_sub(MAX_AGE + Duration::from_secs(1)) else { return };
        checks.0.lock().last = Some((past, [tracked].into()));
        assert_eq!(checks.last()[0].check.state, CheckState::Unknown);
    }
}
