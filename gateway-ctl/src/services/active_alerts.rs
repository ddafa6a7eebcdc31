//! Registry of the conditions that services report. It passes the reports on to the alert engine, which makes alerts of
//! them.
//!
//! A condition holds from `raise` until `clear` or `keep`. After a start, the conditions of the alerts of the last run are
//! known here, so that services end those that hold no more. A service ends a condition only if it has observed something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_core::alerts::{AlertKey, Measure, behaviour};
use gateway_model::kinds::alert_rule::AlertKind;
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::clock::SharedClock;

/// Minutes to which the time is rounded at which a condition ends by itself.
const UNTIL_MINUTES: i64 = 5;
/// Longest time until a condition ends by itself: the lifetime of a router.
const MAX_UNTIL: SignedDuration = SignedDuration::from_secs(u16::MAX as i64);
/// Capacity of the queue. Beyond it, the engine gets the present conditions instead.
const MAX_REPORTS: usize = 65_536;

/// Condition that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveAlert {
    pub kind: AlertKind,
    /// Subject of the alert, among those of its kind.
    pub subject: String,
    pub message: String,
    /// Measured value, in the unit of the rule's threshold.
    pub value: Option<f64>,
    pub since: Timestamp,
    /// Number of times that it happened, for events that a service counts.
    pub times: u64,
    /// Time at which it ends if the service observes nothing more; `None` if only an observation ends it.
    pub until: Option<Timestamp>,
}

/// Report for the alert engine.
#[derive(Clone, Debug, PartialEq)]
pub enum AlertReport {
    /// The condition holds, or the event happened.
    Holds(ActiveAlert),
    Ended(AlertKey),
}

/// Reports since the last call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuedReports {
    pub reports: Vec<AlertReport>,
    /// Reports were lost: all conditions that are not among `reports` have ended.
    pub is_complete_state: bool,
}

/// Registry of the conditions.
#[derive(Clone, Debug)]
pub struct ActiveAlerts(Arc<Alerts>);

#[derive(Debug)]
struct Alerts {
    clock: SharedClock,
    conditions: Mutex<Conditions>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Conditions {
    active: BTreeMap<AlertKey, ActiveAlert>,
    /// Those of the last run, about which no service has said anything.
    restored: BTreeSet<AlertKey>,
    queue: Vec<AlertReport>,
    has_lost: bool,
}

impl ActiveAlerts {
    pub fn new(clock: SharedClock) -> ActiveAlerts {
        let (conditions, changed) = Default::default();
        ActiveAlerts(Arc::new(Alerts { clock, conditions, changed }))
    }

    /// Raises an alert, or renews it with the newest message.
    pub fn raise(&self, kind: AlertKind, subject: &str, message: String) {
        self.hold(self.condition(kind, subject, message));
    }

    /// Raises an alert that ends at a time unless it is renewed. After a restart, it ends then and not before. The time is
    /// rounded up, so that not each renewal is a change.
    pub fn raise_until(&self, kind: AlertKind, subject: &str, until: Timestamp, message: String) {
        let step =
            TimestampRound::new().smallest(Unit::Minute).increment(UNTIL_MINUTES).mode(RoundMode::Ceil);
        let until = Some(until.round(step).unwrap_or(until));
        self.hold(ActiveAlert { until, ..self.condition(kind, subject, message) });
    }

    /// Reports a measured value, in the unit of the rule's threshold. The rule decides whether it is an alert.
    pub fn measure(&self, kind: AlertKind, subject: &str, value: f64, message: String) {
        self.hold(ActiveAlert { value: Some(value), ..self.condition(kind, subject, message) });
    }

    /// Reports an event of a kind whose alerts have no end.
    pub fn note_event(&self, kind: AlertKind, subject: &str, message: String) {
        self.note_events(kind, subject, 1, message);
    }

    /// Reports an event that happened a number of times.
    pub fn note_events(&self, kind: AlertKind, subject: &str, times: u64, message: String) {
        let event = ActiveAlert { times, ..self.condition(kind, subject, message) };
        self.lock().push(AlertReport::Holds(event));
        self.0.changed.notify_one();
    }

