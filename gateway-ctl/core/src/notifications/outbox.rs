//! Outbox: the deliveries that receivers have not accepted yet.
//!
//! It takes each notification once, by its sequence, and makes a delivery for each receiver. A delivery waits for the
//! earlier ones of the same fingerprint at the same receiver. It ends when the receiver accepts or refuses it, when its
//! attempts are used up, or when the receiver is off. Each operation returns the changes that the store has to write, in
//! one transaction, before the result counts.

mod changes;
mod delivery;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

pub use changes::Changes;
pub use delivery::{Delivery, OpenAlert};

use super::backoff::{MAX_RETRY_AFTER, delay};
use super::receivers::Receiver;
use super::{Notification, Transition};
use delivery::Retry;

/// Maximum number of deliveries that wait. The oldest gives way to a new one.
pub const MAX_DELIVERIES: usize = 1000;

/// Result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// A later attempt may succeed.
    Failed {
        error: String,
        retry_after: Option<SignedDuration>,
    },
    /// The receiver does not take this message, so another attempt is in vain.
    Refused {
        error: String,
    },
    /// The receiver wants no more messages (410).
    Gone,
}

/// End of a delivery, or its next attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    Accepted,
    Retries {
        at: Timestamp,
    },
    GivenUp,
    /// All deliveries of the receiver have ended; it must be turned off.
    Gone,
}

/// Deliveries, with what was taken in so far.
#[derive(Clone, Debug)]
pub struct Outbox {
    /// Sequence of the last notification that was taken in.
    cursor: u64,
    next_number: u64,
    deliveries: BTreeMap<u64, Delivery>,
    /// Alerts whose beginning was queued, so that their end is, too.
    open: BTreeSet<OpenAlert>,
    /// Time until which a receiver wants no deliveries.
    paused: BTreeMap<Receiver, Timestamp>,
    dropped: u64,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::restore(0, [], [])
    }
}

