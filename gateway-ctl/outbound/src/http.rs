//! HTTP/1.1 client: one connection for each request, with deadlines, a limit for bodies, and optional redirects.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, COOKIE, HOST, LOCATION};
use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

use crate::dial::{DialError, Dialer};
use crate::tls::Tls;

/// Limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Deadline of the TLS handshake. The [`Dialer`] has the deadline of the connection.
    pub tls_timeout: Duration,
    /// Deadline of everything up to the head of the reply, for each redirect.
    pub head_timeout: Duration,
    /// Maximum time between two chunks of the body.
    pub piece_timeout: Duration,
    pub body_bytes: u64,
    /// Maximum number of redirects; 0 returns them to the caller.
    pub redirects: usize,
}

impl Limits {
    /// Returns limits with one deadline for each step, and no redirects.
    pub const fn within(timeout: Duration, body_bytes: u64) -> Limits {
        Limits {
            tls_timeout: timeout,
            head_timeout: timeout,
            piece_timeout: timeout,
            body_bytes,
            redirects: 0,
        }
    }
}

/// HTTP client over a [`Dialer`].
#[derive(Clone, Copy)]
pub struct Client<'a> {
    pub dialer: Dialer<'a>,
    pub tls: &'a dyn Tls,
    pub limits: Limits,
}

/// Step of a request that missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Connect,
    Tls,
    Reply,
}

/// Reason why a request has no reply.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the address is not an http or https URL")]
    Url,
    #[error("{0} is this host or a private address")]
    PrivateTarget(IpAddr),
    #[error(transparent)]
    Dial(DialError),
    #[error("{0}")]
    Tls(String),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("no reply in time")]
    Timeout(Step),
    #[error("redirection from https to http")]
    Downgrade,
    #[error("too many HTTP redirects")]
    Redirects,
    #[error("the reply is longer than {0} bytes")]
    TooLong(u64),
}

/// Body of a reply. Dropping it closes the connection.
pub struct Body {
    incoming: Incoming,
    limits: Limits,
    received: u64,
    _connection: ConnectionTask,
}

struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Body {
    /// Returns the next chunk; none at the end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = timeout(self.limits.piece_timeout, self.incoming.frame());
            let Some(frame) = frame.await.map_err(|_| Error::Timeout(Step::Reply))? else { return Ok(None) };
            let Ok(piece) = frame?.into_data() else { continue };
            self.received += piece.len() as u64;
            if self.received > self.limits.body_bytes {
                return Err(Error::TooLong(self.limits.body_bytes));
            }
            return Ok(Some(piece));
        }
    }

    /// Returns the whole body.
    pub async fn collect(mut self) -> Result<Bytes, Error> {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }
}

impl Client<'_> {
    /// Sends a request to an absolute URI. Its headers need no `Host`. Only requests without a body are redirected.
    /// Credentials are not sent to another origin.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let (mut parts, body) = request.into_parts();
        for _ in 0..=self.limits.redirects {
            let mut request = Request::new(body.clone());
            *request.method_mut() = parts.method.clone();
            *request.uri_mut() = parts.uri.clone();
            *request.headers_mut() = parts.headers.clone();
            let exchange = timeout(self.limits.head_timeout, self.exchange(request));
            let response = exchange.await.unwrap_or(Err(Error::Timeout(Step::Reply)))?;
            let Some(to) = self.redirection(&response).filter(|_| body.is_empty()) else {
                return Ok(response);
            };
            let from = Url::parse(&parts.uri.to_string()).map_err(|_| Error::Url)?;
            let to = from.join(to).map_err(|_| Error::Url)?;
            if from.scheme() == "https" && to.scheme() == "http" {
                return Err(Error::Downgrade);
            }
            if from.origin() != to.origin() {
                remove_credentials(&mut parts.headers);
            }
            parts.uri = to.as_str().parse().map_err(|_| Error::Url)?;
        }
        Err(Error::Redirects)
    }

    fn redirection<'r>(&self, response: &'r Response<Body>) -> Option<&'r str> {
        let status = response.status();
        let redirects = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
        let location = response.headers().get(LOCATION).filter(|_| redirects && self.limits.redirects > 0)?;
        location.to_str().ok()
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let (mut parts, body) = request.into_parts();
        let secure = match parts.uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(Error::Url),
        };
        let authority = parts.uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or(Error::Url)?.clone();
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Error::Url)?;
        parts.headers.insert(HOST, host);
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse::<Uri>().map_err(|_| Error::Url)?;
        let request = Request::from_parts(parts, Full::new(body));
        let stream = self.dialer.connect(authority.host(), port).await.map_err(|error| match error {
            DialError::PrivateTarget(address) => Error::PrivateTarget(address),
            DialError::Timeout(_) => Error::Timeout(Step::Connect),
            error => Error::Dial(error),
        })?;
        if !secure {
            return self.over(stream, request).await;
        }
        let mut config = rustls::ClientConfig::clone(&*self.tls.config().map_err(Error::Tls)?);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = authority.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| Error::Url)?;
        let handshake = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let failed = |error: io::Error| Error::Tls(self.tls.explain(error));
        let session =
            timeout(self.limits.tls_timeout, handshake).await.map_err(|_| Error::Timeout(Step::Tls))?;
        self.over(session.map_err(failed)?, request).await
    }

    async fn over<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Response<Body>, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = ConnectionTask(tokio::spawn(async move { drop(connection.await) }));
        let (parts, incoming) = sender.send_request(request).await?.into_parts();
        let limit = self.limits.body_bytes;
        if incoming.size_hint().lower() > limit {
            return Err(Error::TooLong(limit));
        }
        let body = Body { incoming, limits: self.limits, received: 0, _connection: connection };
        Ok(Response::from_parts(parts, body))
    }
}

