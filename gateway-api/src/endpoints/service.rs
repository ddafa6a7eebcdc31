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
pub(super) struct Version {
    /// Version of the daemon.
    pub version: &'static str,
    /// Version of the REST API.
    pub api: &'static str,
}

pub(super) fn rows(t: &mut Table) {
    t.view("/version", "get_version", version).summary("Version of the daemon and of the API").always();
    t.document("/openapi.json", "get_openapi", "application/json", |_| Reply::content(Content::OpenApi))
        .summary("This API as an OpenAPI 3.1 document")
        .access(Access::Open);
    t.page("/", "get_dashboard", pages::HTML, |pages, _| Some(pages.index())).summary("Dashboard");
    t.page("/assets/{file}", "get_dashboard_asset", "*/*", |pages, request| {
        pages.asset(request.params.get("file"))
    })
    .summary("Script, style or image of the dashboard")
    .doc("The name contains a hash of the content, so that it can be cached for ever.");
    t.page("/{path}", "get_dashboard_view", "*/*", |pages, request| {
        pages.file_or_view(request.params.get("path"), request.takes_html)
    })
    .summary("Another file of the dashboard, or one of its views")
    .doc("If there is no such file and Accept names text/html, the dashboard, which shows the view of this path.")
    .tail();
    t.page("/api/docs", "get_documentation", pages::HTML, |pages, _| Some(pages.documentation()))
        .summary("This API as a page");
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
