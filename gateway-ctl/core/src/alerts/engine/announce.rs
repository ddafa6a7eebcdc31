//! Notifications: grouping of consequences under their cause, and the announcement of what stands for itself.

use jiff::SignedDuration;

use super::{AlertEngine, Entry, Surroundings};
use crate::alerts::alert::{Announced, Transition};
use crate::alerts::key::AlertKey;
use crate::alerts::timing::Now;

/// Time that an alert waits for its cause.
const GROUP_WAIT: SignedDuration = SignedDuration::from_secs(1);
/// Time that it waits while a possible cause is in doubt: an uplink whose probes fail is offline, or not, by then.
const DOUBT_WAIT: SignedDuration = SignedDuration::from_secs(30);
/// Time that a consequence has to recover after its cause has ended. Tunnels need some to connect again.
const RECOVERY_TIME: SignedDuration = SignedDuration::from_secs(60);

impl AlertEngine {
    /// Finds the cause of each open alert.
    pub(super) fn group(&mut self, surroundings: Surroundings<'_>, now: Now) {
        let open: Vec<AlertKey> = self.open().map(|record| record.alert.key()).collect();
        for key in open {
            let cause = self.cause(&key, surroundings);
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            match (entry.record.alert.caused_by, cause) {
                (Some(before), Some(cause)) => {
                    entry.promote_at = None;
                    if before != cause {
                        entry.record.alert.caused_by = Some(cause);
                        self.note(&key, None, now);
                    }
                }
                (None, Some(cause)) => {
                    entry.record.alert.caused_by = Some(cause);
                    self.note(&key, None, now);
                }
                (Some(_), None) => self.leave_cause(&key, now),
                (None, None) => {}
            }
        }
    }

    /// Returns the open alert at the root of what explains an alert.
    fn cause(&self, key: &AlertKey, surroundings: Surroundings<'_>) -> Option<u64> {
        let causes = surroundings.dependencies.causes(key);
        // The last one lies deepest.
        causes.keys.iter().rev().find_map(|cause| {
            let alert = &self.entries.get(cause)?.record.alert;
            // A cause that waits whether it returns explains nothing new.
            (alert.status.is_open() && alert.caused_by.is_none()).then_some(alert.id)
        })
    }

    /// Lets an alert stand for itself some time after its cause has ended.
    fn leave_cause(&mut self, key: &AlertKey, now: Now) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let promote_at = *entry.promote_at.get_or_insert(now.boot.saturating_add(RECOVERY_TIME));
        if now.boot < promote_at || entry.ended_at.is_some() {
            return;
        }
        entry.promote_at = None;
        entry.record.alert.caused_by = None;
        let was_consequence = entry.record.announced == Some(Announced::AsConsequence);
        if was_consequence && entry.is_muted() {
            // It is announced when the mute ends.
            (entry.record.announced, entry.record.is_due) = (None, true);
            entry.announce_at = Some(now.boot);
            return self.note(key, None, now);
        }
        if was_consequence {
            entry.record.announced = Some(Announced::Sent);
        }
        self.note(key, was_consequence.then_some(Transition::Promoted), now);
    }

    /// Makes the notifications that are due.
    pub(super) fn announce(&mut self, surroundings: Surroundings<'_>, now: Now) {
        let due = self.open().filter(|record| record.is_due);
        let mut due: Vec<(bool, AlertKey)> =
            due.map(|record| (record.alert.caused_by.is_some(), record.alert.key())).collect();
        // Causes come before their consequences.
        due.sort_by_key(|(is_consequence, _)| *is_consequence);
        for (_, key) in due {
            let settled_at = self.settled_at;
            let may_announce = |entry: &&Entry| {
                entry.ended_at.is_none() && !entry.is_held_back() && !entry.is_unconfirmed(settled_at, now)
            };
            let Some(entry) = self.entries.get(&key).filter(may_announce) else { continue };
            let Some(since) = entry.announce_at else { continue };
            let causes = surroundings.dependencies.causes(&key);
            let is_consequence = entry.record.alert.caused_by.is_some();
            let wait = match () {
                () if is_consequence || causes.keys.is_empty() => SignedDuration::ZERO,
                () if causes.in_doubt => DOUBT_WAIT,
                () => GROUP_WAIT,
            };
            if now.has_passed(since, wait) {
                self.announce_now(&key, now);
            }
        }
    }

    /// Makes the notification of an alert that is due.
    pub(super) fn announce_now(&mut self, key: &AlertKey, now: Now) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.record.is_due) else { return };
        entry.record.is_due = false;
        (entry.announce_at, entry.announce_by) = (None, None);
        let transition = if entry.was_sent() { Transition::Unmuted } else { Transition::Raised };
        let is_consequence = entry.record.alert.caused_by.is_some();
        entry.record.announced =
            Some(if is_consequence { Announced::AsConsequence } else { Announced::Sent });
        self.note(key, Some(transition), now);
    }
}
