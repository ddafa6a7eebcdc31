//! `GET /flows/stream`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gateway_core::flow_log::{FlowFilter, FlowNews};
use gateway_ctl::services::countries::CountryDatabase;
use gateway_ctl::services::flow_log::{FlowLog, FlowRow};
use gateway_ctl::store::Store;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::entry::FlowEntry;
use super::selection::FlowSelection;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

/// Silence after which a line shows that the stream goes on.
const HEARTBEAT: Duration = Duration::from_secs(5);

struct Source {
    news: broadcast::Receiver<Arc<FlowNews>>,
    filter: FlowFilter,
    store: Arc<Store>,
    countries: CountryDatabase,
}

pub(super) async fn flows(cx: Cx, request: Req<()>) -> Result<Body, ApiError> {
    let open = cx.open()?;
    let countries = open.handles.get::<CountryDatabase>();
    let filter = request.query.read::<FlowSelection>()?.filter(&countries)?;
    let news = open.handles.get::<FlowLog>().subscribe();
    let source = Source { news, filter, store: open.store.clone(), countries };
    Ok(Body::from_stream(stream::unfold(source, |mut source| async move {
        let line = source.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(line)), source))
    })))
}

impl Source {
    /// Returns the next line. `None` after the log has ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            let line = match tokio::time::timeout(HEARTBEAT, self.news.recv()).await {
                Err(_) => json!({"event": "heartbeat"}),
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Err(RecvError::Lagged(lost))) => json!({"event": "lost", "lines": lost}),
                Ok(Ok(news)) if self.filter.is_match(&news.record) => {
                    let row = FlowRow { id: None, record: news.record.clone() };
                    let is_over = news.record.end.is_some();
                    let flow =
                        FlowEntry::of(row, &self.store.current(), &self.countries).with_active(!is_over);
                    json!({"event": news.change, "flow": flow})
                }
                Ok(Ok(_)) => continue,
            };
            return Some(format!("{line}\n"));
        }
    }
}
