//! DNS over TCP (RFC 7766). Clients may pipeline queries; answers are sent in the order in which they are ready.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::settings::Streams;
use super::{Shared, Transport};
use crate::hooks::Host;

/// Answers the queries of a connection until it is closed or idle.
pub(crate) async fn serve<S>(
    shared: Arc<Shared>,
    stream: S,
    host: Host,
    transport: Transport,
    limits: Streams,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (answers, mut ready) = mpsc::channel::<Vec<u8>>(limits.pipelined.max(1));
    let slots = Arc::new(Semaphore::new(limits.pipelined.max(1)));
    let write = async move {
        while let Some(answer) = ready.recv().await {
            // A client that does not read loses the connection.
            let written = async {
                writer.write_all(&answer).await?;
                // TLS may buffer data.
                writer.flush().await
            };
            timeout(limits.idle, written).await.map_err(|_| io::ErrorKind::TimedOut)??;
        }
        timeout(limits.idle, writer.shutdown()).await.map_err(|_| io::ErrorKind::TimedOut)?
    };
    let read = async move {
        let mut buffer = BytesMut::with_capacity(1024);
        let mut until = Instant::now() + limits.idle;
        loop {
            if let Some(next_query) = next_query(&mut buffer) {
                until = Instant::now() + limits.idle;
                let Ok(slot) = slots.clone().acquire_owned().await else { return Ok(()) };
                let (shared, answers) = (shared.clone(), answers.clone());
                tokio::spawn(async move {
                    let mut out = Vec::with_capacity(514);
                    let now = shared.clock.now();
                    shared.answer(&next_query, host, transport, now, &mut out).await;
                    if !out.is_empty() {
                        let length = (out.len() as u16).to_be_bytes();
                        out.splice(0..0, length);
                        // The connection may have ended.
                        let _ = answers.send(out).await;
                    }
                    drop(slot);
                });
                continue;
            }
            match timeout_at(until, reader.read_buf(&mut buffer)).await {
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error),
                // Queries in progress keep a connection open. An incomplete query does not, however long it takes.
                Err(_) if buffer.is_empty() && slots.available_permits() < limits.pipelined => {
                    until = Instant::now() + limits.idle;
                }
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    };
    // After the end of reading, pending queries still get answers. After the end of writing, nothing more is read.
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    tokio::select! {
        done = &mut write => done,
        done = &mut read => {
            done?;
            write.await
        }
    }
}

/// Removes a complete query from the buffer. None: the query is still incomplete.
fn next_query(buffer: &mut BytesMut) -> Option<BytesMut> {
    let length = usize::from(u16::from_be_bytes([*buffer.first()?, *buffer.get(1)?]));
    if buffer.len() < 2 + length {
        return None;
    }
    buffer.advance(2);
    Some(buffer.split_to(length))
}
