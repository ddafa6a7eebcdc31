//! One HTTP request to the backend at a time, each over a connection of its own: there are few.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::error::Error;
use crate::upstream::Context;

const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: usize = 1 << 20;
const SESSION: &str = "x-ftl-sid";

pub struct Client {
    base: Url,
    context: Arc<Context>,
}

/// Status and body; the body is null if it is no JSON.
pub type Answer = (StatusCode, Value);

impl Client {
    pub fn new(url: &str, context: Arc<Context>) -> Result<Client, Error> {
        let base = Url::parse(url).map_err(|_| Error::Url)?;
        let plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() || !plain {
            return Err(Error::Url);
        }
        Ok(Client { base, context })
    }

    pub async fn request(
        &self,
        method: Method,
        path: &str,
        session: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, Error> {
        let path = format!("{}/api/{path}", self.base.path().trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.host());
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
        let request = request.body(Full::new(Bytes::from(body))).map_err(|_| Error::Url)?;
        timeout(PATIENCE, self.exchange(request)).await.unwrap_or(Err(Error::Timeout))
    }

    fn host(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        let unreachable = |error: &dyn std::fmt::Display| Error::Unreachable(error.to_string());
        let to = self.address().await?;
        let stream = self.context.sockets.connect(to, 0).await.map_err(|error| unreachable(&error))?;
        if self.base.scheme() == "http" {
            return send(stream, request).await;
        }
        let config = self.context.tls.config().map_err(|error| unreachable(&error))?;
        let mut config = rustls::ClientConfig::clone(&config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| Error::Url)?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(|error| unreachable(&error))?;
        send(stream, request).await
    }

    async fn address(&self) -> Result<SocketAddr, Error> {
        let port = self.base.port_or_known_default().ok_or(Error::Url)?;
        let name = match self.base.host().ok_or(Error::Url)? {
            Host::Ipv4(address) => return Ok((address, port).into()),
            Host::Ipv6(address) => return Ok((address, port).into()),
            Host::Domain(name) => name,
        };
        let mut found = tokio::net::lookup_host((name, port))
            .await
            .map_err(|error| Error::Unreachable(error.to_string()))?;
        found.next().ok_or_else(|| Error::Unreachable(format!("{name} has no address")))
    }
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| Error::Unreachable(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = tokio::spawn(connection);
    let answer = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| Error::Unreachable(error.to_string()))?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    };
    let answer = answer.await;
    connection.abort();
    answer
}
