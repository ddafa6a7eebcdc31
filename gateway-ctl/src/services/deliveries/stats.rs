//! Counters of the deliveries, for `/metrics`.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

use gateway_core::notifications::outbox::Outcome;
use gateway_core::notifications::receivers::Receiver;
use prometheus_client::registry::Registry;

use super::attempt::Attempt;
use crate::metrics::{counter, counters, gauge};

#[derive(Debug, Default)]
pub(super) struct Stats(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Attempts, by receiver and result.
    attempts: BTreeMap<(String, &'static str), u64>,
    /// Receivers whose last attempt failed, with the error.
    failing: BTreeMap<Receiver, String>,
    given_up: u64,
    dropped: u64,
    waiting: usize,
}

impl Stats {
    pub(super) fn waiting(&self, waiting: usize, dropped: u64) {
        let mut counts = self.lock();
        (counts.waiting, counts.dropped) = (waiting, dropped);
    }

    /// Notes the result of an attempt.
    pub(super) fn note(&self, receiver: Receiver, attempt: &Attempt) {
        let mut counts = self.lock();
        match attempt.error() {
            Some(error) => drop(counts.failing.insert(receiver, error.to_owned())),
            None => drop(counts.failing.remove(&receiver)),
        }
        let result = match &attempt.outcome {
            Outcome::Accepted => "accepted",
            Outcome::Failed { .. } => "failed",
            Outcome::Refused { .. } => "refused",
            Outcome::Gone => "gone",
        };
        *counts.attempts.entry((receiver.to_string(), result)).or_default() += 1;
    }

    pub(super) fn note_given_up(&self) {
        self.lock().given_up += 1;
    }

    /// Returns the receivers whose last attempt failed, with the error. Forgets those that are off.
    pub(super) fn failing(&self, is_on: impl Fn(Receiver) -> bool) -> Vec<(Receiver, String)> {
        let mut counts = self.lock();
        counts.failing.retain(|receiver, _| is_on(*receiver));
        counts.failing.iter().map(|(receiver, error)| (*receiver, error.clone())).collect()
    }

    pub(super) fn measure(&self, registry: &mut Registry) {
        let counts = self.lock();
        let attempts = counts.attempts.iter().map(|((receiver, result), count)| {
            (vec![("receiver", receiver.clone()), ("result", (*result).to_owned())], *count)
        });
        counters(
            registry,
            "alert_delivery_attempts",
            "Attempts to deliver alerts, by receiver and result",
            attempts,
        );
        counter(
            registry,
            "alert_deliveries_given_up",
            "Deliveries of alerts that were given up",
            counts.given_up,
        );
        let help = "Deliveries of alerts that gave way to newer ones in a full outbox";
        counter(registry, "alert_deliveries_dropped", help, counts.dropped);
        let waiting = u64::try_from(counts.waiting).unwrap_or(u64::MAX);
        gauge(
            registry,
            "alert_deliveries_waiting",
            "Deliveries of alerts that receivers have not accepted yet",
            waiting,
        );
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock()
    }
}
