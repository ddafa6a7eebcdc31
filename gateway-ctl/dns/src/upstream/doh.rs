//! Queries over HTTPS (RFC 8484): HTTP/2, one connection, POST, so that no URL contains a query.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use super::error::Error;
use super::message::{ReplyHeader, Verdict, check_reply};
use super::stall::StallDetector;
use crate::hooks::{Server, ServerAddress};

const MEDIA_TYPE: &str = "application/dns-message";
const MAX_MESSAGE_BYTES: usize = 65_535;
/// Interval of pings on a connection in use; `PONG` is the timeout for the reply.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(3);
/// Idle time after which a connection closes: no answer takes that long.
const IDLE: Duration = Duration::from_secs(30);
const PLAIN_PORT: u16 = 443;

#[derive(Clone, Debug)]
pub(super) struct Requests {
    sender: SendRequest<Full<Bytes>>,
    to: Uri,
    /// Activity of the connection; one for each connection.
    life: Arc<ConnectionActivity>,
}

#[derive(Debug)]
struct ConnectionActivity {
    stall: StallDetector,
    /// Time of the last query.
    last: Mutex<Instant>,
}

impl Requests {
    /// Starts HTTP/2 over a connection that negotiated `h2`.
    pub(super) async fn over<S>(stream: S, server: &Server) -> Result<Requests, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let to = address(server)?;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            // An unused connection sends no pings.
            .keep_alive_while_idle(false)
            .max_header_list_size(16 << 10);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(reply)?;
        let life = Arc::new(ConnectionActivity {
            stall: StallDetector::default(),
            last: Mutex::new(Instant::now()),
        });
        let of = Arc::downgrade(&life);
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection to an upstream ended");
                    }
                }
                () = unused(of) => {}
            }
        });
        Ok(Requests { sender, to, life })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.life.stall.has_stopped() && !self.sender.is_closed()
    }

    pub(super) fn is(&self, other: &Requests) -> bool {
        Arc::ptr_eq(&self.life, &other.life)
    }

    pub(super) async fn send_query(&self, mut message: Vec<u8>) -> Result<(Vec<u8>, ReplyHeader), Error> {
        // RFC 8484, section 4.1: the same query is the same request.
        message[..2].fill(0);
        *self.life.last.lock() = Instant::now();
        let _waiting = self.life.stall.wait();
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.to.clone())
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .header(ACCEPT, MEDIA_TYPE)
            .body(Full::new(Bytes::copy_from_slice(&message)))
            .map_err(|error| Error::Http(error.to_string().into()))?;
        let mut sender = self.sender.clone();
        sender.ready().await.map_err(closed)?;
        let response = sender.send_request(request).await.map_err(closed)?;
        if response.status() != StatusCode::OK {
            return Err(Error::Http(format!("status {}", response.status().as_u16()).into()));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or("").trim();
        if !kind.eq_ignore_ascii_case(MEDIA_TYPE) {
            return Err(Error::Http("the answer is no DNS message".into()));
        }
        let body = Limited::new(response.into_body(), MAX_MESSAGE_BYTES).collect().await;
        let body = body.map_err(|error| Error::Http(error.to_string().into()))?.to_bytes();
        match check_reply(&body, &message) {
            Verdict::Fits(head) => {
                self.life.stall.answered();
                Ok((body.to_vec(), head))
            }
            Verdict::Stranger | Verdict::OtherCase | Verdict::Broken => Err(Error::Broken),
        }
    }
}

/// Waits until the connection has been idle too long.
async fn unused(life: Weak<ConnectionActivity>) {
    loop {
        let Some(last) = life.upgrade().map(|life| *life.last.lock()) else {
            // A query that waits for an answer holds a reference, so no query waits here.
            return;
        };
        if last.elapsed() >= IDLE {
            return;
        }
        sleep_until(last + IDLE).await;
    }
}

/// Returns `https://name/path`, with the port only if it is not the default.
fn address(server: &Server) -> Result<Uri, Error> {
    let host = server.certificate.as_deref().unwrap_or_default();
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let port = match &server.place {
        ServerAddress::Address(address) => address.port(),
        ServerAddress::Name(_, port) => *port,
    };
    let port = if port == PLAIN_PORT { String::new() } else { format!(":{port}") };
    let text = format!("https://{host}{port}{}", server.path);
    text.parse().map_err(|_| Error::Http(format!("{text} is no address").into()))
}

fn reply(error: hyper::Error) -> Error {
    Error::Http(error.to_string().into())
}

/// Converts an error. A request that never reached the remote end may be sent again.
fn closed(error: hyper::Error) -> Error {
    if error.is_closed() || error.is_canceled() || goes_away(&error) { Error::Closed } else { reply(error) }
}

/// Reports whether the remote end announced that it closes the HTTP/2 connection.
fn goes_away(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let text = error.to_string();
        if text.contains("GOAWAY") || text.contains("go away") {
            return true;
        }
        source = error.source();
    }
    false
}
