//! Evaluation of one key: raising, return, end and resolution of its alert.

use jiff::SignedDuration;

use super::{AlertEngine, EVENT_LIFETIME, Entry, Origin, Surroundings};
use crate::alerts::alert::{Alert, AlertStatus, Record, Transition};
use crate::alerts::behaviour::behaviour;
use crate::alerts::key::AlertKey;
use crate::alerts::rules::ActiveRule;
use crate::alerts::timing::Now;

impl AlertEngine {
    /// Follows a condition.
    pub(super) fn evaluate(&mut self, key: &AlertKey, surroundings: Surroundings<'_>, now: Now) {
        let rule = surroundings.rules.enabled(key.kind);
        if behaviour(key.kind).is_event {
            return self.age_event(key, rule, now);
        }
        let Some(rule) = rule else { return self.drop_disabled(key, now) };
        let is_open = self.is_open(key);
        let has_ended = self.entries.get(key).is_some_and(|entry| entry.ended_at.is_some());
        let met = self.conditions.get_mut(key).is_some_and(|condition| {
            let device = condition.report.subject.device_id;
            let met = condition.is_met(behaviour(key.kind), rule, now);
            // An alert that lasts needs no new window.
            let lasts = is_open && !has_ended && condition.is_beyond(behaviour(key.kind), rule);
            rule.covers(key.kind, device) && (met || lasts)
        });
        match (is_open, met) {
            (true, true) => self.continue_alert(key, rule, now),
            (true, false) => self.end_alert(key, rule, now),
            (false, true) => self.begin_alert(key, rule, now),
            (false, false) => {}
        }
    }