impl Outbox {
    /// Returns the outbox with the content of the store.
    pub fn restore(
        cursor: u64,
        deliveries: impl IntoIterator<Item = Delivery>,
        open: impl IntoIterator<Item = OpenAlert>,
    ) -> Outbox {
        let deliveries: BTreeMap<u64, Delivery> =
            deliveries.into_iter().map(|delivery| (delivery.number, delivery)).collect();
        let mut paused = BTreeMap::new();
        for delivery in deliveries.values() {
            if let Some(until) = delivery.retry.as_ref().and_then(|retry| retry.receiver_paused_until) {
                let latest = paused.entry(delivery.receiver).or_insert(until);
                *latest = until.max(*latest);
            }
        }
        let next_number = deliveries.keys().next_back().map_or(1, |last| last + 1);
        Outbox { cursor, next_number, deliveries, open: open.into_iter().collect(), paused, dropped: 0 }
    }

    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Returns the number of deliveries that gave way to newer ones since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn len(&self) -> usize {
        self.deliveries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    pub fn get(&self, number: u64) -> Option<&Delivery> {
        self.deliveries.get(&number)
    }

    /// Forgets everything, and counts from this sequence on.
    pub fn reset(&mut self, cursor: u64) -> Changes {
        let changes = Changes {
            removed: self.deliveries.keys().copied().collect(),
            closed: self.open.iter().cloned().collect(),
            cursor: Some(cursor),
            ..Changes::default()
        };
        *self = Outbox { cursor, next_number: self.next_number, dropped: self.dropped, ..Outbox::default() };
        changes
    }

    /// Takes a notification in. One whose sequence was taken in before changes nothing. `receivers` are those of an alert
    /// that begins; its end goes to those that got its beginning.
    pub fn take_in(
        &mut self,
        notification: &Notification,
        receivers: &[Receiver],
        now: Timestamp,
    ) -> Changes {
        if notification.sequence <= self.cursor {
            return Changes::default();
        }
        self.cursor = notification.sequence;
        let mut changes = Changes { cursor: Some(self.cursor), ..Changes::default() };
        let fingerprint = &notification.alert.fingerprint;
        let alert_at = |receiver| OpenAlert { receiver, fingerprint: fingerprint.clone() };
        match notification.transition {
            Transition::Firing if notification.is_consequence => {}
            Transition::Firing => {
                for receiver in receivers {
                    let opens = self.open.insert(alert_at(*receiver));
                    if opens {
                        changes.opened.push(alert_at(*receiver));
                    }
                    self.queue(*receiver, notification, opens, now, &mut changes);
                }
            }
            Transition::Resolved => {
                let got: Vec<OpenAlert> =
                    self.open.iter().filter(|open| open.fingerprint == *fingerprint).cloned().collect();
                for open in got {
                    self.queue(open.receiver, notification, false, now, &mut changes);
                    self.open.remove(&open);
                    changes.closed.push(open);
                }
            }
        }
        changes
    }

    /// Passes over a transition that no receiver is notified of.
    pub fn skip(&mut self, sequence: u64) -> Changes {
        if sequence <= self.cursor {
            return Changes::default();
        }
        self.cursor = sequence;
        Changes { cursor: Some(sequence), ..Changes::default() }
    }

    fn queue(
        &mut self,
        receiver: Receiver,
        notification: &Notification,
        opens: bool,
        now: Timestamp,
        changes: &mut Changes,
    ) {
        while self.deliveries.len() >= MAX_DELIVERIES {
            let Some((number, _)) = self.deliveries.pop_first() else { break };
            self.dropped += 1;
            changes.remove(number);
        }
        let mut delivery = Delivery::new(self.next_number, receiver, notification, now);
        delivery.opens = opens;
        self.next_number += 1;
        changes.put.push(delivery.clone());
        self.deliveries.insert(delivery.number, delivery);
    }

    /// Ends the deliveries of receivers that are off, and forgets the alerts that they got.
    pub fn retain(&mut self, is_on: impl Fn(Receiver) -> bool) -> Changes {
        let mut changes = Changes::default();
        self.deliveries.retain(|number, delivery| {
            let stays = is_on(delivery.receiver);
            if !stays {
                changes.removed.push(*number);
            }
            stays
        });
        self.open.retain(|open| {
            let stays = is_on(open.receiver);
            if !stays {
                changes.closed.push(open.clone());
            }
            stays
        });
        self.paused.retain(|receiver, _| is_on(*receiver));
        changes
    }

    /// Takes back the beginnings of alerts that are muted, as far as no attempt at them is in progress. A receiver that has
    /// not got the beginning does not get the end.
    pub fn withdraw(&mut self, muted: &BTreeSet<String>, busy: &BTreeSet<Receiver>) -> Changes {
        let mut changes = Changes::default();
        let is_withdrawn = |delivery: &Delivery| {
            let Notification { transition, alert, .. } = &delivery.notification;
            *transition == Transition::Firing
                && muted.contains(&alert.fingerprint)
                && !busy.contains(&delivery.receiver)
        };
        let open = |delivery: &Delivery| {
            let fingerprint = delivery.notification.alert.fingerprint.clone();
            OpenAlert { receiver: delivery.receiver, fingerprint }
        };
        // Alerts whose beginning is withdrawn, until their end, which may wait behind it.
        let mut unbegun = BTreeSet::new();
        let taken = self.deliveries.extract_if(.., |_, delivery| match delivery.notification.transition {
            Transition::Firing => {
                let is_taken = is_withdrawn(delivery);
                if is_taken && delivery.opens {
                    unbegun.insert(open(delivery));
                }
                is_taken
            }
            Transition::Resolved => unbegun.remove(&open(delivery)),
        });
        for (number, delivery) in taken {
            changes.removed.push(number);
            let open = open(&delivery);
            if delivery.opens && self.open.remove(&open) {
                changes.closed.push(open);
            }
        }
        changes
    }

    /// Returns the next delivery of each receiver that is not busy and whose next delivery is due.
    pub fn due(&self, now: Timestamp, busy: &BTreeSet<Receiver>) -> Vec<&Delivery> {
        let mut chosen: BTreeMap<Receiver, &Delivery> = BTreeMap::new();
        for delivery in self.heads() {
            let is_free = !busy.contains(&delivery.receiver) && !chosen.contains_key(&delivery.receiver);
            if is_free && self.wait(delivery, now).is_zero() {
                chosen.insert(delivery.receiver, delivery);
            }
        }
        chosen.into_values().collect()
    }

    /// Returns the time until a delivery of a receiver that is not busy is due; `None` if none waits.
    pub fn until_due(&self, now: Timestamp, busy: &BTreeSet<Receiver>) -> Option<SignedDuration> {
        let waiting = self.heads().filter(|delivery| !busy.contains(&delivery.receiver));
        waiting.map(|delivery| self.wait(delivery, now)).min()
    }

    /// Returns the first delivery of each fingerprint at each receiver, oldest first.
    fn heads(&self) -> impl Iterator<Item = &Delivery> {
        let mut begun = BTreeSet::new();
        self.deliveries.values().filter(move |delivery| {
            begun.insert((delivery.receiver, delivery.notification.alert.fingerprint.as_str()))
        })
    }

    fn wait(&self, delivery: &Delivery, now: Timestamp) -> SignedDuration {
        let paused = self.paused.get(&delivery.receiver).map_or(SignedDuration::ZERO, |until| {
            let left = until.duration_since(now);
            // The clock was set back since: the receiver cannot have asked for so much.
            if left > MAX_RETRY_AFTER { SignedDuration::ZERO } else { left }
        });
        delivery.wait(now).max(paused).max(SignedDuration::ZERO)
    }

    /// Takes the result of an attempt. `retries` is the maximum number of attempts after the first; `jitter` is from 0 to
    /// 1. Returns `None` for a delivery that has ended meanwhile.
    pub fn settle(
        &mut self,
        number: u64,
        outcome: &Outcome,
        retries: u64,
        now: Timestamp,
        jitter: f64,
    ) -> Option<(Settled, Changes)> {
        let delivery = self.deliveries.get_mut(&number)?;
        let receiver = delivery.receiver;
        let mut changes = Changes::default();
        let settled = match outcome {
            Outcome::Accepted => Settled::Accepted,
            Outcome::Refused { .. } => Settled::GivenUp,
            Outcome::Gone => Settled::Gone,
            Outcome::Failed { .. } if u64::from(delivery.failures) >= retries => Settled::GivenUp,
            Outcome::Failed { retry_after, .. } => {
                delivery.failures += 1;
                let delay = delay(delivery.failures, *retry_after, jitter);
                let paused = retry_after.map(|asked| {
                    now.saturating_add(asked.clamp(SignedDuration::ZERO, MAX_RETRY_AFTER)).unwrap_or(now)
                });
                delivery.retry = Some(Retry { failed_at: now, delay, receiver_paused_until: paused });
                changes.put.push(delivery.clone());
                if let Some(until) = paused {
                    self.paused.insert(receiver, until);
                }
                return Some((Settled::Retries { at: now.saturating_add(delay).unwrap_or(now) }, changes));
            }
        };
        if settled == Settled::Gone {
            changes = self.retain(|other| other != receiver);
        } else {
            self.deliveries.remove(&number);
            changes.removed.push(number);
        }
        Some((settled, changes))
    }
}

#[cfg(test)]
mod tests;