fn remove_credentials(headers: &mut HeaderMap) {
    let sensitive = headers
        .iter()
        .filter(|(name, value)| value.is_sensitive() || [AUTHORIZATION, COOKIE].contains(*name));
    let names: Vec<_> = sensitive.map(|(name, _)| name.clone()).collect();
    names.into_iter().for_each(|name| drop(headers.remove(name)));
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::dial::Targets;
    use crate::egress::Egress;
    use crate::names::Resolver;
    use crate::sockets::KernelSockets;

    const DEADLINE: Duration = Duration::from_secs(10);

    /// Serves one reply on each connection, in order, and returns the heads of the requests.
    async fn serve(listener: TcpListener, replies: Vec<String>) -> Vec<String> {
        let mut heads = Vec::new();
        for reply in replies {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            heads.push(String::from_utf8(head).unwrap());
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
        heads
    }

    async fn fetch(
        listener: TcpListener,
        replies: Vec<String>,
        request: Request<Bytes>,
    ) -> (Result<Bytes, Error>, Vec<String>) {
        let no_tls = || Err("none here".to_owned());
        let names = Resolver::default();
        let dialer = Dialer {
            sockets: &KernelSockets::QUICK,
            names: &names,
            egress: &Egress::DEFAULT,
            targets: Targets::Any,
            timeout: DEADLINE,
        };
        let limits = Limits {
            tls_timeout: DEADLINE,
            head_timeout: DEADLINE,
            piece_timeout: DEADLINE,
            body_bytes: 10,
            redirects: 1,
        };
        let client = Client { dialer, tls: &no_tls, limits };
        let reply = async { client.send(request).await?.into_body().collect().await };
        tokio::join!(reply, serve(listener, replies))
    }

    fn get(uri: String) -> Request<Bytes> {
        Request::get(uri).body(Bytes::new()).unwrap()
    }

    #[tokio::test]
    async fn credentials_do_not_follow_to_another_origin() {
        let (from, to) = (
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        );
        let (at, next) = (from.local_addr().unwrap(), to.local_addr().unwrap());
        let mut request = get(format!("http://{at}/a?b"));
        let mut secret = HeaderValue::from_static("secret");
        secret.set_sensitive(true);
        request.headers_mut().insert("x-key", secret);
        request.headers_mut().insert("x-open", HeaderValue::from_static("open"));
        let moved = format!("HTTP/1.1 302 Found\r\nLocation: http://{next}/c\r\nContent-Length: 0\r\n\r\n");
        let found = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody".to_owned();
        let last = tokio::spawn(serve(to, vec![found]));
        let (reply, heads) = fetch(from, vec![moved], request).await;
        let last = last.await.unwrap();
        assert_eq!(reply.unwrap(), "body");
        assert!(heads[0].starts_with("GET /a?b HTTP/1.1\r\n") && heads[0].contains("secret"), "{heads:?}");
        assert!(heads[0].contains(&format!("host: {at}")), "{heads:?}");
        assert!(last[0].contains("x-open: open") && !last[0].contains("secret"), "{last:?}");
    }

    #[tokio::test]
    async fn bodies_redirections_and_schemes_are_bounded() {
        async fn listener() -> (TcpListener, String) {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            (listener, url)
        }
        let (server, url) = listener().await;
        let announced = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n".to_owned();
        let (reply, _) = fetch(server, vec![announced], get(url)).await;
        assert!(matches!(reply, Err(Error::TooLong(10))), "{reply:?}");
        let (server, url) = listener().await;
        let (reply, _) = fetch(server, vec!["HTTP/1.1 200 OK\r\n\r\n0123456789a".to_owned()], get(url)).await;
        assert!(matches!(reply, Err(Error::TooLong(10))), "{reply:?}");
        let (server, url) = listener().await;
        let moved = "HTTP/1.1 301 Moved\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n".to_owned();
        let (reply, _) = fetch(server, vec![moved.clone(), moved], get(url)).await;
        assert!(matches!(reply, Err(Error::Redirects)), "{reply:?}");
        let (server, _) = listener().await;
        for url in ["ftp://198.18.0.1/", "http://user@198.18.0.1/", "/nowhere"] {
            let (other, _) = listener().await;
            let (reply, _) = fetch(other, vec![], get(url.to_owned())).await;
            assert!(matches!(reply, Err(Error::Url)), "{url}: {reply:?}");
        }
        drop(server);
    }
}
