//! A session with a coordinator: HTTP/2 inside the encrypted channel, with registration and the stream of maps.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::VERSION;
use super::error::ClientError;
use super::upgrade::{get, read, upgrade};
use crate::keys::{KeyPair, MachineKey};
use crate::map_frame::MapReader;
use crate::noise::{self, RESPONSE_BYTES};
use crate::noise_stream::NoiseStream;
use crate::wire::{ControlKeys, MapRequest, MapResponse, RegisterRequest, RegisterResponse};

const PROTOCOL: &str = "tailscale-control-protocol";
const HANDSHAKE_HEADER: HeaderName = HeaderName::from_static("x-tailscale-handshake");
const HANDSHAKE_TIME: Duration = Duration::from_secs(20);
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Coordinators send something at least each minute.
const SILENCE: Duration = Duration::from_secs(130);
const PING: Duration = Duration::from_secs(30);
/// Announces a message before HTTP/2 begins. With its length it is as long as the header of a frame.
const EARLY_MAGIC: &[u8; 5] = b"\xff\xff\xffTS";
const EARLY_HEADER: usize = 9;
const LONGEST_EARLY: u32 = 64 << 10;

/// Returns the key of a coordinator. It is to be pinned: a later session is with the owner of this key alone.
pub async fn fetch_key<S>(socket: S, host: &str) -> Result<MachineKey, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let body = get(socket, host, &format!("/key?v={VERSION}")).await?;
    let keys: Result<ControlKeys, _> = serde_json::from_slice(&body);
    let key =
        keys.map_err(|_| ClientError::Protocol("its answer has no key: it is no coordinator"))?.public_key;
    if key.is_zero() { Err(ClientError::Protocol("the coordinator has no key")) } else { Ok(key) }
}

/// A session with a coordinator. It ends when it is dropped.
#[derive(Debug)]
pub struct ControlSession {
    sender: http2::SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
    host: String,
}

impl Drop for ControlSession {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl ControlSession {
    /// Begins a session of a machine with the coordinator that owns this key.
    pub async fn open<S>(
        socket: S,
        host: &str,
        machine: &KeyPair,
        coordinator: MachineKey,
    ) -> Result<ControlSession, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (message, initiator) = noise::initiate(machine, coordinator, VERSION)?;
        let value = HeaderValue::try_from(BASE64_STANDARD.encode(message));
        let value = value.map_err(|_| ClientError::Protocol("the first message has no text"))?;
        let header = Some((HANDSHAKE_HEADER, value));
        let mut socket = upgrade(socket, host, (Method::POST, "/ts2021"), PROTOCOL, header).await?;
        let handshake = async {
            let mut response = [0; RESPONSE_BYTES];
            socket.read_exact(&mut response).await?;
            let (sealer, opener) = initiator.finish(&response)?;
            let mut stream = NoiseStream::new(socket, sealer, opener);
            skip_early(&mut stream).await?;
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
            Ok::<_, ClientError>(builder.handshake(TokioIo::new(stream)).await?)
        };
        let (sender, connection) =
            timeout(HANDSHAKE_TIME, handshake).await.map_err(|_| ClientError::Timeout)??;
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("session with the coordinator: {error}");
            }
        });
        Ok(ControlSession { sender, connection, host: host.to_owned() })
    }

    /// Registers a node. The answer can be a refusal.
    pub async fn register(&self, request: &RegisterRequest) -> Result<RegisterResponse, ClientError> {
        let response = self.post("/machine/register", request).await?;
        let body = read(response.into_body()).await?;
        serde_json::from_slice(&body)
            .map_err(|_| ClientError::Protocol("its answer to a registration is invalid"))
    }

    /// Says how the node is reached.
    pub async fn update(&self, request: &MapRequest) -> Result<(), ClientError> {
        let response = self.post("/machine/map", request).await?;
        read(response.into_body()).await.map(drop)
    }

    /// Begins the stream of maps.
    pub async fn follow(&self, request: &MapRequest) -> Result<MapStream, ClientError> {
        let response = self.post("/machine/map", request).await?;
        Ok(MapStream { body: response.into_body(), reader: MapReader::default() })
    }

    async fn post(&self, path: &str, content: &impl Serialize) -> Result<Response<Incoming>, ClientError> {
        let content =
            serde_json::to_vec(content).map_err(|_| ClientError::Protocol("the request has no JSON text"))?;
        let request = Request::post(format!("https://{}{path}", self.host))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(Full::from(content))
            .map_err(|_| ClientError::Protocol("the host is not valid"))?;
        let mut sender = self.sender.clone();
        let response = timeout(REQUEST_TIME, sender.send_request(request)).await;
        let response = response.map_err(|_| ClientError::Timeout)??;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(ClientError::refused(status, &read(response.into_body()).await?))
    }
}

/// Reads the message that coordinators may send before HTTP/2 begins. It has nothing of use.
async fn skip_early<S>(stream: &mut NoiseStream<S>) -> Result<(), ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut header = [0; EARLY_HEADER];
    stream.read_exact(&mut header).await?;
    let Some(length) = header.strip_prefix(EARLY_MAGIC).and_then(|length| length.try_into().ok()) else {
        stream.unread(&header);
        return Ok(());
    };
    let length = u32::from_be_bytes(length);
    if length > LONGEST_EARLY {
        return Err(ClientError::Protocol("the message before HTTP/2 is too long"));
    }
    let mut message = vec![0; usize::try_from(length).unwrap_or_default()];
    stream.read_exact(&mut message).await?;
    Ok(())
}

/// Stream of maps.
#[derive(Debug)]
pub struct MapStream {
    body: Incoming,
    reader: MapReader,
}

impl MapStream {
    /// Waits for the next message; none at the end of the stream. To be cancelled at any time.
    pub async fn next(&mut self) -> Result<Option<MapResponse>, ClientError> {
        loop {
            if let Some(message) = self.reader.next_message()? {
                return Ok(Some(message));
            }
            let frame = timeout(SILENCE, self.body.frame()).await.map_err(|_| ClientError::Timeout)?;
            let Some(frame) = frame.transpose()? else { return Ok(None) };
            if let Ok(bytes) = frame.into_data() {
                self.reader.receive(&bytes);
            }
        }
    }
}
