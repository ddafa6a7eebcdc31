//! HTTP to a target: one connection for each request, over the gateway's own TLS, without proxies and redirections.
//!
//! What went wrong is kept aside in words, since the library above wraps errors in details that people need not see.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::{Request, Response, StatusCode, header};
use bytes::Bytes;
use gateway_outbound::causes::with_causes;
use gateway_outbound::http::{self, Limits, Step};
use gateway_outbound::{Dialer, Egress, KernelSockets, Resolver, Targets};
use opendal::{Buffer, ErrorKind, HttpBody, HttpTransport};

use super::target::{Error, shortened};
use crate::tls::Client;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Lists and error pages are not longer.
const LIST_MOST: usize = 8 << 20;

/// Sends requests for a target.
#[derive(Clone)]
pub(super) struct Transport {
    tls: Client,
    endpoint_names: Resolver,
    /// No answer may be longer.
    most: usize,
    told: Arc<Mutex<Option<Error>>>,
}

impl Transport {
    /// `largest` is how long the files are at most.
    pub fn new(tls: Client, endpoint_names: Resolver, largest: usize) -> Transport {
        Transport { tls, endpoint_names, most: largest.max(LIST_MOST), told: Arc::default() }
    }

    /// What the last request failed of, in words.
    pub fn told(&self) -> Option<Error> {
        self.lock().take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Buffer>) -> Result<Response<Bytes>, Error> {
        let dialer = Dialer {
            sockets: &KernelSockets::PATIENT,
            names: &self.endpoint_names,
            egress: &Egress::DEFAULT,
            targets: Targets::Any,
            timeout: CONNECT_TIMEOUT,
        };
        let limits = Limits {
            tls_timeout: CONNECT_TIMEOUT,
            // Each operation of the target has a deadline of its own.
            head_timeout: Duration::MAX,
            piece_timeout: Duration::MAX,
            body_bytes: self.most as u64,
            redirects: 0,
        };
        let client = http::Client { dialer, tls: &self.tls, limits };
        let (parts, body) = client.send(request.map(|body| body.to_bytes())).await?.into_parts();
        Ok(Response::from_parts(parts, body.collect().await?))
    }
}

impl From<http::Error> for Error {
    fn from(error: http::Error) -> Error {
        let late = |doing| Error::Timeout { doing, within: CONNECT_TIMEOUT };
        match error {
            http::Error::Timeout(Step::Connect) => late("connecting"),
            http::Error::Timeout(Step::Tls) => late("agreeing on TLS"),
            http::Error::Timeout(Step::Reply) => late("waiting for the answer"),
            http::Error::TooLong(_) => Error::failed("reading the answer", "it is longer than it may be"),
            error => Error::Unreachable(shortened(&with_causes(&error))),
        }
    }
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
