//! Active alerts that are sent again, for receivers that keep them until their end: Alertmanagers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::notifications::outbox::Outcome;
use gateway_core::notifications::payload::Payload;
use gateway_core::notifications::receivers::{Receiver, is_on, receivers};
use gateway_core::notifications::{AlertSnapshot, alertmanager_v2};
use gateway_model::State;
use gateway_model::settings::groups::{AlertWebhook, WebhookFormat};
use jiff::Timestamp;
use tokio::time::Instant;

use super::attempt::{Attempt, Done};
use super::webhook::Message;
use super::{Deliveries, egress, own_networks, sender};
use crate::supervise::blocking;

/// Maximum number of alerts in one request.
const MAX_ALERTS: usize = 256;

/// Times at which the active alerts were last sent again.
#[derive(Debug)]
pub(super) struct Resends {
    interval: Duration,
    last: BTreeMap<Receiver, Instant>,
}

impl Resends {
    pub(super) fn new(interval: Duration) -> Resends {
        Resends { interval, last: BTreeMap::new() }
    }

    /// Returns the receivers whose turn it is, and counts from now on.
    pub(super) fn due(&mut self, state: &State, busy: &BTreeSet<Receiver>) -> Vec<Receiver> {
        let (wanted, now) = (wanted(state), Instant::now());
        self.last.retain(|receiver, _| wanted.contains(receiver));
        let due: Vec<Receiver> = wanted
            .into_iter()
            .filter(|receiver| !busy.contains(receiver) && self.left(*receiver, now).is_zero())
            .collect();
        self.last.extend(due.iter().map(|receiver| (*receiver, now)));
        due
    }

    /// Returns the time until the next turn.
    pub(super) fn until_due(&self, state: &State, busy: &BTreeSet<Receiver>) -> Option<Duration> {
        let now = Instant::now();
        let idle = wanted(state).into_iter().filter(|receiver| !busy.contains(receiver));
        idle.map(|receiver| self.left(receiver, now)).min()
    }

    fn left(&self, receiver: Receiver, now: Instant) -> Duration {
        let last = self.last.get(&receiver);
        last.map_or(Duration::ZERO, |last| (*last + self.interval).saturating_duration_since(now))
    }
}

/// Returns the receivers that get active alerts again.
fn wanted(state: &State) -> Vec<Receiver> {
    if state.group::<AlertWebhook>().format != WebhookFormat::AlertmanagerV2 {
        return Vec::new();
    }
    let rules = state.alert_rules.iter().map(|rule| Receiver::RuleWebhook(rule.kind));
    [Receiver::Webhook].into_iter().chain(rules).filter(|receiver| is_on(state, *receiver)).collect()
}

impl Deliveries {
    /// Sends the active alerts of a receiver again. The next turn repeats what fails.
    pub(super) async fn resend(self: Arc<Self>, state: Arc<State>, receiver: Receiver) -> Done {
        let done = |attempt| Done { receiver, number: None, attempt, retries: 0 };
        let mut last = Attempt { status: None, outcome: Outcome::Accepted };
        let source = self.source.clone();
        let mut alerts: Vec<AlertSnapshot> = blocking(move || source.active()).await;
        alerts.retain(|alert| receivers(&state, alert).contains(&receiver));
        if alerts.is_empty() {
            return done(last);
        }
        let target = match self.webhook_target(&state, receiver).await {
            Ok(target) => target,
            Err(error) => return done(Attempt::refused(&error)),
        };
        let world = self.worlds.now();
        let (sender, own) = (sender(&world), own_networks(&world));
        let egress = match egress(&world, &target.egress) {
            Ok(egress) => egress,
            Err(reason) => return done(Attempt::failed(reason)),
        };
        for chunk in alerts.chunks(MAX_ALERTS) {
            let now = self.store.clock().now();
            let payload = Payload::json(&alertmanager_v2::body(chunk, &sender, now));
            let message = Message { id: &resend_id(now), payload, now, egress: &egress, own: &own };
            last = self.webhooks.send(&target, message).await;
            if last.outcome != Outcome::Accepted {
                break;
            }
        }
        done(last)
    }
}

fn resend_id(now: Timestamp) -> String {
    format!("msg_active_{}", now.as_millisecond())
}
