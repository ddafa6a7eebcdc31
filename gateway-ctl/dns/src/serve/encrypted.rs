//! DNS over TLS (RFC 7858) and over HTTPS (RFC 8484) on the same port. ALPN selects the protocol.

mod doh;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::settings::Streams;
use super::tls::HTTP;
use super::{Shared, Transport, tcp};
use crate::hooks::Host;

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Answers the queries of a connection until it is closed or idle.
pub async fn serve(shared: Arc<Shared>, stream: TcpStream, host: Host, limits: Streams) -> io::Result<()> {
    let tls = shared.tls.get().ok_or(io::ErrorKind::NotConnected)?;
    let accepted = timeout(HANDSHAKE, tls.accept(stream)).await;
    let stream = accepted.map_err(|_| io::ErrorKind::TimedOut)??;
    if stream.get_ref().1.alpn_protocol() == Some(HTTP) {
        doh::serve(shared, stream, host, limits).await
    } else {
        tcp::serve(shared, stream, host, Transport::Tls, limits).await
    }
}
