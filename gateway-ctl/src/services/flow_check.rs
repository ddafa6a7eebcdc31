//! Check of the flow log: samples of recent flows are decided again by the plan that decided on them, all the time.
//!
//! A difference means that packets took another path than the gateway explains. It is an alert of the class of leaks.
//!
//! Decision 0201 says why.

mod comparison;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gateway_core::flow_log::{FlowFilter, FlowRecord};
use gateway_model::kinds::alert_rule::AlertKind;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::handles::in_memory;
use crate::metrics::counter;
use crate::service::{Context, Service};
use crate::services::active_alerts::ActiveAlerts;
use crate::services::flow_log::FlowLog;
use crate::services::plan_history::PlanHistory;
use crate::supervise::blocking;

use comparison::Comparer;
pub use report::{FlowCheckReport, FlowDifference};

/// Shortest time between two samples.
const INTERVAL: Duration = Duration::from_secs(10);
/// Samples take at most one of so many parts of the time.
const IDLE_SHARE: u32 = 100;
/// A sample ends after this time.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum number of flows of a sample.
const MAX_FLOWS: usize = 64;
/// Newest flows among which a sample is taken.
const MAX_CANDIDATES: usize = 512;
/// Age from which on a flow is checked. The log has read it by then, and the history has its plan.
const MIN_AGE: SignedDuration = SignedDuration::from_secs(8);
/// Time for which a difference is an alert.
const ALERT_TIME: SignedDuration = SignedDuration::from_hours(1);
const ALERT: AlertKind = AlertKind::LeakDetected;
/// Subject of the alert.
pub const SUBJECT: &str = "flow log";

/// Results of the check, which the API reads. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct FlowCheck(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    report: FlowCheckReport,
    /// Flows that began before this time were candidates. `None` before the first sample.
    until: Option<Timestamp>,
}

in_memory!(FlowCheck);

impl FlowCheck {
    pub fn report(&self) -> FlowCheckReport {
        self.0.lock().report.clone()
    }

    /// Compares each path of flows with its plan. Returns the differences. Blocks on the disk, and compiles.
    pub fn check(
        &self,
        records: &[FlowRecord],
        history: &PlanHistory,
        now: Timestamp,
    ) -> Vec<FlowDifference> {
        self.check_within(Duration::MAX, records, history, now)
    }

    fn check_within(
        &self,
        time: Duration,
        records: &[FlowRecord],
        history: &PlanHistory,
        now: Timestamp,
    ) -> Vec<FlowDifference> {
        let (begun, mut found) = (Instant::now(), Vec::new());
        let mut comparer = Comparer::new(history);
        for record in records {
            if begun.elapsed() > time {
                break;
            }
            for path in &record.paths {
                let comparison = comparer.compare(record, path);
                found.extend(self.0.lock().report.note(record.flow_id, path, comparison, now));
            }
        }
        found
    }

    /// Returns flows that have begun since the last sample.
    fn sample(&self, log: &FlowLog, now: Timestamp) -> Vec<FlowRecord> {
        let until = now.checked_sub(MIN_AGE).unwrap_or(now);
        let since = self.0.lock().until.replace(until);
        let filter = FlowFilter { since, begun_since: since, until: Some(until), ..FlowFilter::default() };
        let read = |active| log.read(&filter, Some(active), None, MAX_CANDIDATES).rows;
        let rows = read(true).into_iter().chain(read(false));
        let mut records: Vec<FlowRecord> = rows.map(|row| row.record).collect();
        // One part of a flow is enough, and flows of one plan follow one another.
        records.sort_by_key(|record| (record.flow_id, record.part));
        records.dedup_by_key(|record| record.flow_id);
        let step = records.len().div_ceil(MAX_FLOWS).max(1);
        records.into_iter().step_by(step).collect()
    }
}

/// Returns the service.
pub fn service(context: &Context) -> Service {
    let check = context.handles.get::<FlowCheck>();
    let measured = check.clone();
    Service::new("flow_check", context, run)
        .measures(move |registry| {
            let FlowCheckReport { agreed, differing, unknown, .. } = measured.report();
            let mut count = |name, help, value| counter(registry, name, help, value);
            count("flow_check_agreed", "Paths of flows that were decided again with the same result", agreed);
            count(
                "flow_check_differing",
                "Paths of flows that were decided again with another result",
                differing,
            );
            count("flow_check_unknown", "Paths of flows that could not be decided again", unknown);
        })
        .erases(move |_| {
            *check.0.lock() = State::default();
            std::future::ready(Ok(()))
        })
}

async fn run(context: Context) {
    loop {
        let begun = Instant::now();
        let sampled = context.clone();
        blocking(move || check_now(&sampled)).await;
        tokio::time::sleep(INTERVAL.max(begun.elapsed() * IDLE_SHARE)).await;
    }
}

fn check_now(context: &Context) {
    let (check, history) = (context.handles.get::<FlowCheck>(), context.handles.get::<PlanHistory>());
    let now = context.store.clock().now();
    let sample = check.sample(&context.handles.get::<FlowLog>(), now);
    let found = check.check_within(MAX_TIME, &sample, &history, now);
    alert(&context.active_alerts, &found, now);
}

/// Raises the alert, which ends some time after the last difference.
fn alert(active_alerts: &ActiveAlerts, found: &[FlowDifference], now: Timestamp) {
    for FlowDifference { flow_id, difference, .. } in found {
        tracing::error!(%flow_id, difference, "a flow took another path than its plan decides");
        let message = format!("The flow {flow_id} took another path than its plan decides: {difference}");
        active_alerts.raise_until(ALERT, SUBJECT, now.saturating_add(ALERT_TIME).unwrap_or(now), message);
    }
}

#[cfg(test)]
mod tests;