    /// Ends an alert if it is active.
    pub fn clear(&self, kind: AlertKind, subject: &str) {
        self.end(&mut self.lock(), &AlertKey::new(kind, subject));
    }

    /// Ends the alerts of a kind whose subject no longer exists. No other report is taken meanwhile. Those of the last run
    /// that have a time of their end stay until then.
    pub fn keep(&self, kind: AlertKind, there: impl Fn(&str) -> bool) {
        let now = self.0.clock.now();
        let mut conditions = self.lock();
        let stays = |key: &AlertKey, condition: &ActiveAlert| {
            let is_restored = conditions.restored.contains(key);
            there(&key.subject) || is_restored && condition.until.is_some_and(|until| until > now)
        };
        let gone = conditions.active.iter().filter(|(key, it)| key.kind == kind && !stays(key, it));
        let gone: Vec<AlertKey> = gone.map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| self.end(&mut conditions, key));
    }

    /// Returns the conditions that hold.
    pub fn list(&self) -> Vec<ActiveAlert> {
        self.lock().active.values().cloned().collect()
    }

    /// Adds a condition that held when the daemon ended.
    pub fn restore(&self, mut condition: ActiveAlert) {
        // The clock may have been set back since.
        let latest = self.0.clock.now().saturating_add(MAX_UNTIL).ok();
        condition.until = condition.until.map(|until| latest.map_or(until, |latest| latest.min(until)));
        let key = AlertKey::new(condition.kind, condition.subject.clone());
        let mut conditions = self.lock();
        conditions.restored.insert(key.clone());
        conditions.active.insert(key, condition);
    }

    /// Forgets all conditions. Services report again what they still observe.
    pub fn forget(&self) {
        *self.lock() = Conditions::default();
    }

    /// Takes the reports since the last call.
    pub fn take_reports(&self) -> QueuedReports {
        let mut conditions = self.lock();
        let reports = std::mem::take(&mut conditions.queue);
        if !std::mem::take(&mut conditions.has_lost) {
            return QueuedReports { reports, is_complete_state: false };
        }
        let Conditions { active, restored, .. } = &*conditions;
        let known = active.iter().filter(|(key, _)| !restored.contains(*key));
        let reports = known.map(|(_, condition)| AlertReport::Holds(condition.clone())).collect();
        QueuedReports { reports, is_complete_state: true }
    }

    /// Returns the conditions of the last run about which no service has said anything.
    pub fn unconfirmed(&self) -> BTreeSet<AlertKey> {
        self.lock().restored.clone()
    }

