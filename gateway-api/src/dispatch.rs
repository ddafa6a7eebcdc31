//! The only HTTP handler: from a request to an endpoint, and to a response in the envelope.
//!
//! The order matters: authenticate; charge the quota of the caller; route; check method, host, origin, authorisation
//! and availability; read the body; run; audit; build the envelope. Changes run in a task of their own, so that a
//! client that disconnects does not interrupt one halfway. A panic ends one request only.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body as HttpBody;
use futures_util::{FutureExt, StreamExt, poll};
use gateway_model::Secret;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::auth::rate_limit::Quota;
use crate::auth::{self, Identity};
use crate::authorization::{Access, Actor, Proof, check};
use crate::context::{Api, Cx};
use crate::error::{ApiError, Code};
use crate::pages::negotiation::Coding;
use crate::peer::ConnectionInfo;
use crate::peer::Peer;
use crate::reply::{Content, Reply};
use crate::request::{Body, Query, Request};
use crate::serve::{RequestHandler, ResponseFuture};
use crate::table::{API_ROOT, Availability, Cost, Effect, Endpoint, Handler, Method, no_endpoint};
use crate::wipe;
use crate::{openapi, pages};

mod body;
mod browser;
pub(crate) mod conditional;
mod multipart;
mod request_id;
mod spool;

pub(crate) use request_id::new as new_request_id;
pub use spool::Spooled;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Passphrase of the encrypted file in the body. A header, because query strings end up in logs and browser histories.
pub const PASSPHRASE: HeaderName = HeaderName::from_static("x-passphrase");
pub const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// Timeout of a handler. After it the client receives an error that asks for a retry; the work continues.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(120);

impl RequestHandler for Api {
    fn handle(self: Arc<Self>, request: http::Request<HttpBody>, peer: Peer) -> ResponseFuture {
        Box::pin(answer(self, request, Some(peer)))
    }
}

/// Answers one request. Without a peer, the caller has no address.
pub async fn answer(
    api: Arc<Api>,
    request: http::Request<HttpBody>,
    peer: Option<Peer>,
) -> Response<HttpBody> {
    let (parts, body) = request.into_parts();
    let request_id = request_id(&parts.headers);
    let head_only = parts.method == http::Method::HEAD;
    let identity = api.auth.identify(&api.gateway, &parts, peer.as_ref());
    // Pages and their assets are in memory and cost nothing. A browser requests many of them at once.
    let (quota, admitted) = match parts.uri.path().starts_with(API_ROOT) {
        true => api.auth.charge(&identity.actor, &parts.method),
        false => (None, Ok(())),
    };
    let result = match admitted {
        Ok(()) => process(&api, &parts, body, identity, peer.as_ref(), &request_id).await,
        Err(exceeded) => Err(exceeded),
    };
    let mut response = result.unwrap_or_else(|error| {
        tracing::debug!(
            method = %parts.method, path = parts.uri.path(), request_id, code = error.code.as_str(), "refused"
        );
        error_response(&error, &request_id)
    });
    finish(response.headers_mut(), &request_id);
    if let Some(quota) = quota {
        limit_headers(response.headers_mut(), quota);
    }
    if head_only { without_body(response) } else { response }
}

