//! TLS for the resolver, provided by the daemon.

use std::io;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

pub(super) const HTTP: &[u8] = b"h2";

/// ALPN protocols of the server. A client without ALPN uses DoT.
pub const PROTOCOLS: &[&[u8]] = &[HTTP, b"dot"];

/// TLS handshake with clients, with the current certificate and settings. Implementations must offer [`PROTOCOLS`].
pub trait Tls: Send + Sync + 'static {
    fn accept(&self, stream: TcpStream) -> BoxFuture<'_, io::Result<TlsStream<TcpStream>>>;
}
