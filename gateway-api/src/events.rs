//! Server-sent events for user interfaces: that something changed, not what. Whoever hears it reads anew. Only of what is
//! worth an alert everything is told.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gateway_ctl::reconcile::Status;
use gateway_ctl::services::active_alerts::{ActiveAlert, ActiveAlerts};
use gateway_ctl::world::World;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::gateway::Open;

pub const MEDIA: &str = "text/event-stream";

/// A comment after so much silence keeps the connection open.
const KEEPALIVE: Duration = Duration::from_secs(15);

struct Source {
    revisions: watch::Receiver<u64>,
    worlds: watch::Receiver<Arc<World>>,
    run: u64,
    active_alerts: ActiveAlerts,
    told: broadcast::Receiver<ActiveAlert>,
    first: bool,
}

/// An endless body: where things stand, then each commit (`revision`), each run of the reconciler (`status`), and what
/// begins and ends that is worth an alert (`alert`).
pub fn body(open: &Open) -> Body {
    let active_alerts = open.active_alerts.clone();
    let told = active_alerts.subscribe().1;
    let worlds = open.worlds.watch();
    let source = Source { revisions: open.store.watch(), worlds, run: 0, active_alerts, told, first: true };
    Body::from_stream(stream::unfold(source, |mut source| async move {
        let text = source.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), source))
    }))
}

impl Source {
    /// Nothing once the gateway is gone.
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
            told = self.told.recv() => match told {
                Ok(notice) => Some(alert_event(&notice)),
                // Too far behind: where things stand is told anew.
                Err(RecvError::Lagged(_)) => Some(self.going_on()),
                Err(RecvError::Closed) => None,
            },
            () = tokio::time::sleep(KEEPALIVE) => Some(": still here\n\n".to_owned()),
        }
    }
}

impl Source {
    /// The last run, which is told now.
    fn status(&mut self) -> Arc<Status> {
        let status = self.worlds.borrow_and_update().status.clone();
        self.run = status.run;
        status
    }

    /// All that goes on now; what is told from here on comes after it.
    fn going_on(&mut self) -> String {
        let (active, told) = self.active_alerts.subscribe();
        self.told = told;
        active.iter().map(alert_event).collect()
    }
}

/// Returns after a run that is another than this one; none once the gateway is gone.
async fn ran(worlds: &mut watch::Receiver<Arc<World>>, run: u64) -> Option<()> {
    worlds.wait_for(|world| world.status.run != run).await.ok().map(drop)
}

fn alert_event(notice: &ActiveAlert) -> String {
    format!("event: alert\ndata: {}\n\n", json!(notice))
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
