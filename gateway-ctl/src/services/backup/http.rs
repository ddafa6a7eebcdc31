//! HTTP to a target: one connection for each request, over the gateway's own TLS, without proxies and redirects. A pool
//! of connections would keep TLS configurations of an earlier mode.

use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use gateway_model::settings::groups::BackupTarget;
use gateway_outbound::causes::with_causes;
use gateway_outbound::http::{self, Limits, Step};
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::error::{Error, shortened};
use crate::tls::{Client, Factory};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of lists and error pages, in bytes.
const LIST_MOST: usize = 8 << 20;

/// HTTP client of a target.
pub(super) struct Transport {
    tls: Client,
    endpoint_names: Resolver,
    /// Maximum length of a response, in bytes.
    most: usize,
}

impl Transport {
    /// Creates the client without sending anything. `largest` is the maximum length of the files.
    pub(super) fn new(
        config: &BackupTarget,
        tls: &Arc<Factory>,
        endpoint_names: &Resolver,
        largest: usize,
    ) -> Result<Transport, Error> {
        let mut client = tls.client("backup");
        if !config.ca_certificate.is_empty() {
            let authorities: Result<Vec<_>, _> =
                CertificateDer::pem_slice_iter(config.ca_certificate.as_bytes()).collect();
            match authorities {
                Ok(authorities) if !authorities.is_empty() => client = client.with_authorities(authorities),
                Ok(_) | Err(_) => {
                    return Err(Error::Setup("ca_certificate holds no certificate in PEM".to_owned()));
                }
            }
        }
        Ok(Transport { tls: client, endpoint_names: endpoint_names.clone(), most: largest.max(LIST_MOST) })
    }

    /// Sends a request. Returns the body of a successful response, and an error for any other.
    pub(super) async fn accepted(&self, request: Request<Bytes>) -> Result<Bytes, Error> {
        let (parts, body) = self.answer(request).await?.into_parts();
        refusal(parts.status, &body).map_or(Ok(body), Err)
    }

    /// Sends a request and returns the response, whatever its status.
    pub(super) async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let dialer = Dialer::by_default_route(&KernelSockets::PATIENT, &self.endpoint_names, CONNECT_TIMEOUT);
        let limits = Limits {
            tls_timeout: CONNECT_TIMEOUT,
            // Each operation of the target has its own deadline.
            head_timeout: Duration::MAX,
            piece_timeout: Duration::MAX,
            body_bytes: self.most as u64,
            redirects: 0,
        };
        let client = http::Client { dialer, tls: &self.tls, limits };
        let (parts, body) = client.send(request).await?.into_parts();
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

/// Returns the error for a status; `None` for a successful one.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> Option<Error> {
    match status {
        status if status.is_success() => None,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(Error::Refused(format!(" ({status})"))),
        StatusCode::INSUFFICIENT_STORAGE | StatusCode::PAYLOAD_TOO_LARGE => Some(Error::Full),
        status if status.is_redirection() => {
            let what = format!("the server sends to another address ({status}): set that one");
            Some(Error::Unreachable(what))
        }
        // Object stores return an error code in XML, which alone identifies the error.
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