async fn process(
    api: &Arc<Api>,
    parts: &Parts,
    body: HttpBody,
    identity: Identity,
    peer: Option<&Peer>,
    request_id: &str,
) -> Result<Response<HttpBody>, ApiError> {
    browser::check_target(parts)?;
    // A caller with a credential may use any host name: a browser does not send the credential to a rebound name.
    let host = match identity.actor.proof.is_credential() {
        true => Ok(()),
        false => browser::check_host(parts, |name| api.config().listen.has_host_name(name)),
    };
    let path = parts.uri.path();
    let Some(found) = api.routes.find(path) else {
        host?;
        return Err(no_endpoint(path));
    };
    if parts.method == http::Method::OPTIONS {
        host?;
        return Ok(options_response(&found.allow()));
    }
    let position = Method::find(parts.method.as_str()).and_then(|method| found.endpoints.get(&method));
    let Some(endpoint) = position.map(|position| &api.table.endpoints()[*position]) else {
        host?;
        let message = format!("{path} does not support {}.", parts.method);
        return Err(ApiError::new(Code::MethodNotAllowed, message).detail("allow", found.allow()));
    };
    let params = found.params(endpoint);
    let connection = ConnectionInfo {
        tls: peer.is_some_and(Peer::is_tls),
        forwarded: auth::is_forwarded(parts),
        user_agent: parts
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    };
    let Identity { actor, refusal } = identity;
    let cx = Cx::new(api.clone(), endpoint, actor, connection, request_id, &params);
    let checked = host.and_then(|()| check_access(&cx, endpoint, parts, refusal));
    if let Err(denied) = checked {
        Box::pin(cx.record_failure(&denied)).await;
        return Err(denied);
    }
    wipe::note_presence(&cx);
    let handler = match &endpoint.work {
        crate::table::Work::Handler(handler) => handler,
        crate::table::Work::Unsupported { needs } => return Err(ApiError::not_supported(needs)),
    };
    if endpoint.availability == Availability::WithStore {
        api.open()?;
    }
    let query = read_query(api, endpoint, parts)?;
    let body = match endpoint.method {
        Method::Get => Body::Absent,
        _ if endpoint.input.is_spooled() => {
            Body::Spooled(Box::pin(body::spooled(api, endpoint, parts, body)).await?)
        }
        _ => Box::pin(body::read(endpoint, parts, body, &query, api.settings.body_limit)).await?,
    };
    let if_match = conditional::header(&parts.headers, &header::IF_MATCH)?;
    let passphrase = match endpoint.input.is_file() {
        true => conditional::header(&parts.headers, &PASSPHRASE)?.map(Secret::new).unwrap_or_default(),
        false => Secret::default(),
    };
    let takes_html = pages::takes_html(&parts.headers);
    let request = Request { params, query, body, if_match, passphrase, takes_html };

    // Futures are boxed unless every request has them: that of a request is allocated and moved.
    let (reply, permit) = match endpoint.effect {
        Effect::Reads if endpoint.output.is_list() || endpoint.cost == Cost::Heavy => {
            Box::pin(read_heavily(&cx, handler.clone(), request)).await?
        }
        Effect::Reads => (read(&cx, handler, request).await?, None),
        Effect::Stores(_) | Effect::Acts(_) => {
            (Box::pin(change(&cx, endpoint, handler.clone(), request)).await?, None)
        }
    };
    let reply = serialise(&cx, reply).await?;
    drop(permit);
    respond(&cx, endpoint, parts, reply)
}

/// Serialises the data of a reply into the body.
async fn serialise(cx: &Cx, mut reply: Reply) -> Result<Reply, ApiError> {
    let internal = |error: serde_json::Error| ApiError::internal(&error);
    let text = match &mut reply.content {
        // The data takes many times the memory of the body, so it is dropped before the wait.
        Content::Data(data) => Reply::text_with(&data.take()).map_err(internal)?,
        Content::Text(text) => std::mem::take(text),
        _ => return Ok(reply),
    };
    let (bytes, digest) = Reply::seal(text, &reply.warnings).map_err(internal)?;
    reply.content = Content::Json { bytes: cx.api.heavy.until_sent(bytes).await?, digest };
    Ok(reply)
}

/// Runs a handler whose response may be large. Limits how many run at once. The handler runs in a task of its own, so
/// that a client that disconnects does not free the permit while the work continues.
async fn read_heavily(
    cx: &Cx,
    handler: Handler,
    request: Request,
) -> Result<(Reply, Option<OwnedSemaphorePermit>), ApiError> {
    let permit = cx.api.heavy.admit().await?;
    let cx = cx.clone();
    let task = tokio::spawn(async move { (handler(cx, request).await, permit) });
    match tokio::time::timeout(HANDLER_TIMEOUT, task).await {
        Ok(Ok((result, permit))) => Ok((result?, Some(permit))),
        Ok(Err(panic)) => Err(ApiError::internal(&panic)),
        Err(_) => Err(too_slow()),
    }
}

