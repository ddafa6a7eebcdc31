//! A connection: from its first byte to its end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use gateway_ctl::tls;
use gateway_outbound::causes::with_causes;
use http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::activity::{Activity, OpenRequest};
use super::bare_errors::WithErrorBodies;
use super::limits::Limits;
use super::protocol_sniff::{self, Greeting};
use super::request_handler::{RequestHandler, ResponseFuture};
use crate::peer::Peer;

/// Parameters of serving a connection.
pub(super) struct Service {
    handler: Arc<dyn RequestHandler>,
    peer: Peer,
    activity: Arc<Activity>,
    pub limits: Limits,
    stopping: watch::Receiver<bool>,
}

impl Service {
    pub(super) fn new(
        handler: Arc<dyn RequestHandler>,
        peer: Peer,
        activity: Arc<Activity>,
        limits: Limits,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self { handler, peer, activity, limits, stopping }
    }
}

/// Body of a response. Its request counts as open until it is dropped.
struct CountedBody {
    inner: Body,
    _open: Option<OpenRequest>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Response in progress, whose request is open.
struct OpenResponse {
    response: ResponseFuture,
    open: Option<OpenRequest>,
}

impl Future for OpenResponse {
    type Output = Result<Response<CountedBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.response.as_mut().poll(cx).map(|response| {
            let open = self.open.take();
            Ok(response.map(|inner| CountedBody { inner, _open: open }))
        })
    }
}

/// Returns the handler with the remote end of the connection.
fn answering(
    handler: Arc<dyn RequestHandler>,
    peer: Peer,
    activity: Arc<Activity>,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<CountedBody>,
    Error = Infallible,
    Future = OpenResponse,
> + Send {
    hyper::service::service_fn(move |request: Request<Incoming>| {
        let open = Some(activity.used());
        OpenResponse { response: handler.clone().handle(request.map(Body::new), peer.clone()), open }
    })
}

/// Serves HTTP/1.1.
pub(super) async fn http1<IO>(io: IO, service: Service)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Service { handler, peer, activity, limits, stopping } = service;
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(WithErrorBodies::new(io)), answering(handler, peer, activity.clone()));
    drive(connection, &activity, &limits, stopping).await;
}

/// Serves HTTP/2.
async fn http2<IO>(io: IO, service: Service)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Service { handler, peer, activity, limits, stopping } = service;
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.idle)
        .keep_alive_timeout(limits.headers)
        .max_concurrent_streams(64)
        .max_header_list_size(64 * 1024)
        .serve_connection(TokioIo::new(io), answering(handler, peer, activity.clone()));
    drive(connection, &activity, &limits, stopping).await;
}

/// Performs the TLS handshake, and serves the protocol that it negotiated (ALPN).
pub(super) async fn secure(stream: TcpStream, server: &tls::Server, service: Service) {
    let peer = service.peer.clone();
    let begun = tokio::time::timeout(service.limits.handshake, async {
        match protocol_sniff::read(&stream).await? {
            Greeting::Tls => server.accept(stream).await.map(Some),
            Greeting::Plain => Ok(protocol_sniff::refuse(stream).await.map(|()| None)?),
            Greeting::Other => Ok(None),
        }
    });
    let stream = match begun.await {
        Ok(Ok(Some(stream))) => stream,
        Ok(Ok(None)) => return tracing::debug!(?peer, "rejected connection: client does not use TLS"),
        Ok(Err(error)) => {
            return tracing::debug!(?peer, error = %with_causes(&error), "no TLS session");
        }
        Err(_) => return tracing::debug!(?peer, "TLS handshake timed out"),
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2(stream, service).await;
    } else {
        http1(stream, service).await;
    }
}

/// A connection with graceful shutdown.
trait Graceful: Future<Output = hyper::Result<()>> {
    fn finish(self: Pin<&mut Self>);
}

impl<IO, S> Graceful for hyper::server::conn::http1::Connection<IO, S>
where
    IO: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    S: hyper::service::Service<Request<Incoming>, Response = Response<CountedBody>, Error = Infallible>,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<IO, S> Graceful for hyper::server::conn::http2::Connection<IO, S, TokioExecutor>
where
    IO: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    S: hyper::service::Service<
            Request<Incoming>,
            Response = Response<CountedBody>,
            Error = Infallible,
            Future = OpenResponse,
        >,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Runs a connection to its end. If the daemon stops or the connection is idle, it ends after the open requests.
async fn drive(
    connection: impl Graceful,
    activity: &Activity,
    limits: &Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connection = pin!(connection);
    let reported = tokio::select! {
        result = connection.as_mut() => return ended_with(result),
        () = ended(&mut stopping) => true,
        () = activity.idle(limits.idle) => false,
    };
    connection.as_mut().finish();
    if reported {
        // The daemon limits this wait itself.
        return ended_with(connection.await);
    }
    if let Ok(result) = tokio::time::timeout(limits.headers, connection).await {
        ended_with(result);
    }
}

/// Waits for the signal to stop. A dropped sender counts as the signal.
pub(super) async fn ended(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

fn ended_with(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(error = %with_causes(&error), "connection ended early");
    }
}
