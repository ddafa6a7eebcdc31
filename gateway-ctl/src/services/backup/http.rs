//! HTTP to a target: one connection for each request, over the gateway's own TLS, without proxies and redirections.
//!
//! What went wrong is kept aside in words, since the library above wraps errors in details that people need not see.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opendal::{Buffer, ErrorKind, HttpBody, HttpTransport};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::target::{Error, shortened};
use crate::tls::Client;

const CONNECT: Duration = Duration::from_secs(10);
/// Lists and error pages are not longer.
const LIST_MOST: usize = 8 << 20;

/// Sends requests for a target.
#[derive(Clone)]
pub(super) struct Transport {
    tls: Client,
    /// No answer may be longer.
    most: usize,
    told: Arc<Mutex<Option<Error>>>,
}

impl Transport {
    /// `largest` is how long the files are at most.
    pub fn new(tls: Client, largest: usize) -> Transport {
        Transport { tls: tls.speaking(&[b"http/1.1"]), most: largest.max(LIST_MOST), told: Arc::default() }
    }

    /// What the last request failed of, in words.
    pub fn told(&self) -> Option<Error> {
        self.lock().take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Buffer>) -> Result<Response<Bytes>, Error> {
        let (mut parts, body) = request.into_parts();
        let uri = parts.uri.clone();
        let unreachable = |what: String| Error::Unreachable(shortened(&what));
        let host = uri.host().ok_or_else(|| unreachable("the address has no host".to_owned()))?;
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        // Literal addresses of IPv6 stand in brackets.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let stream = match tokio::time::timeout(CONNECT, TcpStream::connect((bare, port))).await {
            Ok(stream) => stream.map_err(|error| unreachable(error.to_string()))?,
            Err(_) => return Err(Error::Timeout { doing: "connecting", within: CONNECT }),
        };
        let given = uri.authority().map(|authority| HeaderValue::from_str(authority.as_str()));
        if let Some(Ok(given)) = given {
            parts.headers.entry(header::HOST).or_insert(given);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse::<Uri>().map_err(|error| unreachable(error.to_string()))?;
        let request = Request::from_parts(parts, Full::new(body.to_bytes()));
        if !secure {
            return self.exchange(stream, request).await;
        }
        let name = ServerName::try_from(bare.to_owned()).map_err(|error| unreachable(error.to_string()))?;
        match tokio::time::timeout(CONNECT, self.tls.connect(name, stream)).await {
            Ok(Ok(session)) => self.exchange(session, request).await,
            Ok(Err(error)) => Err(unreachable(in_full(&error))),
            Err(_) => Err(Error::Timeout { doing: "agreeing on TLS", within: CONNECT }),
        }
    }

    /// One request and the whole answer. When this is dropped, so is the connection.
    async fn exchange<IO>(&self, io: IO, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Error>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let broken = |error: hyper::Error| Error::Unreachable(shortened(&in_full(&error)));
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        let most = self.most;
        let answer = async move {
            let (parts, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
            let body = Limited::new(body, most).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    Error::failed("reading the answer", "it is longer than it may be")
                } else {
                    Error::Unreachable(shortened(&error.to_string()))
                }
            })?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        tokio::pin!(connection, answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // The connection is at its end and everything was read from it, or it broke.
            ended = &mut connection => match ended {
                Ok(()) => answer.await,
                Err(error) => Err(broken(error)),
            },
        }
    }
}

/// An error with its causes, which often say more than itself; what is said already is not repeated.
fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

/// What an answer with this status means; nothing if it is a good one.
fn refusal(status: StatusCode, body: &[u8]) -> Option<Error> {
    match status {
        status if status.is_success() => None,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(Error::Refused(format!(" ({status})"))),
        StatusCode::INSUFFICIENT_STORAGE | StatusCode::PAYLOAD_TOO_LARGE => Some(Error::Full),
        status if status.is_redirection() => {
            let what = format!("the server sends to another address ({status}): set that one");
            Some(Error::Unreachable(what))
        }
        // Object stores answer with a code in XML, which is the only thing that tells.
        status => {
            let text = String::from_utf8_lossy(body);
            let between = |tag: &str| {
                let (_, rest) = text.split_once(&format!("<{tag}>"))?;
                Some(rest.split_once(&format!("</{tag}>"))?.0.to_owned())
            };
            let what = match between("Code") {
                Some(code) => format!("{status}, {code}"),
                None => status.to_string(),
            };
            Some(Error::Unreachable(format!("the server answered {}", shortened(&what))))
        }
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let (parts, body) = match self.answer(request).await {
            Ok(answer) => answer.into_parts(),
            Err(error) => {
                let text = error.to_string();
                *self.lock() = Some(error);
                return Err(opendal::Error::new(ErrorKind::Unexpected, text));
            }
        };
        *self.lock() = refusal(parts.status, &body);
        let length = body.len() as u64;
        let stream = futures_util::stream::iter([Ok(Buffer::from(body))]);
        // A HEAD has a length and no body.
        let length = (parts.headers.get(header::CONTENT_LENGTH).is_some() && length > 0).then_some(length);
        Ok(Response::from_parts(parts, HttpBody::new(stream, length)))
    }
}
