//! Alert engine: the state machine of all alerts.

mod announce;
mod evaluate;
mod mute;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gateway_model::kinds::alert_rule::AlertKind;
use jiff::{SignedDuration, Timestamp};

use super::alert::{Alert, AlertStatus, Notification, Record, Transition};
use super::behaviour::behaviour;
use super::causes::Dependencies;
use super::condition::{Condition, Report};
use super::key::AlertKey;
use super::rules::Rules;
use super::timing::{Mute, Now, SETTLING_TIME, stamp};

/// Time that the alert of an event lasts after the last event.
const EVENT_LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// Time that a resolved alert lasts after its return, before receivers hear of it again.
const RETURN_WAIT: SignedDuration = SignedDuration::from_secs(30);

/// Records of the last run, with which the engine starts.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Open alerts, and those that resolved within the last days.
    pub records: Vec<Record>,
    pub last_id: u64,
    pub last_sequence: u64,
    /// Time of the newest alert.
    pub last_stamp: Timestamp,
}

/// Changes since they were last taken, to be stored in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changed records, by ID of the alert.
    pub records: BTreeMap<u64, Record>,
    /// In the order of their sequence numbers.
    pub notifications: Vec<Notification>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.notifications.is_empty()
    }

    /// Adds later changes.
    pub fn extend(&mut self, later: Changes) {
        self.records.extend(later.records);
        self.notifications.extend(later.notifications);
    }
}

/// Refusal of a transition that the state of the alert does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalTransition {
    #[error("there is no such alert")]
    NotFound,
    #[error("the alert is {}", .0.as_str())]
    State(AlertStatus),
    #[error("the alert is not muted")]
    NotMuted,
}

/// State of all alerts. Time, rules and dependencies are arguments.
#[derive(Clone, Debug, Default)]
pub struct AlertEngine {
    conditions: HashMap<AlertKey, Condition>,
    /// Last alert of each key: open, or in its cooldown.
    entries: HashMap<AlertKey, Entry>,
    ids: BTreeMap<u64, AlertKey>,
    last_id: u64,
    last_sequence: u64,
    last_stamp: Timestamp,
    /// End of the time in which ends of alerts of the last run are deferred.
    settled_at: SignedDuration,
    changes: Changes,
}

/// Alert with what is known in this run only.
#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    origin: Origin,
    /// Time of the last occurrence.
    last_seen: SignedDuration,
    ended_at: Option<SignedDuration>,
    resolved_at: Option<SignedDuration>,
    /// Time from which on the due notification is made.
    announce_at: Option<SignedDuration>,
    /// Latest time of the notification of an alert that was resolved and returned.
    announce_by: Option<SignedDuration>,
    /// Time from which on a consequence without its cause stands for itself.
    promote_at: Option<SignedDuration>,
    mute: Option<Mute>,
}

impl Entry {
    /// Reports whether something happens soon without a report.
    fn is_waiting(&self) -> bool {
        self.promote_at.is_some() || self.announce_at.is_some() && !self.is_held_back()
    }

    /// Delays the notification of an alert that returned until it has lasted.
    fn wait_for_return(&mut self, now: Now) {
        if let Some(latest) = self.announce_by.filter(|_| self.record.is_due) {
            self.announce_at = Some(now.boot.saturating_add(RETURN_WAIT).min(latest));
        }
    }

    /// Reports whether a person resolved the alert in the last run, and its condition has not ended since.
    fn is_dismissed_before(&self) -> bool {
        self.origin == Origin::Restored && self.resolved_at.is_some() && !self.record.alert.auto_resolved
    }
}

/// Knowledge about the condition of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A producer reported it in this run.
    Reported,
    /// It was open when the daemon started, and no producer has said anything about it.
    Restored,
    /// It was open when the daemon started, and a producer has said that it ended.
    RestoredEnded,
}

/// Surroundings of the engine: rules in force, and what depends on what.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub rules: &'a Rules,
    pub dependencies: &'a Dependencies,
}

