//! Bodies of responses that are written by blocking work while they are sent.

use std::io::{self, BufWriter, Write};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use gateway_ctl::supervise::try_blocking;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Size of the parts that are sent, and how many of them wait for the client.
const PART_BYTES: usize = 64 << 10;
const WAITING_PARTS: usize = 4;

/// Returns a body that `write` writes. It waits while the client reads slowly, and ends when the client is gone. If it
/// fails, the response breaks off.
pub(crate) fn body(
    permit: OwnedSemaphorePermit,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Body {
    let (parts, received) = mpsc::channel::<io::Result<Bytes>>(WAITING_PARTS);
    tokio::spawn(async move {
        let failed = parts.clone();
        let written = try_blocking(move || {
            let mut out = BufWriter::with_capacity(PART_BYTES, Parts(parts));
            write(&mut out)?;
            out.flush()
        });
        let result = written.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        if let Err(error) = result
            && failed.send(Err(error)).await.is_err()
        {
            tracing::debug!("the client of a streamed response is gone");
        }
        drop(permit);
    });
    Body::from_stream(stream::unfold(received, |mut received| async move {
        let part = received.recv().await?;
        Some((part, received))
    }))
}

struct Parts(mpsc::Sender<io::Result<Bytes>>);

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .blocking_send(Ok(Bytes::copy_from_slice(bytes)))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes text into a JSON string, of which only line breaks need an escape.
pub(crate) struct InJsonString<'a> {
    pub out: &'a mut dyn Write,
    /// Length of the text in bytes.
    pub length: usize,
}

impl Write for InJsonString<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                self.out.write_all(b"\\n")?;
            }
            self.out.write_all(line)?;
        }
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
