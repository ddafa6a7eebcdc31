//! TLS of the resolver, as the daemon provides it.

use std::io;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

pub(super) const HTTP: &[u8] = b"h2";

/// What a server offers above TLS. Who offers nothing speaks DNS.
pub const PROTOCOLS: &[&[u8]] = &[HTTP, b"dot"];

/// Agrees on TLS with those who connect, by the certificate and the rules in force. It is to offer [`PROTOCOLS`].
pub trait Tls: Send + Sync + 'static {
    fn accept(&self, stream: TcpStream) -> BoxFuture<'_, io::Result<TlsStream<TcpStream>>>;
}
