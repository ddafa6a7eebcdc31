//! HTTP client of the filter backend. Each request uses its own connection, because requests are rare.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use gateway_outbound::Dialer;
use gateway_outbound::http::{self, Limits};
use serde_json::Value;
use tokio::time::timeout;
use url::{Position, Url};

use super::error::Error;
use crate::upstream::Context;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REPLY_BYTES: u64 = 1 << 20;
const SESSION: &str = "x-ftl-sid";

pub(super) struct Client {
    base: Url,
    context: Arc<Context>,
}

/// HTTP status and JSON body. The body is null if it is not JSON.
pub(super) type Answer = (StatusCode, Value);

impl Client {
    pub(super) fn new(url: &str, context: Arc<Context>) -> Result<Client, Error> {
        let base = Url::parse(url).map_err(|_| Error::Url)?;
        let plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() || !plain {
            return Err(Error::Url);
        }
        Ok(Client { base, context })
    }

    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        session: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, Error> {
        let (origin, root) = (&self.base[..Position::AfterPort], self.base.path().trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(format!("{origin}{root}/api/{path}"));
        request = request.header(ACCEPT, "application/json");
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(session) = session {
            let mut value = HeaderValue::from_str(session).map_err(|_| Error::Malformed)?;
            value.set_sensitive(true);
            request = request.header(SESSION, value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Bytes::from(body)).map_err(|_| Error::Url)?;
        timeout(REQUEST_TIMEOUT, self.exchange(request)).await.unwrap_or(Err(Error::Timeout))
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Answer, Error> {
        let dialer =
            Dialer::by_default_route(self.context.sockets.as_ref(), &self.context.names, REQUEST_TIMEOUT);
        let limits = Limits::within(REQUEST_TIMEOUT, MAX_REPLY_BYTES);
        let client = http::Client { dialer, tls: self.context.tls.as_ref(), limits };
        let response = client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }
}

impl From<http::Error> for Error {
    fn from(error: http::Error) -> Error {
        match error {
            http::Error::Url => Error::Url,
            http::Error::Timeout(_) => Error::Timeout,
            error => Error::Unreachable(error.to_string()),
        }
    }
}
