//! Loop of the outbox: takes notifications in, starts attempts, and settles their results.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use gateway_core::notifications::outbox::{Delivery, Outbox, Outcome, Settled};
use gateway_core::notifications::receivers::{Receiver, is_on, receivers};
use gateway_model::State;
use gateway_outbound::causes::with_causes;

use super::attempt::Done;
use super::resend::Resends;
use super::source::SourceEvent;
use super::{Deliveries, Kept};
use crate::random;
use crate::supervise::blocking;

/// Maximum time between two looks at the outbox. Timers do not notice when the wall clock is set.
const POLL_INTERVAL: Duration = Duration::from_secs(20);

/// Attempts in progress, at most one a receiver.
type Attempts = FuturesUnordered<BoxFuture<'static, Done>>;

impl Deliveries {
    /// Runs until it is aborted.
    pub(super) async fn run(self: Arc<Self>) {
        if let Err(error) = self.restore().await {
            tracing::error!(
                error = with_causes(&error),
                "failed to read the deliveries that wait: there are none"
            );
        }
        let (mut notified, mut revisions) = (self.source.changes(), self.store.watch());
        let (mut attempts, mut busy, mut resends) =
            (Attempts::new(), BTreeSet::new(), Resends::new(self.resend_interval));
        loop {
            let wait = self.step(&mut attempts, &mut busy, &mut resends).await;
            tokio::select! {
                changed = notified.changed() => if changed.is_err() { return },
                changed = revisions.changed() => if changed.is_err() { return },
                Some(done) = attempts.next() => {
                    busy.remove(&done.receiver);
                    self.settle(done).await;
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn restore(&self) -> Result<(), crate::store::Error> {
        let store = self.store.clone();
        let stored = blocking(move || store.notification_outbox()).await;
        let (outbox, result) = match stored {
            Ok(outbox) => (outbox, Ok(())),
            Err(error) => {
                // Otherwise, everything since the first alert would be sent again.
                let mut outbox = Outbox::default();
                outbox.skip(*self.source.changes().borrow());
                (outbox, Err(error))
            }
        };
        *self.kept.lock().await = Some(Kept { outbox, unsaved: Default::default() });
        result
    }

    /// Takes in what is new, and starts what is due. Returns the time until something else is due.
    async fn step(
        self: &Arc<Self>,
        attempts: &mut Attempts,
        busy: &mut BTreeSet<Receiver>,
        resends: &mut Resends,
    ) -> Duration {
        let state = self.store.current();
        let mut kept = self.kept.lock().await;
        let Some(kept) = &mut *kept else { return POLL_INTERVAL };
        kept.unsaved.extend(kept.outbox.retain(|receiver| is_on(&state, receiver)));
        self.take_in(kept, &state).await;
        let source = self.source.clone();
        let muted = blocking(move || source.muted()).await;
        kept.unsaved.extend(kept.outbox.withdraw(&muted, busy));
        self.save(kept).await;
        let now = self.store.clock().now();
        for delivery in kept.outbox.due(now, busy) {
            busy.insert(delivery.receiver);
            attempts.push(Box::pin(self.clone().attempt(state.clone(), delivery.clone())));
        }
        for receiver in resends.due(&state, busy) {
            busy.insert(receiver);
            attempts.push(Box::pin(self.clone().resend(state.clone(), receiver)));
        }
        self.stats.waiting(kept.outbox.len(), kept.outbox.dropped());
        let until_due = kept.outbox.until_due(now, busy).map(Duration::try_from);
        let waits = [until_due.and_then(Result::ok), resends.until_due(&state, busy)];
        waits.into_iter().flatten().fold(POLL_INTERVAL, Duration::min)
    }

    async fn take_in(&self, kept: &mut Kept, state: &State) {
        if *self.source.changes().borrow() < kept.outbox.cursor() {
            tracing::warn!("the history of alerts is gone: deliveries begin with the next one");
            let changes = kept.outbox.reset(0);
            kept.unsaved.extend(changes);
        }
        let now = self.store.clock().now();
        loop {
            let (source, cursor) = (self.source.clone(), kept.outbox.cursor());
            let events = blocking(move || source.events_after(cursor)).await;
            for SourceEvent { sequence, notification } in events {
                let changes = match notification {
                    Some(notification) => {
                        kept.outbox.take_in(&notification, &receivers(state, &notification.alert), now)
                    }
                    None => kept.outbox.skip(sequence),
                };
                kept.unsaved.extend(changes);
            }
            if kept.outbox.cursor() == cursor {
                return;
            }
        }
    }

    /// Sends a delivery once.
    async fn attempt(self: Arc<Self>, state: Arc<State>, delivery: Delivery) -> Done {
        let Delivery { receiver, number, message_id, notification, .. } = delivery;
        let (attempt, retries) =
            self.send(&state, receiver, &message_id, notification.transition, &notification.alert).await;
        Done { receiver, number: Some(number), attempt, retries }
    }

    async fn settle(&self, done: Done) {
        let Done { receiver, number, attempt, retries } = done;
        let Some(number) = number else {
            let is_accepted = attempt.outcome == Outcome::Accepted;
            // Without active alerts, nothing was sent.
            if attempt.status.is_some() || !is_accepted {
                self.stats.note(receiver, &attempt);
            }
            if !is_accepted {
                tracing::warn!(%receiver, outcome = ?attempt.outcome, "active alerts were not sent again");
            }
            return;
        };
        self.stats.note(receiver, &attempt);
        let settled = {
            let mut kept = self.kept.lock().await;
            let Some(kept) = &mut *kept else { return };
            let (now, jitter) = (self.store.clock().now(), random::fraction());
            let Some((settled, changes)) = kept.outbox.settle(number, &attempt.outcome, retries, now, jitter)
            else {
                return;
            };
            kept.unsaved.extend(changes);
            self.save(kept).await;
            settled
        };
        let error = attempt.error();
        match settled {
            Settled::Accepted => tracing::info!(%receiver, status = attempt.status, "alert delivered"),
            Settled::Retries { at } => {
                tracing::warn!(%receiver, error, %at, "alert not delivered, it is sent again")
            }
            Settled::GivenUp => {
                self.stats.note_given_up();
                tracing::error!(%receiver, error, "alert not delivered, it is given up");
            }
            Settled::Gone => self.turn_off(receiver).await,
        }
    }
}
