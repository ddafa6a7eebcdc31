//! HTTP/1.1 at the start of a connection: a request, or one that turns it into something else.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderName, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::error::ClientError;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of an answer.
pub(super) const LONGEST_ANSWER: usize = 1 << 20;

/// Returns the body of a resource.
pub(super) async fn get<S>(socket: S, host: &str, path: &str) -> Result<Bytes, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = request(Method::GET, host, path)?;
    let response = send(socket, request).await?;
    let status = response.status();
    let body = read(response.into_body()).await?;
    if status.is_success() { Ok(body) } else { Err(ClientError::refused(status, &body)) }
}

/// Turns a connection into one of another protocol.
pub(super) async fn upgrade<S>(
    socket: S,
    host: &str,
    (method, path): (Method, &str),
    protocol: &'static str,
    header: Option<(HeaderName, HeaderValue)>,
) -> Result<TokioIo<Upgraded>, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut request = request(method, host, path)?;
    let headers = request.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static(protocol));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.extend(header);
    let response = send(socket, request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = response.status();
        return Err(ClientError::refused(status, &read(response.into_body()).await?));
    }
    let upgraded = timeout(TIMEOUT, hyper::upgrade::on(response)).await;
    Ok(TokioIo::new(upgraded.map_err(|_| ClientError::Timeout)??))
}

/// Reads a body that is not too long, in time.
pub(super) async fn read(body: Incoming) -> Result<Bytes, ClientError> {
    let body = timeout(TIMEOUT, Limited::new(body, LONGEST_ANSWER).collect()).await;
    let body = body.map_err(|_| ClientError::Timeout)?;
    Ok(body.map_err(|_| ClientError::Protocol("the answer does not end, or is too long"))?.to_bytes())
}

fn request(method: Method, host: &str, path: &str) -> Result<Request<Full<Bytes>>, ClientError> {
    let request = Request::builder().method(method).uri(path).header(HOST, host);
    request.body(Full::default()).map_err(|_| ClientError::Protocol("the host is not valid"))
}

async fn send<S>(socket: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let exchange = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        // It ends with its request, or with what it was upgraded to.
        tokio::spawn(connection.with_upgrades());
        Ok::<_, ClientError>(sender.send_request(request).await?)
    };
    timeout(TIMEOUT, exchange).await.map_err(|_| ClientError::Timeout)?
}
