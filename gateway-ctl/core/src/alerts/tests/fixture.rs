//! Engine with rules and a clock.

use std::collections::BTreeMap;

use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::Severity;
use jiff::{SignedDuration, Timestamp};

use crate::alerts::*;

pub(super) const WAN: &str = "wan0";

/// Engine with what it was given and what it returned.
pub(super) struct Fixture {
    pub engine: AlertEngine,
    pub rules: BTreeMap<AlertKind, ActiveRule>,
    pub dependencies: Dependencies,
    pub now: Now,
    /// Stored records.
    pub records: BTreeMap<u64, Record>,
    heard: usize,
    pub notifications: Vec<Notification>,
}

/// Returns a rule without a threshold and a window.
pub(super) fn plain_rule(kind: AlertKind) -> ActiveRule {
    ActiveRule {
        name: kind.to_string(),
        enabled: true,
        severity: Severity::Warning,
        threshold: 0.0,
        window: SignedDuration::ZERO,
        cooldown: SignedDuration::from_secs(300),
        auto_resolve: true,
        devices: None,
    }
}

/// Returns a report without a value.
pub(super) fn report() -> Report {
    Report {
        subject: Subject::default(),
        message: "it failed".to_owned(),
        value: None,
        times: 1,
        until: None,
    }
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        let now = Now {
            wall: Timestamp::from_second(1_800_000_000).unwrap(),
            boot: SignedDuration::from_secs(1000),
        };
        Fixture {
            engine: AlertEngine::restore(Stored::default(), now),
            rules: AlertKind::ALL.iter().map(|kind| (*kind, plain_rule(*kind))).collect(),
            dependencies: Dependencies::default(),
            now,
            records: BTreeMap::new(),
            heard: 0,
            notifications: Vec::new(),
        }
    }

    pub(super) fn rule(&mut self, kind: AlertKind, change: impl FnOnce(&mut ActiveRule)) {
        change(self.rules.get_mut(&kind).unwrap());
    }

    fn drive(&mut self, act: impl FnOnce(&mut AlertEngine, Surroundings<'_>, Now)) {
        let rules = Rules::from_rules(self.rules.clone());
        let surroundings = Surroundings { rules: &rules, dependencies: &self.dependencies };
        act(&mut self.engine, surroundings, self.now);
        self.engine.advance(surroundings, self.now);
        self.store();
    }

    pub(super) fn store(&mut self) {
        let Changes { records, notifications } = self.engine.take_changes();
        self.records.extend(records);
        self.notifications.extend(notifications);
    }

    pub(super) fn report(&mut self, kind: AlertKind, subject: &str) {
        self.drive(|engine, surroundings, now| {
            engine.report(&AlertKey::new(kind, subject), report(), surroundings, now);
        });
    }

    pub(super) fn report_value(&mut self, kind: AlertKind, subject: &str, value: f64) {
        let report = Report { value: Some(value), ..report() };
        self.drive(|engine, surroundings, now| {
            engine.report(&AlertKey::new(kind, subject), report, surroundings, now);
        });
    }

    pub(super) fn report_times(&mut self, kind: AlertKind, subject: &str, times: u64) {
        let report = Report { times, ..report() };
        self.drive(|engine, surroundings, now| {
            engine.report(&AlertKey::new(kind, subject), report, surroundings, now);
        });
    }

    pub(super) fn report_until(&mut self, kind: AlertKind, subject: &str, until: Timestamp) {
        let report = Report { until: Some(until), ..report() };
        self.drive(|engine, surroundings, now| {
            engine.report(&AlertKey::new(kind, subject), report, surroundings, now);
        });
    }

    pub(super) fn end(&mut self, kind: AlertKind, subject: &str) {
        self.drive(|engine, surroundings, now| engine.end(&AlertKey::new(kind, subject), surroundings, now));
    }

    /// Lets time pass, and some more so that announcements are made.
    pub(super) fn pass(&mut self, seconds: i64) {
        let by = SignedDuration::from_secs(seconds);
        self.now = Now { wall: self.now.wall + by, boot: self.now.boot + by };
        self.drive(|_, _, _| {});
    }

    /// Starts another engine with what was stored, like a new process.
    pub(super) fn restart(&mut self) {
        let stored = Stored {
            records: self.records.values().cloned().collect(),
            last_id: self.records.keys().last().copied().unwrap_or_default(),
            last_sequence: self.notifications.last().map_or(0, |last| last.sequence),
            last_stamp: self.records.values().last().map_or(Timestamp::MIN, |record| record.alert.first_seen),
        };
        self.engine = AlertEngine::restore(stored, self.now);
    }

    /// Returns the new notifications: transition, and whether it is sent.
    pub(super) fn heard(&mut self) -> Vec<(Transition, bool)> {
        let new = self.notifications[self.heard..].iter();
        let new = new.map(|one| (one.transition, !one.is_consequence)).collect();
        self.heard = self.notifications.len();
        new
    }

    pub(super) fn open(&self) -> usize {
        self.engine.open().count()
    }

    pub(super) fn only_open(&self) -> Alert {
        let open: Vec<&Record> = self.engine.open().collect();
        let [record] = &open[..] else { panic!("{open:?}") };
        record.alert.clone()
    }

    pub(super) fn last_record(&mut self, id: u64) -> Record {
        self.store();
        self.records[&id].clone()
    }
}
