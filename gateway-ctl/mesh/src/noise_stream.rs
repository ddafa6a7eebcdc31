//! A control session as a stream of bytes: records in, records out.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::noise::{NoiseError, Opener, Sealer, record_bytes};

/// Bytes that are read at a time.
const CHUNK: usize = 8192;
/// Bytes of records that wait for the socket. More content has to wait.
const MOST_UNSENT: usize = 64 << 10;

/// A stream over the records of a session.
#[derive(Debug)]
pub(crate) struct NoiseStream<S> {
    socket: S,
    sealer: Sealer,
    opener: Opener,
    /// Bytes of the socket.
    received: BytesMut,
    /// Content that was decrypted and is not read yet.
    content: BytesMut,
    /// Records that are not sent yet, and how much of them is.
    unsent: Vec<u8>,
    sent: usize,
}

impl<S> NoiseStream<S> {
    pub(crate) fn new(socket: S, sealer: Sealer, opener: Opener) -> Self {
        let (received, content) = (BytesMut::new(), BytesMut::new());
        Self { socket, sealer, opener, received, content, unsent: Vec::new(), sent: 0 }
    }

    /// Puts content back, to be read again before all other.
    pub(crate) fn unread(&mut self, content: &[u8]) {
        let rest = std::mem::take(&mut self.content);
        self.content.extend_from_slice(content);
        self.content.extend_from_slice(&rest);
    }

    /// Decrypts the records that are whole.
    fn open_received(&mut self) -> Result<(), NoiseError> {
        while let Some(length) = record_bytes(&self.received)? {
            if self.received.len() < length {
                break;
            }
            let content = self.opener.open(&self.received[..length])?;
            self.received.advance(length);
            self.content.extend_from_slice(&content);
        }
        Ok(())
    }
}

impl<S: AsyncWrite + Unpin> NoiseStream<S> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.unsent.len() {
            let rest = &self.unsent[self.sent..];
            let count = ready!(Pin::new(&mut self.socket).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count;
        }
        self.unsent.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for NoiseStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.content.is_empty() {
                let count = this.content.len().min(buffer.remaining());
                buffer.put_slice(&this.content.split_to(count));
                return Poll::Ready(Ok(()));
            }
            let mut chunk = [0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.socket).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.received.extend_from_slice(read.filled());
            this.open_received().map_err(invalid)?;
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for NoiseStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        content: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.unsent.len() >= MOST_UNSENT {
            ready!(this.poll_send(context))?;
        }
        let taken = this.sealer.seal(content, &mut this.unsent).map_err(invalid)?;
        // What does not go now goes with the next write or flush.
        if let Poll::Ready(Err(error)) = this.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.socket).poll_shutdown(context)
    }
}

fn invalid(error: NoiseError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
