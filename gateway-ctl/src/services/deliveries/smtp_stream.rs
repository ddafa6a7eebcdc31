//! Encrypted connection to a mail server, as the SMTP client takes it.
//!
//! The client expects the server's greeting first. With STARTTLS the greeting comes before the encryption, so the stream
//! repeats it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Maximum length of a reply before the encryption, in bytes.
const MAX_REPLY_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) struct SubmissionStream {
    session: TlsStream<TcpStream>,
    peer: SocketAddr,
    /// Part of the greeting that was not read yet.
    greeting: Vec<u8>,
}

impl SubmissionStream {
    pub(super) fn new(
        session: TlsStream<TcpStream>,
        peer: SocketAddr,
        greeting: Vec<u8>,
    ) -> SubmissionStream {
        SubmissionStream { session, peer, greeting }
    }
}

impl AsyncTokioStream for SubmissionStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for SubmissionStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.greeting.is_empty() {
            return Pin::new(&mut stream.session).poll_read(cx, buffer);
        }
        let length = buffer.remaining().min(stream.greeting.len());
        buffer.put_slice(&stream.greeting[..length]);
        stream.greeting.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SubmissionStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().session).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().session).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().session).poll_shutdown(cx)
    }
}

/// Asks the server for encryption (RFC 3207). Returns its greeting. Refuses a server that offers none: nothing is sent in
/// clear text.
pub(super) async fn begin_tls<S>(stream: &mut S, hello: &str) -> Result<Vec<u8>, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let greeting = reply(stream, "220").await?;
    send(stream, &format!("EHLO {hello}\r\n")).await?;
    let offer = reply(stream, "250").await?;
    let offers = String::from_utf8_lossy(&offer).to_ascii_uppercase();
    if !offers.lines().any(|line| line.get(4..).is_some_and(|word| word.trim() == "STARTTLS")) {
        return Err("the server offers no encryption (STARTTLS)".to_owned());
    }
    send(stream, "STARTTLS\r\n").await?;
    reply(stream, "220").await?;
    Ok(greeting)
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, text: &str) -> Result<(), String> {
    stream.write_all(text.as_bytes()).await.map_err(|error| error.to_string())
}

/// Reads one reply with this code. Reads no byte beyond it: text that follows in clear would be taken for encrypted
/// replies.
async fn reply<S: AsyncRead + Unpin>(stream: &mut S, code: &str) -> Result<Vec<u8>, String> {
    let (mut whole, mut line_start) = (Vec::new(), 0);
    loop {
        let byte = stream.read_u8().await.map_err(|_| "the server ended the connection".to_owned())?;
        whole.push(byte);
        if whole.len() > MAX_REPLY_BYTES {
            return Err("the server's reply is too long".to_owned());
        }
        if byte != b'\n' {
            continue;
        }
        let line = &whole[line_start..];
        if !line.starts_with(code.as_bytes()) {
            let line = String::from_utf8_lossy(line)
                .chars()
                .filter(|c| !c.is_control())
                .take(100)
                .collect::<String>();
            return Err(format!("the server answered {line}"));
        }
        if line.get(3) != Some(&b'-') {
            return Ok(whole);
        }
        line_start = whole.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn begin(replies: &[&str]) -> (Result<Vec<u8>, String>, String) {
        let (mut client, mut server) = tokio::io::duplex(8192);
        for text in replies {
            server.write_all(text.as_bytes()).await.unwrap();
        }
        let result = begin_tls(&mut client, "gw").await;
        drop(client);
        let mut sent = String::new();
        server.read_to_string(&mut sent).await.unwrap();
        (result, sent)
    }

    #[tokio::test]
    async fn encryption_begins_before_anything_else_is_said() {
        let (greeting, sent) =
            begin(&["220-mail\r\n220 ready\r\n", "250-mail\r\n250-SIZE 1\r\n250 starttls\r\n", "220 go\r\n"])
                .await;
        assert_eq!(greeting.unwrap(), b"220-mail\r\n220 ready\r\n");
        assert_eq!(sent, "EHLO gw\r\nSTARTTLS\r\n");
    }

    #[tokio::test]
    async fn server_without_encryption_is_refused() {
        let long = format!("220-{}\r\n", "x".repeat(MAX_REPLY_BYTES));
        for (replies, error) in [
            (vec!["220 ready\r\n", "250-mail\r\n250 AUTH PLAIN\r\n"], "no encryption"),
            (vec!["220 ready\r\n", "250 STARTTLS\r\n", "454 not now\r\n"], "454 not now"),
            (vec!["554 go away\r\n"], "554 go away"),
            (vec![long.as_str()], "too long"),
        ] {
            let (result, sent) = begin(&replies).await;
            assert!(result.as_ref().unwrap_err().contains(error), "{result:?}");
            assert!(!sent.contains("AUTH") && !sent.contains("MAIL"));
        }
    }
}