/// Runs a handler that changes nothing in the current task. A client that disconnects cancels it.
async fn read(cx: &Cx, handler: &Handler, request: Request) -> Result<Reply, ApiError> {
    let begin = AssertUnwindSafe(|| AssertUnwindSafe(handler(cx.clone(), request)).catch_unwind());
    let Ok(mut answer) = std::panic::catch_unwind(begin) else { return Err(panicked()) };
    // Most handlers are ready at once, and a timer costs as much as they do.
    let answered = match poll!(&mut answer) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Box::pin(tokio::time::timeout(HANDLER_TIMEOUT, answer)).await,
    };
    match answered {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(too_slow()),
    }
}

/// Runs a handler with an effect in a task of its own, and records its failure.
async fn change(cx: &Cx, endpoint: &Endpoint, handler: Handler, request: Request) -> Result<Reply, ApiError> {
    let acts = matches!(endpoint.effect, Effect::Acts(_));
    let task_cx = cx.clone();
    let task = tokio::spawn(async move {
        let result = handler(task_cx.clone(), request).await;
        // Recorded here and not by the waiting side: a client that disconnects must not prevent the entry.
        match result {
            Err(error) => {
                task_cx.record_failure(&error).await;
                Err(error)
            }
            Ok(reply) => {
                task_cx.follow_dns().await?;
                let subject = reply.subject.clone();
                if acts {
                    task_cx.record_success(subject.as_deref()).await?;
                }
                Ok(reply)
            }
        }
    });
    match tokio::time::timeout(HANDLER_TIMEOUT, task).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => {
            let error = ApiError::internal(&panic);
            cx.record_failure(&error).await;
            Err(error)
        }
        Err(_) => Err(too_slow()),
    }
}

/// The panic hook has logged the message.
fn panicked() -> ApiError {
    ApiError::internal(&std::io::Error::other("a handler panicked"))
}

fn too_slow() -> ApiError {
    ApiError::new(
        Code::UpstreamTimeout,
        "The operation continues; the status and the audit log will show its result.",
    )
}

/// Runs all checks of a request that do not need its body.
fn check_access(
    cx: &Cx,
    endpoint: &Endpoint,
    parts: &Parts,
    refusal: Option<ApiError>,
) -> Result<(), ApiError> {
    if endpoint.method != Method::Get {
        browser::check_origin(parts)?;
    }
    authorise(&cx.actor, endpoint).map_err(|denied| match refusal {
        // The error of the credential is more precise than the missing credential.
        Some(refusal) if cx.actor.proof == Proof::None => refusal,
        _ => denied,
    })?;
    // An endpoint without authentication gives a session cookie no extra rights, so it needs no CSRF token.
    if let (Proof::Session(id), true) =
        (cx.actor.proof, endpoint.method != Method::Get && endpoint.access != Access::Open)
    {
        let session = cx.open().ok().and_then(|open| open.store.session(id));
        browser::check_csrf(parts, session.as_ref().map(|session| session.csrf.as_str()))?;
    }
    Ok(())
}