impl AlertEngine {
    /// Continues with the alerts of the last run.
    pub fn restore(stored: Stored, now: Now) -> AlertEngine {
        let Stored { records, last_id, last_sequence, last_stamp } = stored;
        let mut engine = AlertEngine {
            last_id,
            last_sequence,
            last_stamp,
            settled_at: now.boot.saturating_add(SETTLING_TIME),
            ..AlertEngine::default()
        };
        // The newest of a key counts.
        let newest: BTreeMap<u64, Record> =
            records.into_iter().map(|record| (record.alert.id, record)).collect();
        for record in newest.into_values() {
            let entry = Entry {
                origin: if record.ended_at.is_some() { Origin::RestoredEnded } else { Origin::Restored },
                last_seen: now.boot_at(record.alert.last_seen),
                ended_at: record.ended_at.map(|at| now.boot_at(at)),
                resolved_at: record.alert.resolved_at.map(|at| now.boot_at(at)),
                announce_at: record.is_due.then_some(now.boot),
                announce_by: None,
                promote_at: None,
                mute: record.mute_times(now),
                record,
            };
            engine.insert(entry);
        }
        engine
    }

    fn insert(&mut self, entry: Entry) {
        let key = entry.record.alert.key();
        self.ids.insert(entry.record.alert.id, key.clone());
        if let Some(before) = self.entries.insert(key, entry) {
            self.ids.remove(&before.record.alert.id);
        }
    }