    /// Waits for a report.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn condition(&self, kind: AlertKind, subject: &str, message: String) -> ActiveAlert {
        let (since, subject) = (self.0.clock.now(), subject.to_owned());
        ActiveAlert { kind, subject, message, value: None, since, times: 1, until: None }
    }

    fn hold(&self, mut condition: ActiveAlert) {
        let key = AlertKey::new(condition.kind, condition.subject.clone());
        let mut conditions = self.lock();
        let is_restored = conditions.restored.remove(&key);
        // Of some kinds, each report counts.
        let is_counted = matches!(behaviour(key.kind).measure, Measure::InARow | Measure::Rate);
        if let Some(known) = conditions.active.get(&key) {
            condition.since = known.since;
            if *known == condition && !is_restored && !is_counted {
                return;
            }
        }
        conditions.active.insert(key, condition.clone());
        conditions.push(AlertReport::Holds(condition));
        self.0.changed.notify_one();
    }

    fn end(&self, conditions: &mut Conditions, key: &AlertKey) {
        if conditions.active.remove(key).is_some() {
            conditions.restored.remove(key);
            conditions.push(AlertReport::Ended(key.clone()));
            self.0.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Conditions> {
        self.0.conditions.lock()
    }
}

impl Conditions {
    fn push(&mut self, report: AlertReport) {
        if self.queue.len() == MAX_REPORTS {
            self.queue.clear();
            self.has_lost = true;
        }
        if !self.has_lost {
            self.queue.push(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, SystemClock};
    use std::time::Duration;

    const DOWN: AlertKind = AlertKind::DnsUpstreamDown;

    /// Returns the queued reports: the kind, and whether the condition holds.
    fn queued(alerts: &ActiveAlerts) -> Vec<(AlertKind, bool)> {
        let QueuedReports { reports, .. } = alerts.take_reports();
        let shown = reports.iter().map(|report| match report {
            AlertReport::Holds(condition) => (condition.kind, true),
            AlertReport::Ended(key) => (key.kind, false),
        });
        shown.collect()
    }

    #[test]
    fn each_is_reported_at_its_begin_and_end_and_when_its_message_changes() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        alerts.clear(DOWN, "192.0.2.1");
        alerts.raise(DOWN, "192.0.2.1", "no answer".into());
        alerts.raise(DOWN, "192.0.2.1", "no answer".into());
        alerts.raise(DOWN, "192.0.2.1", "refused".into());
        assert_eq!(queued(&alerts), [(DOWN, true), (DOWN, true)]);
        for _ in 0..3 {
            alerts.raise(AlertKind::BlocklistUpdateFailed, "list", "not found".into());
        }
        assert_eq!(queued(&alerts).len(), 3, "each failure counts");
        let messages: Vec<String> = alerts.list().into_iter().map(|condition| condition.message).collect();
        assert_eq!(messages, ["refused", "not found"]);
        alerts.clear(DOWN, "192.0.2.1");
        alerts.clear(DOWN, "192.0.2.1");
        assert_eq!((queued(&alerts), alerts.list().len()), (vec![(DOWN, false)], 1));
    }

    #[test]
    fn conditions_whose_subject_is_gone_end() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        for subject in ["a", "b"] {
            alerts.raise(DOWN, subject, String::new());
        }
        alerts.take_reports();
        alerts.keep(DOWN, |subject| subject == "b");
        alerts.keep(AlertKind::BlocklistUpdateFailed, |_| false);
        let QueuedReports { reports, .. } = alerts.take_reports();
        assert_eq!(reports, [AlertReport::Ended(AlertKey::new(DOWN, "a"))]);
    }

    #[test]
    fn conditions_of_the_last_run_are_confirmed_or_ended() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        for subject in ["a", "b", "c"] {
            let condition = alerts.condition(DOWN, subject, "no answer".into());
            alerts.restore(condition);
        }
        assert_eq!(queued(&alerts), []);
        alerts.raise(DOWN, "a", "no answer".into());
        alerts.clear(DOWN, "b");
        assert_eq!(queued(&alerts), [(DOWN, true), (DOWN, false)]);
        assert_eq!(alerts.unconfirmed(), [AlertKey::new(DOWN, "c")].into());
    }

    #[test]
    fn condition_of_the_last_run_stays_until_the_time_of_its_end() {
        let clock = ManualClock::at("2026-11-22T12:00:00Z".parse().unwrap());
        let alerts = ActiveAlerts::new(clock.clone());
        let until = "2026-11-22T12:10:00Z".parse().unwrap();
        for subject in ["restored", "heard"] {
            let condition = alerts.condition(DOWN, subject, String::new());
            alerts.restore(ActiveAlert { until: Some(until), ..condition });
        }
        alerts.raise_until(DOWN, "heard", "2026-11-22T12:06:00Z".parse().unwrap(), String::new());
        assert_eq!(queued(&alerts), [(DOWN, true)], "the first report after a start counts");
        // The time is rounded up, so it is the same until 12:10.
        alerts.raise_until(DOWN, "heard", "2026-11-22T12:09:00Z".parse().unwrap(), String::new());
        assert_eq!(queued(&alerts), []);
        clock.advance(Duration::from_secs(599));
        alerts.keep(DOWN, |_| false);
        assert_eq!(queued(&alerts), [(DOWN, false)], "what was heard in this run has ended");
        clock.advance(Duration::from_secs(1));
        alerts.keep(DOWN, |_| false);
        assert_eq!(queued(&alerts), [(DOWN, false)]);
    }

    #[test]
    fn queue_that_overflows_becomes_the_present_state() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        for number in 0..=MAX_REPORTS {
            alerts.raise(DOWN, "a", number.to_string());
        }
        let QueuedReports { reports, is_complete_state } = alerts.take_reports();
        assert_eq!((reports.len(), is_complete_state), (1, true));
        alerts.clear(DOWN, "a");
        assert_eq!(queued(&alerts), [(DOWN, false)]);
    }
}
