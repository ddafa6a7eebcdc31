//! DNS over TLS (RFC 7858) and over HTTPS (RFC 8484) on the same port. ALPN selects the protocol.
//!
//! The administrator chooses the port (443 or 853). The certificate is that of the API and follows its files. The
//! listener is off by default: without a name that clients know, a self-signed certificate protects no client.

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
pub(crate) async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    host: Host,
    limits: Streams,
) -> io::Result<()> {
    let tls = shared.tls.get().ok_or(io::ErrorKind::NotConnected)?;
    let accepted = timeout(HANDSHAKE, tls.accept(stream)).await;
    let stream = accepted.map_err(|_| io::ErrorKind::TimedOut)??;
    if stream.get_ref().1.alpn_protocol() == Some(HTTP) {
        doh::serve(shared, stream, host, limits).await
    } else {
        tcp::serve(shared, stream, host, Transport::Tls, limits).await
    }
}
