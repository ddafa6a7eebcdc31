//! First bytes of a connection to the TLS port: detection of a TLS handshake, and the response to a client that speaks
//! plain HTTP.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::ApiError;

/// Content type of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;
/// Maximum number of bytes that are read before the response.
const MAX_HEAD_BYTES: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    Tls,
    /// Possibly an HTTP request.
    Plain,
    /// Neither, or no data.
    Other,
}

/// Peeks at the first byte without consuming it.
pub(super) async fn read(stream: &TcpStream) -> io::Result<Greeting> {
    let mut first = [0];
    Ok(match (stream.peek(&mut first).await?, first[0]) {
        (1, HANDSHAKE) => Greeting::Tls,
        (1, letter) if letter.is_ascii_uppercase() => Greeting::Plain,
        _ => Greeting::Other,
    })
}

/// Responds to a client that should have used TLS. The request, perhaps with a password, was already visible on the
/// network. So this is an error, not a redirect that would hide the mistake.
pub(super) async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    // Closing with unread data would reset the connection, and the client would not see the response.
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while head.len() < MAX_HEAD_BYTES && !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut part).await? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let request_id = uuid::Uuid::new_v4().to_string();
    let error = ApiError::bad_request("This port uses TLS; use an https:// URL.");
    let body = error.detail("scheme", "https").to_json(&request_id).to_string();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Request-Id: \
         {request_id}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
