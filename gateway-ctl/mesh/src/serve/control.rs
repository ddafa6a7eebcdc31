//! A control session: HTTP/2 inside the encrypted channel, with registration and the stream of maps.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::coordinator::{Connection, Coordinator, Next};
use crate::keys::{ChallengeKey, KeyPair, MachineKey};
use crate::map_frame::map_frame;
use crate::noise::Session;
use crate::noise_stream::NoiseStream;
use crate::wire::{MapRequest, MapResponse, RegisterRequest};

/// Bytes of a request.
const LONGEST_REQUEST: usize = 256 << 10;
const REQUEST_TIME: Duration = Duration::from_secs(20);
/// Requests of one session at a time.
const MOST_REQUESTS: u32 = 16;
/// Clients give a silent stream up after 120 s.
const KEEP_ALIVE: Duration = Duration::from_secs(50);
const PING: Duration = Duration::from_secs(30);
/// Announces a message before HTTP/2 begins.
const EARLY_MAGIC: &[u8] = b"\xff\xff\xffTS";

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Early {
    node_key_challenge: ChallengeKey,
}

/// Serves a session until it ends.
pub(super) async fn serve<S>(coordinator: Arc<Coordinator>, from: IpAddr, session: Session, socket: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Session { machine, sealer, opener, .. } = session;
    let mut stream = NoiseStream::new(socket, sealer, opener);
    let Ok(challenge) = KeyPair::random() else { return };
    if let Err(error) = challenge_client(&mut stream, ChallengeKey(challenge.public())).await {
        tracing::debug!(%from, "control session: {error}");
        return;
    }
    let service = service_fn(move |request| {
        let coordinator = Arc::clone(&coordinator);
        async move { Ok::<_, Infallible>(answer(&coordinator, machine, from, request).await) }
    });
    let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    server
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_REQUESTS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%from, "control session: {error}");
    }
}

/// Sends the message that some clients expect before HTTP/2 begins.
async fn challenge_client<S>(stream: &mut NoiseStream<S>, key: ChallengeKey) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let text = serde_json::to_vec(&Early { node_key_challenge: key })?;
    let length = u32::try_from(text.len()).unwrap_or_default().to_be_bytes();
    stream.write_all(&[EARLY_MAGIC, &length, &text].concat()).await?;
    stream.flush().await
}

async fn answer(
    coordinator: &Arc<Coordinator>,
    machine: MachineKey,
    from: IpAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    match (&head.method, head.uri.path()) {
        (&Method::POST, "/machine/register") => match read::<RegisterRequest>(body).await {
            Ok(request) => json(&coordinator.register(machine, from, &request)),
            Err(refused) => refused,
        },
        (&Method::POST, "/machine/map") => match read::<MapRequest>(body).await {
            Ok(request) => map(coordinator, machine, request),
            Err(refused) => refused,
        },
        _ => text(StatusCode::NOT_FOUND, "this coordinator has no such function"),
    }
}

async fn read<T: DeserializeOwned>(body: Incoming) -> Result<T, Response<Body>> {
    let body = timeout(REQUEST_TIME, Limited::new(body, LONGEST_REQUEST).collect()).await;
    let body = body.map_err(|_| text(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"))?;
    let body = body.map_err(|error| text(StatusCode::PAYLOAD_TOO_LARGE, &error.to_string()))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| {
        // Its text can quote the request, which can have a key.
        let place = format!("the request is invalid at line {}, column {}", error.line(), error.column());
        tracing::debug!("control session: {place}");
        text(StatusCode::BAD_REQUEST, &place)
    })
}

fn map(coordinator: &Arc<Coordinator>, machine: MachineKey, request: MapRequest) -> Response<Body> {
    let zstd = request.compress == "zstd";
    if !request.stream && request.omit_peers {
        return match coordinator.update(machine, &request) {
            Ok(true) => text(StatusCode::OK, ""),
            Ok(false) => no_node(),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        };
    }
    let follows = request.stream;
    let connection = match coordinator.connect(machine, request) {
        Ok(Some(connection)) => connection,
        Ok(None) => return no_node(),
        Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    };
    let messages = stream::unfold(connection, move |mut connection| async move {
        let message = next_message(&mut connection).await?;
        let bytes = map_frame(&message, zstd).ok()?;
        Some((Ok(Frame::data(Bytes::from(bytes))), connection))
    });
    let messages = messages.take(if follows { usize::MAX } else { 1 });
    Response::new(StreamBody::new(messages).boxed_unsync())
}

/// Waits for the next message of a stream.
async fn next_message(connection: &mut Connection) -> Option<MapResponse> {
    loop {
        match connection.next() {
            Next::Message(message) => return Some(*message),
            Next::End => return None,
            Next::Unchanged => {}
        }
        if timeout(KEEP_ALIVE, connection.changed()).await.is_err() {
            return Some(MapResponse { keep_alive: true, ..MapResponse::default() });
        }
    }
}

fn no_node() -> Response<Body> {
    text(StatusCode::UNAUTHORIZED, "this machine has no such node")
}

pub(super) fn json(content: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(content) {
        Ok(content) => {
            let mut response = Response::new(Full::new(content.into()).boxed_unsync());
            let value = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, value);
            response
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

pub(super) fn text(status: StatusCode, content: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(content.to_owned())).boxed_unsync());
    *response.status_mut() = status;
    response
}
