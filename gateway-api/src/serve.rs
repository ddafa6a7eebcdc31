//! Listeners: connection limits, timeouts, and the path from a connection to requests for the handler.
//!
//! Every step in which a client can be slow has a timeout: the TLS handshake, the headers, the body (in `dispatch`),
//! the pause between requests, and receiving the response. Only a stream that the client reads has none. ALPN selects the
//! version of HTTP: to detect HTTP/2 in the first bytes may wait without end.

mod activity;
mod bare_errors;
mod connection;
mod connection_limit;
mod limits;
mod protocol_sniff;
mod request_handler;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_ctl::tls;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::peer::Peer;
use connection::ended;
use connection_limit::ConnectionLimit;
pub use limits::Limits;
pub use request_handler::{RequestHandler, ResponseFuture};

/// Range of the pause between attempts to listen. It doubles after each attempt.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);
const BACKLOG: u32 = 1024;

/// Task of a listener. It ends after `stopping` is set and the open requests are answered. Aborting it closes the
/// connections.
pub type Serving = JoinHandle<()>;

/// Serves a TCP listener, over TLS if `tls` is given.
pub fn tcp(
    listener: TcpListener,
    handler: Arc<dyn RequestHandler>,
    tls: Option<Arc<tls::Server>>,
    limits: Limits,
    stopping: watch::Receiver<bool>,
) -> Serving {
    tokio::spawn(accept(Tcp { listener, tls }, handler, limits, stopping))
}

/// Serves an address as soon as it can be bound, and reports errors until then through `note`.
///
/// An address that no interface has yet is bound all the same (IP_FREEBIND): it is served once it appears.
pub fn tcp_at(
    address: SocketAddr,
    handler: Arc<dyn RequestHandler>,
    tls: Option<Arc<tls::Server>>,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
    note: impl Fn(Option<String>) + Send + 'static,
) -> Serving {
    tokio::spawn(async move {
        let mut pause = FIRST_RETRY;
        let listener = loop {
            match bind(address) {
                Ok(listener) => break listener,
                Err(error) => {
                    tracing::error!(%address, %error, "failed to listen; retrying");
                    note(Some(format!("cannot listen on {address}: {error}")));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LAST_RETRY),
                () = ended(&mut stopping) => return,
            }
        };
        note(None);
        accept(Tcp { listener, tls }, handler, limits, stopping).await;
    })
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    match address {
        SocketAddr::V4(_) => rustix::net::sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => rustix::net::sockopt::set_ipv6_freebind(&socket, true)?,
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves the local socket, which is never encrypted.
pub fn unix(
    listener: UnixListener,
    handler: Arc<dyn RequestHandler>,
    limits: Limits,
    stopping: watch::Receiver<bool>,
) -> Serving {
    tokio::spawn(accept(Unix { listener }, handler, limits, stopping))
}

/// A TCP or Unix listener.
trait Listener: Send + 'static {
    type Stream: Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;

    fn serve(
        &self,
        stream: Self::Stream,
        service: connection::Service,
    ) -> impl Future<Output = ()> + Send + 'static;
}

struct Tcp {
    listener: TcpListener,
    tls: Option<Arc<tls::Server>>,
}

impl Listener for Tcp {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = self.listener.accept().await?;
        Ok((stream, Peer::Remote { address, tls: self.tls.is_some() }))
    }

    fn serve(
        &self,
        stream: TcpStream,
        service: connection::Service,
    ) -> impl Future<Output = ()> + Send + 'static {
        let tls = self.tls.clone();
        async move {
            if let Err(error) = prepare(&stream, &service.limits) {
                tracing::debug!(%error, "connection closed before it was accepted");
                return;
            }
            match tls {
                None => connection::http1(stream, service).await,
                Some(server) => connection::secure(stream, &server, service).await,
            }
        }
    }
}

struct Unix {
    listener: UnixListener,
}

impl Listener for Unix {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Peer)> {
        self.listener.accept().await.map(|(stream, _)| (stream, Peer::Local))
    }

    fn serve(
        &self,
        stream: UnixStream,
        service: connection::Service,
    ) -> impl Future<Output = ()> + Send + 'static {
        connection::http1(stream, service)
    }
}

/// Sets socket options: small responses are sent at once, and the kernel drops peers that are gone or accept no data.
fn prepare(stream: &TcpStream, limits: &Limits) -> io::Result<()> {
    let socket = socket2::SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(limits.unacknowledged))?;
    let keepalive =
        socket2::TcpKeepalive::new().with_time(limits.unacknowledged).with_interval(Duration::from_secs(10));
    socket.set_tcp_keepalive(&keepalive)
}

async fn accept<L: Listener>(
    listener: L,
    handler: Arc<dyn RequestHandler>,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let slots = ConnectionLimit::new(limits);
    let mut connections = JoinSet::new();
    let stop = stopping.clone();
    loop {
        let accepted = tokio::select! {
            () = ended(&mut stopping) => break,
            // Removes finished connections from the set.
            Some(_) = connections.join_next() => continue,
            accepted = listener.next() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_the_peers(&error) => continue,
            Err(error) => {
                // Usually no free file descriptors. They become available when connections end.
                tracing::error!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let Some(slot) = slots.take(&peer) else {
            tracing::debug!(?peer, "rejected connection: too many connections that are used");
            continue;
        };
        let number = slot.number();
        let service = connection::Service::new(handler.clone(), peer, slot.activity(), limits, stop.clone());
        let serving = listener.serve(stream, service);
        let task = connections.spawn(async move {
            let _slot = slot;
            serving.await;
        });
        slots.note_task(number, task);
    }
    // Accepts no new connections. Open ones have received the signal too.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Reports whether an error of `accept` concerns only one peer.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
