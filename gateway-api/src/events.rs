//! Server-sent events for user interfaces: that something changed, not what. Whoever hears it reads anew.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gateway_ctl::reconcile::Status;
use serde_json::json;
use tokio::sync::watch;

use crate::gateway::Open;

pub const MEDIA: &str = "text/event-stream";

/// A comment after so much silence keeps the connection open.
const KEEPALIVE: Duration = Duration::from_secs(15);

struct Source {
    revisions: watch::Receiver<u64>,
    runs: watch::Receiver<Arc<Status>>,
    first: bool,
}

/// An endless body: where things stand, then each commit (`revision`) and each run of the reconciler (`status`).
pub fn body(open: &Open) -> Body {
    let source = Source { revisions: open.store.watch(), runs: open.enforcement.status(), first: true };
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
            let status = self.runs.borrow_and_update().clone();
            return Some(format!("{}{}", revision_event(revision), status_event(&status)));
        }
        tokio::select! {
            changed = self.revisions.changed() => {
                changed.ok()?;
                let revision = *self.revisions.borrow_and_update();
                Some(revision_event(revision))
            }
            changed = self.runs.changed() => {
                changed.ok()?;
                let status = self.runs.borrow_and_update().clone();
                Some(status_event(&status))
            }
            () = tokio::time::sleep(KEEPALIVE) => Some(": still here\n\n".to_owned()),
        }
    }
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
