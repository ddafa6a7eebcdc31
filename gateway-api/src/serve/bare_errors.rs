//! Body for the errors that the HTTP library answers itself, before there is a request: no HTTP, a target or header fields
//! that are too long. It sends them without a body; here they get the envelope of all errors.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::dispatch::{REQUEST_ID, new_request_id};
use crate::error::Code;

/// A connection whose bare errors have a body.
pub(super) struct WithErrorBodies<IO> {
    io: IO,
    /// Bytes that were written in place of others and are not sent yet.
    replaced: Vec<u8>,
    sent: usize,
}

impl<IO> WithErrorBodies<IO> {
    pub(super) fn new(io: IO) -> Self {
        Self { io, replaced: Vec::new(), sent: 0 }
    }
}

impl<IO: AsyncWrite + Unpin> WithErrorBodies<IO> {
    fn send_replaced(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.replaced.len() {
            let left = &self.replaced[self.sent..];
            match ready!(Pin::new(&mut self.io).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the bytes if they are an error without a body.
    fn replace(&mut self, bytes: &[u8]) -> bool {
        let Some(response) = with_body(bytes) else { return false };
        (self.replaced, self.sent) = (response, 0);
        true
    }
}

/// Returns the response with a body in place of one that has neither a body nor a request id.
fn with_body(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes.strip_prefix(b"HTTP/1.1 4").map(|_| bytes)?).ok()?;
    let head = text.strip_suffix("\r\n\r\n")?;
    let (status, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    if head.contains("\r\n\r\n") || fields.to_ascii_lowercase().contains(REQUEST_ID.as_str()) {
        return None;
    }
    let message = match status.split(' ').nth(1)? {
        "414" => "The target of the request is too long.",
        "431" => "The header fields of the request are too large.",
        _ => "The request is not HTTP/1.1.",
    };
    let id = new_request_id();
    let error = json!({"code": Code::BadRequest.as_str(), "message": message, "details": {"request_id": id}});
    let body = json!({ "error": error }).to_string();
    let length = body.len();
    Some(
        format!(
            "{status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{REQUEST_ID}: {id}\r\n\
             connection: close\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

impl<IO: AsyncRead + Unpin> AsyncRead for WithErrorBodies<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for WithErrorBodies<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.send_replaced(cx))?;
        if self.replace(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.send_replaced(cx))?;
        if let [bytes] = slices
            && self.replace(bytes)
        {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.send_replaced(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.send_replaced(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_without_a_body_get_the_envelope_and_others_stay() {
        let bare = "HTTP/1.1 414 URI Too Long\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        let response = String::from_utf8(with_body(bare.as_bytes()).expect("replaced")).expect("text");
        let (head, body) = response.split_once("\r\n\r\n").expect("a body");
        assert!(head.starts_with("HTTP/1.1 414 URI Too Long\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["error"]["code"], "bad_request");
        let id = body["error"]["details"]["request_id"].as_str().expect("an id");
        assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nX-Request-Id: 1\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 400 Bad",
        ] {
            assert_eq!(with_body(other.as_bytes()), None, "{other}");
        }
    }
}
