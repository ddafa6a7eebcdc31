//! Calls of other endpoints in this process, as the caller and with the rights of the caller.

use std::time::Duration;

use serde_json::Value;

use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::{Content, Reply};
use crate::request::{Body, Query, Request};
use crate::table::{Cost, Effect, Endpoint, Work};

/// Timeout of the handler.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a reply that is read.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Runs the handler of an operation that changes nothing, and returns its data.
pub(super) async fn call(
    cx: &Cx,
    operation: &str,
    query: &[(&str, String)],
    body: Option<Value>,
) -> Result<Value, ApiError> {
    let endpoints = cx.api.table.endpoints();
    let found = endpoints.iter().find(|endpoint| endpoint.operation == operation);
    let Some(Endpoint { work: Work::Handler(handler), effect: Effect::Reads, access, output, cost, .. }) =
        found
    else {
        return Err(ApiError::new(Code::NotSupported, format!("{operation} is not supported.")));
    };
    cx.require(*access)?;
    let permit =
        if output.is_list() || *cost == Cost::Heavy { Some(cx.api.heavy.admit().await?) } else { None };
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let body = body.map_or(Body::Absent, Body::Json);
    let request = Request { query: Query(query), body, ..Request::default() };
    let answered = tokio::time::timeout(TIMEOUT, handler(cx.clone(), request)).await;
    drop(permit);
    let late = |_| ApiError::new(Code::UpstreamTimeout, "There was no answer in time.");
    data(answered.map_err(late)??)
}

fn data(reply: Reply) -> Result<Value, ApiError> {
    let failed = |error: serde_json::Error| ApiError::internal(&error);
    let text = match reply.content {
        Content::Data(data) => return Ok(data),
        Content::Text(text) => Reply::seal(text, &[]).map_err(failed)?.0.into(),
        Content::Json { bytes, .. } => bytes,
        Content::Bytes { .. } | Content::OpenApi | Content::File(_) | Content::Stream { .. } => {
            return Err(ApiError::new(Code::NotSupported, "This view has no data."));
        }
    };
    if text.len() > MAX_BYTES {
        return Err(ApiError::new(Code::PayloadTooLarge, "The view is too large for the assistant."));
    }
    let mut whole: Value = serde_json::from_slice(&text).map_err(failed)?;
    Ok(whole["data"].take())
}
