//! Server-sent events for user interfaces. An event says that something changed, and the client reads the new state
//! through the API. Only alert events contain all their data.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gateway_core::alerts::Alert;
use gateway_ctl::reconcile::Status;
use gateway_ctl::services::alerts::Alerts;
use gateway_ctl::world::World;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::gateway::Open;

pub(crate) const MEDIA: &str = "text/event-stream";

/// Silence before an event that shows that the daemon responds. A client that misses two of them can say within ten
/// seconds that it does not.
const HEARTBEAT: Duration = Duration::from_secs(4);

const HEARTBEAT_EVENT: &str = "event: heartbeat\ndata: {}\n\n";

struct Source {
    revisions: watch::Receiver<u64>,
    worlds: watch::Receiver<Arc<World>>,
    run: u64,
    alerts: Alerts,
    changed: broadcast::Receiver<Alert>,
    first: bool,
}

/// Returns an endless body: the current state, then an event for each commit (`revision`), each reconcile run
/// (`status`), and each change of an alert (`alert`). A `heartbeat` follows each silence.
pub(crate) fn body(open: &Open) -> Body {
    let alerts = open.alerts.clone();
    let changed = alerts.subscribe().1;
    let worlds = open.worlds.watch();
    let source = Source { revisions: open.store.watch(), worlds, run: 0, alerts, changed, first: true };
    Body::from_stream(stream::unfold(source, |mut source| async move {
        let text = source.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), source))
    }))
}

impl Source {
    /// Waits for the next event. `None` after the gateway has stopped.
    async fn next(&mut self) -> Option<String> {
        if std::mem::take(&mut self.first) {
            let revision = *self.revisions.borrow_and_update();
            let status = self.status();
            return Some(format!("{}{}{}", revision_event(revision), status_event(&status), self.going_on()));
        }
        let run = self.run;
        tokio::select! {
            changed = self.revisions.changed() => {
                changed.ok()?;
                let revision = *self.revisions.borrow_and_update();
                Some(revision_event(revision))
            }
            changed = ran(&mut self.worlds, run) => {
                changed?;
                let status = self.status();
                Some(status_event(&status))
            }
            changed = self.changed.recv() => match changed {
                Ok(alert) => Some(alert_event(&alert)),
                // The receiver lagged, so the client gets all open alerts again.
                Err(RecvError::Lagged(_)) => Some(self.going_on()),
                Err(RecvError::Closed) => None,
            },
            () = tokio::time::sleep(HEARTBEAT) => Some(HEARTBEAT_EVENT.to_owned()),
        }
    }
}

impl Source {
    /// Returns the status of the last run and remembers it as sent.
    fn status(&mut self) -> Arc<Status> {
        let status = self.worlds.borrow_and_update().status.clone();
        self.run = status.run;
        status
    }

    /// Returns all open alerts, and subscribes to those that follow.
    fn going_on(&mut self) -> String {
        let (open, changed) = self.alerts.subscribe();
        self.changed = changed;
        open.iter().map(alert_event).collect()
    }
}

/// Waits for a run other than this one. `None` after the gateway has stopped.
async fn ran(worlds: &mut watch::Receiver<Arc<World>>, run: u64) -> Option<()> {
    worlds.wait_for(|world| world.status.run != run).await.ok().map(drop)
}

/// Data of an `alert` event: the alert, and whether it lasts.
#[derive(Serialize)]
struct AlertEvent<'a> {
    #[serde(flatten)]
    alert: &'a Alert,
    since: Timestamp,
    /// `false`: the alert is resolved.
    active: bool,
}

fn alert_event(alert: &Alert) -> String {
    let event = AlertEvent { since: alert.first_seen, active: alert.status.is_open(), alert };
    format!("event: alert\ndata: {}\n\n", json!(event))
}

fn revision_event(revision: u64) -> String {
    format!("event: revision\ndata: {}\n\n", json!({"revision": revision}))
}

fn status_event(status: &Status) -> String {
    let data = json!({
        "run": status.run, "revision": status.revision, "reason": status.reason, "ok": status.is_ok(),
    });
    format!("event: status\ndata: {data}\n\n")
}
