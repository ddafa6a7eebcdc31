//! Mutes: for a time, receivers are not notified of an alert. It stays in all lists.
//!
//! A mute belongs to a kind and its subject: an alert that is raised again in its time is muted, too. When it ends, an
//! alert that lasts is announced again. The end of an alert that receivers know is sent also while it is muted, so that no
//! receiver waits for it.
//!
//! Decision 0195 says why.

use gateway_model::kinds::alert_rule::AlertKind;
use jiff::SignedDuration;

use super::{AlertEngine, Entry, IllegalTransition, Origin};
use crate::alerts::alert::{Alert, Announced, Record, Transition};
use crate::alerts::behaviour::behaviour;
use crate::alerts::key::AlertKey;
use crate::alerts::timing::{MAX_MUTE, Mute, Now};

impl AlertEngine {
    /// Mutes an open alert for a time from now on. A second mute replaces the first.
    pub fn mute(
        &mut self,
        id: u64,
        time: SignedDuration,
        by: &str,
        now: Now,
    ) -> Result<Alert, IllegalTransition> {
        let key = self.ids.get(&id).cloned().ok_or(IllegalTransition::NotFound)?;
        let Some(entry) = self.entries.get_mut(&key) else { return Err(IllegalTransition::NotFound) };
        if !entry.record.alert.status.is_open() {
            return Err(IllegalTransition::State(entry.record.alert.status));
        }
        let time = time.clamp(SignedDuration::ZERO, MAX_MUTE);
        entry.mute = Some(Mute { began: now.boot, ends: now.boot.saturating_add(time) });
        entry.record.muted_at = Some(now.wall);
        entry.record.alert.muted_until = Some(now.wall.saturating_add(time).unwrap_or(now.wall));
        entry.record.alert.muted_by = Some(by.to_owned());
        let alert = entry.record.alert.clone();
        self.note(&key, Some(Transition::Muted), now);
        Ok(alert)
    }

    /// Lifts the mute of an alert.
    pub fn unmute(&mut self, id: u64, now: Now) -> Result<Alert, IllegalTransition> {
        let key = self.ids.get(&id).cloned().ok_or(IllegalTransition::NotFound)?;
        let is_muted = self.entries.get(&key).is_some_and(Entry::is_muted);
        if !is_muted {
            return Err(IllegalTransition::NotMuted);
        }
        self.end_mute(&key, now);
        let entry = self.entries.get(&key).ok_or(IllegalTransition::NotFound)?;
        Ok(entry.record.alert.clone())
    }

    /// Returns the alerts that are muted, those that have resolved meanwhile included.
    pub fn muted(&self) -> impl Iterator<Item = &Record> {
        self.entries.values().filter(|entry| entry.is_muted()).map(|entry| &entry.record)
    }

    /// Ends the mutes whose time is over.
    pub(super) fn end_mutes(&mut self, now: Now) {
        let is_over = |entry: &Entry| entry.mute.is_some_and(|mute| now.boot >= mute.ends);
        let over = self.entries.iter().filter(|(_, entry)| is_over(entry));
        for key in over.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.end_mute(&key, now);
        }
    }

    fn end_mute(&mut self, key: &AlertKey, now: Now) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(mute) = entry.mute.take() else { return };
        entry.record.muted_at = None;
        (entry.record.alert.muted_until, entry.record.alert.muted_by) = (None, None);
        if entry.returns_after(mute, key.kind) {
            entry.record.is_due = true;
            entry.announce_at = Some(now.boot);
        }
        self.note(key, None, now);
    }

    /// Takes the mute of the last alert of a key, for the next one.
    pub(super) fn take_mute(&mut self, key: &AlertKey, now: Now) -> Option<(Mute, Record)> {
        let entry = self.entries.get_mut(key)?;
        let mute = entry.mute.take()?;
        let before = entry.record.clone();
        entry.record.muted_at = None;
        (entry.record.alert.muted_until, entry.record.alert.muted_by) = (None, None);
        self.note(key, None, now);
        Some((mute, before))
    }
}

impl Entry {
    pub(super) fn is_muted(&self) -> bool {
        self.mute.is_some()
    }

    /// Reports whether receivers know the alert, and it lasts. Of an event, another one came in the time of the mute.
    fn returns_after(&self, mute: Mute, kind: AlertKind) -> bool {
        self.record.announced == Some(Announced::Sent)
            && self.record.alert.status.is_open()
            && (!behaviour(kind).is_event || self.last_seen > mute.began)
    }

    /// Reports whether the notification that is due has to wait for something else than its time: for the end of a mute, or,
    /// if receivers know the alert, for the end of the cause that explains it.
    pub(super) fn is_held_back(&self) -> bool {
        self.is_muted() || self.was_sent() && self.record.alert.caused_by.is_some()
    }

    /// Reports whether a repeated notification waits until a producer has observed the condition in this run.
    pub(super) fn is_unconfirmed(&self, settled_at: SignedDuration, now: Now) -> bool {
        self.was_sent() && self.origin != Origin::Reported && now.boot < settled_at
    }

    pub(super) fn was_sent(&self) -> bool {
        self.record.announced == Some(Announced::Sent)
    }
}