/// Builds the response to a reply, or 304 if the client has the current version.
fn respond(
    cx: &Cx,
    endpoint: &Endpoint,
    parts: &Parts,
    reply: Reply,
) -> Result<Response<HttpBody>, ApiError> {
    let mut headers = HeaderMap::with_capacity(16);
    if let Some(total) = reply.total {
        headers.insert(TOTAL_COUNT, HeaderValue::from(total));
    }
    if let Some(location) = &reply.location
        && let Ok(value) = HeaderValue::from_str(&format!("{API_ROOT}{location}"))
    {
        headers.insert(header::LOCATION, value);
    }
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(cookie) = reply.cookie {
        headers.insert(header::SET_COOKIE, cookie);
    }
    let (content_type, body) = match reply.content {
        Content::Data(_) | Content::Text(_) => {
            return Err(ApiError::internal(&std::io::Error::other("data without its bytes")));
        }
        Content::Json { bytes, digest } => {
            let tag = match &reply.etag {
                Some(tag) if reply.observed => format!("\"{tag}.{digest}\""),
                Some(tag) => format!("\"{tag}\""),
                None => conditional::weak_tag(&digest),
            };
            if (endpoint.method == Method::Get || reply.etag.is_some())
                && let Ok(value) = HeaderValue::from_str(&tag)
            {
                headers.insert(header::ETAG, value);
            }
            let known = conditional::header(&parts.headers, &header::IF_NONE_MATCH)?;
            if endpoint.method == Method::Get
                && known.is_some_and(|known| conditional::names_tag(&known, tag.trim_start_matches("W/")))
            {
                let mut response = Response::new(HttpBody::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                *response.headers_mut() = headers;
                return Ok(response);
            }
            ("application/json", HttpBody::from(bytes))
        }
        Content::File(file) => return pages::response(file, reply.status, &parts.headers),
        Content::OpenApi => {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
            let bytes = match Coding::choose(&parts.headers, |_| true) {
                Coding::Gzip => {
                    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.name()));
                    openapi::COMPRESSED.into()
                }
                Coding::Identity => cx.api.openapi(),
            };
            ("application/json", HttpBody::from(bytes))
        }
        Content::Bytes { content_type, bytes } => (content_type, HttpBody::from(bytes)),
        Content::Stream { content_type, body } => (content_type, while_known(cx.clone(), body)),
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Ends a streamed response when its caller is signed out, deleted or given another role.
fn while_known(cx: Cx, body: HttpBody) -> HttpBody {
    let frames = body
        .into_data_stream()
        .take_while(move |_| futures_util::future::ready(cx.api.auth.holds(&cx.api.gateway, &cx.actor)));
    HttpBody::from_stream(frames)
}

fn limit_headers(headers: &mut HeaderMap, quota: Quota) {
    let Quota { limit, remaining, reset } = quota;
    for (name, value) in
        [("ratelimit-limit", limit), ("ratelimit-remaining", remaining), ("ratelimit-reset", reset)]
    {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
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

/// Adds the headers that every response has. A page has a policy of its own.
fn finish(headers: &mut HeaderMap, request_id: &str) {
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, value);
    }
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Builds the response to HEAD: the headers of the GET, including its length, without a body.
fn without_body(response: Response<HttpBody>) -> Response<HttpBody> {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = axum::body::HttpBody::size_hint(&body).exact()
        && parts.status != StatusCode::NOT_MODIFIED
    {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, HttpBody::empty())
}

/// Returns the request id of the client if it is harmless, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let harmless = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(harmless)
        .map_or_else(request_id::new, str::to_owned)
}

/// Parses the query. Rejects parameters that the endpoint does not read; they are probably typos.
fn read_query(api: &Api, endpoint: &Endpoint, parts: &Parts) -> Result<Query, ApiError> {
    if endpoint.output.is_page() {
        return Ok(Query::default());
    }
    let query = Query::parse(parts.uri.query())?;
    let is_declared = |name: &str| endpoint.parameter_names().any(|parameter| parameter == name);
    for (name, _) in query.0.iter().filter(|(name, _)| !is_declared(name)) {
        let fields = api.filter_names(endpoint);
        if !fields.contains(name) {
            let mut allowed: Vec<&str> = endpoint.parameter_names().collect();
            allowed.extend(fields.iter().map(String::as_str).filter(|name| !is_declared(name)));
            return Err(ApiError::invalid_parameter(
                name,
                format!("This endpoint has no query parameter {name:?}."),
            )
            .detail("allowed", allowed));
        }
    }
    Ok(query)
}

/// Checks that the caller may use the endpoint.
fn authorise(actor: &Actor, endpoint: &Endpoint) -> Result<(), ApiError> {
    check(actor, endpoint.access).map_err(|denied| {
        denied.detail("method", endpoint.method.as_str()).detail("path", endpoint.full_path())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Settings;
    use crate::endpoints;
    use crate::gateway::Gateway;

    /// The future of each request is allocated and moved.
    #[tokio::test]
    async fn the_future_of_a_request_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::detached(folder.path()).unwrap();
        let api = Api::new(endpoints::table(), gateway, Settings::default()).unwrap();
        let future = answer(api, http::Request::new(HttpBody::empty()), None);
        let size = size_of_val(&future);
        future.await;
        assert!(size <= 2304, "{size} bytes");
    }
}
