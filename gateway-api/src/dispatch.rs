//! The only HTTP handler: from a request to a row and back to a response in the envelope.
//!
//! The order matters: identify, is the host ours, route, method, origin, may the caller, can it be done at all, read
//! the body, run, record, envelope. Handlers run in a task of their own, so that a client that goes away does not cut
//! a change in half and a panic ends one request only.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as HttpBody;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::access::{Actor, authorise};
use crate::context::{Api, Cx, Peer};
use crate::error::{ApiError, Code};
use crate::reply::{Content, Reply};
use crate::request::{Query, Request};
use crate::table::{API_ROOT, Effect, Method, Row};

mod body;
mod browser;
pub mod conditional;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// What a handler may take before the client is told to ask again. The work itself goes on.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(120);

/// The service as an axum router; every path and method goes to [`answer`].
pub fn router(api: Arc<Api>) -> axum::Router {
    axum::Router::new().fallback(axum::routing::any(move |request: http::Request<HttpBody>| {
        let api = api.clone();
        async move { answer(api, request).await }
    }))
}

/// Answers one request.
pub async fn answer(api: Arc<Api>, request: http::Request<HttpBody>) -> Response<HttpBody> {
    let (parts, body) = request.into_parts();
    let request_id = request_id(&parts.headers);
    let head_only = parts.method == http::Method::HEAD;
    let result = process(&api, &parts, body, &request_id).await;
    let mut response = result.unwrap_or_else(|error| {
        tracing::debug!(
            method = %parts.method, path = parts.uri.path(), request_id, code = error.code.as_str(), "refused"
        );
        error_response(&error, &request_id)
    });
    finish(response.headers_mut(), &request_id);
    if head_only { without_body(response) } else { response }
}

async fn process(
    api: &Arc<Api>,
    parts: &Parts,
    body: HttpBody,
    request_id: &str,
) -> Result<Response<HttpBody>, ApiError> {
    let peer = parts.extensions.get::<axum::extract::ConnectInfo<Peer>>().map(|info| info.0.clone());
    let local_socket = matches!(peer, Some(Peer::Local));
    if !local_socket {
        browser::check_host(parts, &api.settings.host_names)?;
    }
    let path = parts.uri.path();
    let Some(found) = api.routes.find(path) else {
        return Err(ApiError::new(Code::RouteNotFound, format!("There is nothing at {path}."))
            .detail("path", path)
            .detail("documentation", format!("{API_ROOT}/openapi.json")));
    };
    if parts.method == http::Method::OPTIONS {
        return Ok(options_response(&found.allow()));
    }
    let position = Method::from_http(&parts.method).and_then(|method| found.rows.get(&method));
    let Some(row) = position.map(|position| &api.table.rows()[*position]) else {
        let message = format!("{} is not possible at {path}.", parts.method);
        return Err(ApiError::new(Code::MethodNotAllowed, message).detail("allow", found.allow()));
    };
    if row.method != Method::Get {
        browser::check_origin(parts)?;
    }
    let actor = Actor::open(peer.and_then(|peer| peer.ip()));
    let params = found.params(row);
    let cx = Cx::new(api.clone(), row, actor, request_id, &params);
    if let Err(denied) = authorise(&cx.actor, row) {
        cx.record_failure(&denied).await;
        return Err(denied);
    }
    let handler = match &row.work {
        crate::table::Work::Handler(handler) => handler.clone(),
        crate::table::Work::Unsupported { needs } => return Err(ApiError::not_supported(needs)),
    };
    if !row.always {
        api.open()?;
    }
    let query = Query::parse(parts.uri.query())?;
    check_query(row, &query, &api.filter_names)?;
    let body = body::read(row, parts, body, &query, api.settings.body_limit).await?;
    let if_match = conditional::header(&parts.headers, &header::IF_MATCH)?;
    let request = Request { params, query, body, if_match };

    let acts = matches!(row.effect, Effect::Acts(_));
    let task_cx = cx.clone();
    let task = tokio::spawn(async move {
        let result = handler(task_cx.clone(), request).await;
        // Recorded here and not by the waiting side: a client that is gone must not keep the entry from being written.
        match result {
            Err(error) => {
                task_cx.record_failure(&error).await;
                Err(error)
            }
            Ok(reply) => {
                let subject = reply.subject.clone();
                if acts {
                    task_cx.record_success(subject.as_deref()).await?;
                }
                Ok(reply)
            }
        }
    });
    let reply = match tokio::time::timeout(HANDLER_TIMEOUT, task).await {
        Ok(Ok(result)) => result?,
        Ok(Err(panic)) => {
            let error = ApiError::internal(&panic);
            cx.record_failure(&error).await;
            return Err(error);
        }
        Err(_) => {
            return Err(ApiError::new(
                Code::UpstreamTimeout,
                "The gateway is still at work on this; its outcome will show in the status and the audit log.",
            ));
        }
    };
    respond(row, parts, reply)
}

