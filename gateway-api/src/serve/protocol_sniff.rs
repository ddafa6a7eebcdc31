//! The first bytes of a connection to the TLS port: whether they begin a TLS handshake, and what to say to a client
//! that speaks plain HTTP instead.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::ApiError;

/// Of a TLS record that carries a handshake.
const HANDSHAKE: u8 = 0x16;
/// More is not read before the answer.
const HEAD: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    Tls,
    /// The request may be HTTP.
    Plain,
    /// Neither, or nothing.
    Other,
}

/// Looks at the first byte and leaves it where it is.
pub(super) async fn read(stream: &TcpStream) -> io::Result<Greeting> {
    let mut first = [0];
    Ok(match (stream.peek(&mut first).await?, first[0]) {
        (1, HANDSHAKE) => Greeting::Tls,
        (1, letter) if letter.is_ascii_uppercase() => Greeting::Plain,
        _ => Greeting::Other,
    })
}

/// Tells a client that it should have spoken TLS. What it sent (perhaps a password) has been seen by the network by
/// now, so this is an error and not a redirection that would hide the mistake.
pub(super) async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    // Closing before all was read would reset the connection, and the client would not see the answer.
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while head.len() < HEAD && !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut part).await? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let request_id = uuid::Uuid::new_v4().to_string();
    let error = ApiError::bad_request("This port speaks TLS: the address begins with https://.");
    let body = error.detail("scheme", "https").to_json(&request_id).to_string();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Request-Id: \
         {request_id}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
