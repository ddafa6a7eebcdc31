//! The service itself: version, documentation, inventory.

use schemars::JsonSchema;
use serde::Serialize;

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::{Content, Reply};
use crate::request::Req;
use crate::table::Table;
use crate::{events, pages};

#[derive(Debug, Serialize, JsonSchema)]
pub struct Version {
    /// Version of the daemon.
    pub version: &'static str,
    /// Version of the REST API.
    pub api: &'static str,
}

pub fn rows(t: &mut Table) {
    t.view("/version", "get_version", version).summary("Version of the daemon and of the API").always();
    t.document("/openapi.json", "get_openapi", "application/json", |cx: &Cx| {
        Reply::content(Content::Bytes { content_type: "application/json", bytes: cx.api.openapi() })
    })
    .summary("This API as an OpenAPI 3.1 document")
    .access(Access::Open);
    for (path, operation, media, text) in pages::PAGES {
        t.document(path, operation, media, move |_: &Cx| pages::page(media, text))
            .summary("Dashboard")
            .access(Access::Open)
            .outside();
    }
    t.stream("/events", "get_events", events::MEDIA, |cx: Cx, _| async move { Ok(events::body(cx.open()?)) })
        .summary("Stream of changes, as server-sent events")
        .doc(
            "revision: the store has changed. status: a reconcile run has finished. alert: an alert became active or was resolved; active alerts are sent at the start of the stream. Its kind is that of its alert rule.",
        );
    super::services::rows(t);
    super::metrics::rows(t);
}

async fn version(_: Cx, _: Req<()>) -> Result<Version, ApiError> {
    Ok(Version { version: env!("CARGO_PKG_VERSION"), api: "v1" })
}