    pub(super) fn is_open(&self, key: &AlertKey) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.record.alert.status.is_open())
    }

    /// Follows the condition of an open alert that holds.
    fn continue_alert(&mut self, key: &AlertKey, rule: &ActiveRule, now: Now) {
        let (Some(entry), Some(condition)) = (self.entries.get_mut(key), self.conditions.get(key)) else {
            return;
        };
        let before = entry.record.clone();
        entry.record.alert.describe(&rule.name, &condition.report.subject, condition.report.message.clone());
        entry.record.holds_until = condition.report.until;
        entry.last_seen = now.boot;
        if entry.ended_at.take().is_some() {
            entry.record.ended_at = None;
            entry.record.has_flapped = true;
            entry.record.alert.count += 1;
            entry.record.alert.last_seen = now.wall;
            entry.wait_for_return(now);
        }
        if entry.record != before {
            self.note(key, None, now);
        }
    }

    /// Follows the end of the condition of an open alert.
    fn end_alert(&mut self, key: &AlertKey, rule: &ActiveRule, now: Now) {
        let settled_at = self.settled_at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.origin {
            Origin::Restored => return,
            Origin::RestoredEnded if now.boot < settled_at => return,
            Origin::RestoredEnded | Origin::Reported => {}
        }
        let ended_at = *entry.ended_at.get_or_insert(now.boot);
        let quiet = if entry.record.has_flapped { rule.cooldown } else { SignedDuration::ZERO };
        if rule.auto_resolve && now.has_passed(ended_at, quiet) {
            self.close(key, true, now);
        } else if entry.record.ended_at.is_none() {
            entry.record.ended_at = Some(now.wall);
            entry.record.alert.last_seen = now.wall;
            self.note(key, None, now);
        }
    }

    /// Raises an alert, or returns to the one that resolved within the cooldown.
    fn begin_alert(&mut self, key: &AlertKey, rule: &ActiveRule, now: Now) {
        let cooling = self.entries.get(key).and_then(|entry| entry.resolved_at);
        match cooling.filter(|resolved| !now.has_passed(*resolved, rule.cooldown)) {
            Some(_) if self.conditions.get(key).is_some_and(|condition| condition.is_dismissed) => {}
            Some(resolved) => self.reopen(key, rule, Some(resolved.saturating_add(rule.cooldown)), now),
            None => self.raise(key, rule, now),
        }
    }

    /// Raises a new alert.
    fn raise(&mut self, key: &AlertKey, rule: &ActiveRule, now: Now) {
        let at = self.next_stamp(now);
        let muted = self.take_mute(key, now);
        let Some(condition) = self.conditions.get_mut(key) else { return };
        condition.is_dismissed = false;
        self.last_id += 1;
        let mut alert = Alert::new(self.last_id, key, rule.severity, at);
        alert.describe(&rule.name, &condition.report.subject, condition.report.message.clone());
        alert.count = condition.report.times;
        let mut record = Record {
            alert,
            announced: None,
            is_due: true,
            ended_at: None,
            has_flapped: false,
            holds_until: condition.report.until,
            muted_at: None,
        };
        let mute = muted.map(|(mute, before)| {
            record.keep_mute(before);
            mute
        });
        self.insert(Entry {
            record,
            origin: Origin::Reported,
            last_seen: now.boot,
            ended_at: None,
            resolved_at: None,
            announce_at: Some(now.boot),
            announce_by: None,
            promote_at: None,
            mute,
        });
        self.note(key, None, now);
    }

    /// Opens a resolved alert again: it flaps. Receivers hear of it if it lasts for some time, and at the latest at
    /// `announce_by`.
    fn reopen(&mut self, key: &AlertKey, rule: &ActiveRule, announce_by: Option<SignedDuration>, now: Now) {
        let (Some(entry), Some(condition)) = (self.entries.get_mut(key), self.conditions.get(key)) else {
            return;
        };
        let record = &mut entry.record;
        record.alert.describe(&rule.name, &condition.report.subject, condition.report.message.clone());
        record.alert.status = match record.alert.acknowledged_at {
            Some(_) => AlertStatus::Acknowledged,
            None => AlertStatus::Active,
        };
        record.alert.count += condition.report.times;
        record.alert.last_seen = now.wall;
        (record.alert.resolved_at, record.alert.resolved_by) = (None, None);
        record.alert.auto_resolved = false;
        record.has_flapped = true;
        record.holds_until = condition.report.until;
        (record.ended_at, record.announced) = (None, None);
        record.is_due = announce_by.is_some();
        entry.origin = Origin::Reported;
        entry.last_seen = now.boot;
        (entry.ended_at, entry.resolved_at, entry.promote_at) = (None, None, None);
        entry.announce_by = announce_by;
        entry.wait_for_return(now);
        self.note(key, None, now);
    }

    /// Resolves an alert.
    pub(super) fn close(&mut self, key: &AlertKey, by_itself: bool, now: Now) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let alert = &mut entry.record.alert;
        alert.status = AlertStatus::Resolved;
        alert.resolved_at = Some(now.wall);
        alert.auto_resolved = by_itself;
        (entry.record.ended_at, entry.record.is_due) = (None, false);
        entry.resolved_at = Some(now.boot);
        (entry.ended_at, entry.promote_at) = (None, None);
        (entry.announce_at, entry.announce_by) = (None, None);
        self.note(key, Some(Transition::Resolved), now);
    }

    /// Resolves the alert of a rule that was disabled.
    fn drop_disabled(&mut self, key: &AlertKey, now: Now) {
        if self.is_open(key) {
            self.close(key, true, now);
        }
    }

    /// Takes an event.
    pub(super) fn note_event(&mut self, key: &AlertKey, surroundings: Surroundings<'_>, now: Now) {
        let Some(rule) = surroundings.rules.enabled(key.kind) else { return };
        let Some(condition) = self.conditions.get_mut(key) else { return };
        let covered = rule.covers(key.kind, condition.report.subject.device_id);
        if !covered || !condition.is_met(behaviour(key.kind), rule, now) {
            return;
        }
        let report = condition.report.clone();
        let resolved = self.entries.get(key).and_then(|entry| entry.resolved_at);
        if self.is_open(key) {
            let Some(entry) = self.entries.get_mut(key) else { return };
            entry.record.alert.describe(&rule.name, &report.subject, report.message);
            entry.record.alert.count += report.times;
            entry.record.alert.last_seen = now.wall;
            entry.last_seen = now.boot;
            self.note(key, None, now);
        } else if resolved.is_some_and(|resolved| !now.has_passed(resolved, rule.cooldown)) {
            self.reopen(key, rule, None, now);
        } else {
            self.raise(key, rule, now);
        }
    }

    /// Resolves the alert of an event that has not happened again for long.
    fn age_event(&mut self, key: &AlertKey, rule: Option<&ActiveRule>, now: Now) {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.resolved_at.is_none()) else { return };
        let is_old = now.has_passed(entry.last_seen, EVENT_LIFETIME);
        match rule {
            None => self.drop_disabled(key, now),
            Some(rule) if is_old && rule.auto_resolve => self.close(key, true, now),
            Some(_) => {}
        }
    }
}