    /// Takes the report that a condition holds, or that an event happened.
    pub fn report(&mut self, key: &AlertKey, report: Report, surroundings: Surroundings<'_>, now: Now) {
        let was_dismissed = self.entries.get(key).is_some_and(Entry::is_dismissed_before);
        let condition = self
            .conditions
            .entry(key.clone())
            .or_insert_with(|| Condition::new(report.clone(), was_dismissed));
        condition.take(report, now);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.origin = Origin::Reported;
        }
        if behaviour(key.kind).is_event {
            self.note_event(key, surroundings, now);
        } else {
            self.evaluate(key, surroundings, now);
        }
    }

    /// Takes the report that a condition does not hold any more.
    pub fn end(&mut self, key: &AlertKey, surroundings: Surroundings<'_>, now: Now) {
        self.conditions.remove(key);
        if let Some(entry) = self.entries.get_mut(key)
            && entry.origin == Origin::Restored
        {
            entry.origin = Origin::RestoredEnded;
        }
        self.evaluate(key, surroundings, now);
    }

    /// Follows time, rules and dependencies.
    pub fn advance(&mut self, surroundings: Surroundings<'_>, now: Now) {
        let keys: BTreeSet<AlertKey> = self.conditions.keys().chain(self.entries.keys()).cloned().collect();
        for key in &keys {
            self.evaluate(key, surroundings, now);
        }
        self.end_mutes(now);
        self.group(surroundings, now);
        self.announce(surroundings, now);
        self.forget(surroundings.rules, now);
    }

    /// Reports whether something happens soon without a report.
    pub fn is_waiting(&self) -> bool {
        self.entries.values().any(Entry::is_waiting)
            || self.conditions.iter().any(|(key, condition)| condition.is_in_window() && !self.is_open(key))
    }

    /// Returns the open alerts, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Record> {
        let entries = self.ids.values().filter_map(|key| self.entries.get(key));
        entries.map(|entry| &entry.record).filter(|record| record.alert.status.is_open())
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Forgets all alerts and conditions. Numbers continue.
    pub fn clear(&mut self) {
        let AlertEngine { last_id, last_sequence, last_stamp, settled_at, .. } = *self;
        *self = AlertEngine { last_id, last_sequence, last_stamp, settled_at, ..AlertEngine::default() };
    }

    /// Acknowledges an active alert.
    pub fn acknowledge(&mut self, id: u64, by: &str, now: Now) -> Result<Alert, IllegalTransition> {
        let key = self.ids.get(&id).cloned().ok_or(IllegalTransition::NotFound)?;
        let Some(entry) = self.entries.get_mut(&key) else { return Err(IllegalTransition::NotFound) };
        if entry.record.alert.status != AlertStatus::Active {
            return Err(IllegalTransition::State(entry.record.alert.status));
        }
        // Receivers hear of the alert before they hear that it was seen.
        if !entry.is_held_back() {
            self.announce_now(&key, now);
        }
        let Some(entry) = self.entries.get_mut(&key) else { return Err(IllegalTransition::NotFound) };
        let alert = &mut entry.record.alert;
        alert.status = AlertStatus::Acknowledged;
        alert.acknowledged_at = Some(now.wall);
        alert.acknowledged_by = Some(by.to_owned());
        let alert = alert.clone();
        self.note(&key, Some(Transition::Acknowledged), now);
        Ok(alert)
    }

    /// Resolves an open alert on request.
    pub fn resolve(&mut self, id: u64, by: &str, now: Now) -> Result<Alert, IllegalTransition> {
        let key = self.ids.get(&id).cloned().ok_or(IllegalTransition::NotFound)?;
        let Some(entry) = self.entries.get_mut(&key) else { return Err(IllegalTransition::NotFound) };
        if !entry.record.alert.status.is_open() {
            return Err(IllegalTransition::State(entry.record.alert.status));
        }
        if let Some(condition) = self.conditions.get_mut(&key) {
            condition.is_dismissed = true;
        }
        entry.record.alert.resolved_by = Some(by.to_owned());
        self.close(&key, false, now);
        match self.entries.get(&key) {
            Some(entry) => Ok(entry.record.alert.clone()),
            None => Err(IllegalTransition::NotFound),
        }
    }

    /// Notes a changed entry, and its notification.
    fn note(&mut self, key: &AlertKey, transition: Option<Transition>, now: Now) {
        let Some(entry) = self.entries.get(key) else { return };
        let record = entry.record.clone();
        if let (Some(transition), Some(sent)) = (transition, record.announced) {
            self.last_sequence += 1;
            self.changes.notifications.push(Notification {
                sequence: self.last_sequence,
                at: now.wall,
                transition,
                is_consequence: !sent.is_sent(),
                alert: record.alert.clone(),
            });
        }
        self.changes.records.insert(record.alert.id, record);
    }

    /// Forgets alerts whose cooldown is over, and the events before them.
    fn forget(&mut self, rules: &Rules, now: Now) {
        let conditions = &self.conditions;
        let over = |key: &AlertKey, entry: &Entry| {
            let Some(resolved) = entry.resolved_at else { return false };
            let cooldown = rules.get(key.kind).map_or(SignedDuration::ZERO, |rule| rule.cooldown);
            let dismissed = conditions.get(key).is_some_and(|condition| condition.is_dismissed);
            now.has_passed(resolved, cooldown) && !dismissed && !entry.is_muted()
        };
        let gone: Vec<AlertKey> =
            self.entries.iter().filter(|(key, entry)| over(key, entry)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(entry) = self.entries.remove(&key) {
                self.ids.remove(&entry.record.alert.id);
            }
        }
        let entries = &self.entries;
        let is_kept = |key: &AlertKey| {
            let open = |entry: &Entry| entry.record.alert.status.is_open();
            !behaviour(key.kind).is_event || entries.get(key).is_some_and(open)
        };
        let rate_window = |kind: AlertKind| rules.get(kind).map_or(SignedDuration::ZERO, |rule| rule.window);
        self.conditions.retain(|key, condition| {
            is_kept(key) || condition.has_reports_within(rate_window(key.kind), now)
        });
    }

    fn next_stamp(&mut self, now: Now) -> Timestamp {
        self.last_stamp = stamp(now.wall, self.last_stamp);
        self.last_stamp
    }
}