/// Turns a reply into a response, or into 304 if the client has it already.
fn respond(row: &Row, parts: &Parts, reply: Reply) -> Result<Response<HttpBody>, ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(total) = reply.total {
        headers.insert(TOTAL_COUNT, HeaderValue::from(total));
    }
    if let Some(location) = &reply.location
        && let Ok(value) = HeaderValue::from_str(&format!("{API_ROOT}{location}"))
    {
        headers.insert(header::LOCATION, value);
    }
    let (content_type, body) = match reply.content {
        Content::Data(data) => {
            let bytes = serde_json::to_vec(&Reply::envelope(&data, &reply.warnings))
                .map_err(|error| ApiError::internal(&error))?;
            let tag = match &reply.etag {
                Some(tag) => format!("\"{tag}\""),
                None => conditional::weak_tag(&bytes),
            };
            if (row.method == Method::Get || reply.etag.is_some())
                && let Ok(value) = HeaderValue::from_str(&tag)
            {
                headers.insert(header::ETAG, value);
            }
            let known = conditional::header(&parts.headers, &header::IF_NONE_MATCH)?;
            if row.method == Method::Get
                && known.is_some_and(|known| conditional::names_tag(&known, tag.trim_start_matches("W/")))
            {
                let mut response = Response::new(HttpBody::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                *response.headers_mut() = headers;
                return Ok(response);
            }
            ("application/json", HttpBody::from(bytes))
        }
        Content::Bytes { content_type, bytes } => (content_type, HttpBody::from(bytes)),
        Content::Stream { content_type, body } => (content_type, body),
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn error_response(error: &ApiError, request_id: &str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(error.to_json(request_id).to_string()));
    *response.status_mut() = error.code.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = error.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    for (detail, name) in [("allow", header::ALLOW), ("current_etag", header::ETAG)] {
        if let Some(Ok(value)) = error.details.get(detail).and_then(Value::as_str).map(HeaderValue::from_str)
        {
            headers.insert(name, value);
        }
    }
    if error.code.status() == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn options_response(allow: &str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// Headers that every response has.
fn finish(headers: &mut HeaderMap, request_id: &str) {
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'self'; base-uri 'none'; frame-ancestors 'none'"),
    );
}

/// HEAD: the headers of the GET, the length included, and nothing else.
fn without_body(response: Response<HttpBody>) -> Response<HttpBody> {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = axum::body::HttpBody::size_hint(&body).exact()
        && parts.status != StatusCode::NOT_MODIFIED
    {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, HttpBody::empty())
}

/// The caller's id if it is harmless, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let harmless = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(harmless)
        .map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// A parameter that no one reads is a typo somebody should hear of.
fn check_query(
    row: &Row,
    query: &Query,
    filters: &std::collections::BTreeMap<String, Vec<String>>,
) -> Result<(), ApiError> {
    if row.text_field.is_some() {
        return Ok(());
    }
    let fields = filters.get(&row.operation).map(Vec::as_slice).unwrap_or_default();
    for (name, _) in &query.0 {
        let declared = row.parameters.iter().any(|parameter| parameter.name == name);
        if !declared && !fields.contains(name) {
            let mut allowed: Vec<&str> = row.parameters.iter().map(|parameter| parameter.name).collect();
            allowed.extend(fields.iter().map(String::as_str));
            return Err(ApiError::invalid_parameter(
                name,
                format!("There is no query parameter {name:?} here."),
            )
            .detail("allowed", allowed));
        }
    }
    Ok(())
}
