//! Questions over TLS (RFC 7858) and over HTTPS (RFC 8484), at the same port: what is spoken is agreed on in TLS.

mod doh;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::settings::Streams;
use super::{Shared, Transport, tcp};

/// For what is agreed on before the first question.
const HANDSHAKE: Duration = Duration::from_secs(5);
const HTTP: &[u8] = b"h2";

/// What a server offers above TLS. Who offers nothing speaks DNS.
pub const PROTOCOLS: &[&[u8]] = &[HTTP, b"dot"];

/// Agrees on TLS with those who connect, by the certificate and the rules in force. It is to offer [`PROTOCOLS`].
pub trait Tls: Send + Sync + 'static {
    fn accept(&self, stream: TcpStream) -> BoxFuture<'_, io::Result<TlsStream<TcpStream>>>;
}

/// Answers the questions of a connection until it is closed or idle.
pub async fn serve(shared: Arc<Shared>, stream: TcpStream, from: IpAddr, limits: Streams) -> io::Result<()> {
    let tls = shared.tls.get().ok_or(io::ErrorKind::NotConnected)?;
    let accepted = timeout(HANDSHAKE, tls.accept(stream)).await;
    let stream = accepted.map_err(|_| io::ErrorKind::TimedOut)??;
    if stream.get_ref().1.alpn_protocol() == Some(HTTP) {
        doh::serve(shared, stream, from, limits).await
    } else {
        tcp::serve(shared, stream, from, Transport::Tls, limits).await
    }
}
