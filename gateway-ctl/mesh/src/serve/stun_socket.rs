//! Answers binding requests on a UDP socket.

use std::io;

use tokio::net::UdpSocket;

use crate::stun::{LONGEST_REQUEST, parse_request, response};

/// Serves STUN until the socket fails. An answer is shorter than the longest request and no longer than twice the
/// shortest, so the server amplifies little.
pub async fn serve_stun(socket: &UdpSocket) -> io::Result<()> {
    let mut buffer = [0; LONGEST_REQUEST + 1];
    loop {
        let (length, source) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // The error of an earlier answer, such as an unreachable port.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error),
        };
        if let Some(transaction) = parse_request(&buffer[..length])
            && let Err(error) = socket.send_to(&response(transaction, source), source).await
        {
            tracing::debug!(%source, "STUN: {error}");
        }
    }
}
