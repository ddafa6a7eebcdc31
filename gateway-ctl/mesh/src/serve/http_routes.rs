//! HTTP of the coordinator: its key, and the upgrades to a control session and to the relay.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::control::{self, Body, json, text};
use super::relay;
use crate::coordinator::Coordinator;
use crate::keys::{MachineKey, hex};
use crate::noise::{self, INITIATION_BYTES};
use crate::wire::ControlKeys;

const CONTROL_UPGRADE: &str = "tailscale-control-protocol";
const RELAY_UPGRADE: &str = "derp";
const HANDSHAKE_HEADER: &str = "x-tailscale-handshake";
const HEADER_TIME: Duration = Duration::from_secs(15);
/// Bytes of headers that are kept.
const MOST_HEADER_BYTES: usize = 16 << 10;

/// Serves a connection of a client, over TLS or not, until it ends or becomes something else.
pub async fn serve_connection<S>(coordinator: Arc<Coordinator>, from: IpAddr, socket: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Sessions go on within this connection, so that its end and its limits are theirs.
    let (upgrades, mut upgraded) = tokio::sync::mpsc::channel(1);
    let service = service_fn(move |request| {
        let (coordinator, upgrades) = (Arc::clone(&coordinator), upgrades.clone());
        async move { Ok::<_, Infallible>(answer(coordinator, from, request, &upgrades)) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(MOST_HEADER_BYTES);
    let served = server.serve_connection(TokioIo::new(socket), service).with_upgrades().await;
    if let Err(error) = served {
        tracing::debug!(%from, "HTTP of the mesh: {error}");
    }
    if let Some(session) = upgraded.recv().await {
        Box::into_pin(session).await;
    }
}

type SessionFuture = Box<dyn Future<Output = ()> + Send>;

fn answer(
    coordinator: Arc<Coordinator>,
    from: IpAddr,
    request: Request<Incoming>,
    upgrades: &tokio::sync::mpsc::Sender<SessionFuture>,
) -> Response<Body> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/key") => json(&ControlKeys {
            legacy_public_key: MachineKey::default(),
            public_key: MachineKey(coordinator.identity().public()),
        }),
        (&Method::POST, "/ts2021") => control_session(coordinator, from, request, upgrades),
        (&Method::GET, "/derp") => relay_session(coordinator, from, request, upgrades),
        (&Method::GET | &Method::HEAD, "/derp/probe" | "/derp/latency-check") => text(StatusCode::OK, ""),
        (&Method::GET | &Method::HEAD, "/generate_204") => text(StatusCode::NO_CONTENT, ""),
        _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

fn control_session(
    coordinator: Arc<Coordinator>,
    from: IpAddr,
    mut request: Request<Incoming>,
    upgrades: &tokio::sync::mpsc::Sender<SessionFuture>,
) -> Response<Body> {
    if !asks_for(&request, CONTROL_UPGRADE) {
        return text(StatusCode::BAD_REQUEST, "the upgrade must be tailscale-control-protocol");
    }
    let message = request.headers().get(HANDSHAKE_HEADER).and_then(|value| decode(value.as_bytes()));
    let Some(message) = message else {
        return text(StatusCode::BAD_REQUEST, "the header X-Tailscale-Handshake has no first message");
    };
    let (response, session) = match noise::answer(coordinator.identity(), &message) {
        Ok(answer) => answer,
        Err(error) => return text(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let future = async move {
        let Ok(socket) = upgrade.await else { return };
        let mut socket = TokioIo::new(socket);
        if socket.write_all(&response).await.is_ok() {
            control::serve(coordinator, from, session, socket).await;
        }
    };
    switch_protocols(CONTROL_UPGRADE, Box::new(future), upgrades)
}

fn relay_session(
    coordinator: Arc<Coordinator>,
    from: IpAddr,
    mut request: Request<Incoming>,
    upgrades: &tokio::sync::mpsc::Sender<SessionFuture>,
) -> Response<Body> {
    if !asks_for(&request, RELAY_UPGRADE) {
        return text(StatusCode::UPGRADE_REQUIRED, "the relay needs the upgrade DERP");
    }
    let Some(relay) = coordinator.relay_identity().cloned() else {
        return text(StatusCode::NOT_FOUND, "this coordinator has no relay");
    };
    let key = hex(&relay.public());
    let upgrade = hyper::upgrade::on(&mut request);
    let future = async move {
        let Ok(socket) = upgrade.await else { return };
        relay::serve(coordinator, relay, from, TokioIo::new(socket)).await;
    };
    let mut response = switch_protocols("DERP", Box::new(future), upgrades);
    response.headers_mut().insert("derp-version", HeaderValue::from_static("2"));
    if let Ok(key) = HeaderValue::from_str(&key) {
        response.headers_mut().insert("derp-public-key", key);
    }
    response
}

fn asks_for(request: &Request<Incoming>, protocol: &str) -> bool {
    let value = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.eq_ignore_ascii_case(protocol))
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    // The longest text of a first message.
    if text.len() > INITIATION_BYTES * 2 {
        return None;
    }
    BASE64_STANDARD.decode(text).ok()
}

fn switch_protocols(
    protocol: &'static str,
    session: SessionFuture,
    upgrades: &tokio::sync::mpsc::Sender<SessionFuture>,
) -> Response<Body> {
    if upgrades.try_send(session).is_err() {
        return text(StatusCode::BAD_REQUEST, "the connection has been upgraded already");
    }
    let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "");
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(protocol));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}
