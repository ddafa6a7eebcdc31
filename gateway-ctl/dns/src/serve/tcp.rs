//! Questions by TCP (RFC 7766): many in one connection, answered in whichever order they are ready.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::settings::Streams;
use super::{Shared, Transport};

/// How many connections there are, and of whom. A client with IPv6 is its /64: it has as many addresses as it likes there.
#[derive(Debug, Default)]
pub struct ConnectionLimiter(Mutex<HashMap<IpAddr, usize>>);

impl ConnectionLimiter {
    fn enter(shared: &Arc<Shared>, from: IpAddr, limits: &Streams) -> Option<Guest> {
        let from = client(from);
        let mut connection_limiter =
            shared.connection_limiter.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = connection_limiter.values().sum();
        let own = connection_limiter.entry(from).or_insert(0);
        if all >= limits.connections || *own >= limits.per_client {
            if *own == 0 {
                connection_limiter.remove(&from);
            }
            shared.counts.crowded.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *own += 1;
        Some(Guest { shared: shared.clone(), from })
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The address by which connections of a client are counted.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// One connection among them.
struct Guest {
    shared: Arc<Shared>,
    from: IpAddr,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut connection_limiter =
            self.shared.connection_limiter.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = connection_limiter.get_mut(&self.from) {
            *own -= 1;
            if *own == 0 {
                connection_limiter.remove(&self.from);
            }
        }
    }
}

/// Accepts connections for ever: plain ones, or those for TLS and what is spoken above it.
pub async fn listen(shared: Arc<Shared>, listener: &TcpListener, secure: bool) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                // No descriptor is free, or the peer has left: neither ends the listener.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let from = from.ip().to_canonical();
        let limits = shared.state.load().settings.streams;
        let Some(guest) = ConnectionLimiter::enter(&shared, from, &limits) else { continue };
        // Answers are written whole: waiting for more only delays them.
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            // How a connection ends concerns nobody else.
            let _ = match secure {
                true => super::encrypted::serve(shared, stream, from, limits).await,
                false => serve(shared, stream, from, Transport::Tcp, limits).await,
            };
            drop(guest);
        });
    }
}

/// Answers the questions of a connection until it is closed or idle.
pub async fn serve<S>(
    shared: Arc<Shared>,
    stream: S,
    from: IpAddr,
    transport: Transport,
    limits: Streams,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (answers, mut ready) = mpsc::channel::<Vec<u8>>(limits.pipelined.max(1));
    let room = Arc::new(Semaphore::new(limits.pipelined.max(1)));
    let write = async move {
        while let Some(answer) = ready.recv().await {
            // One who does not read does not keep the connection.
            let written = async {
                writer.write_all(&answer).await?;
                // TLS may keep something back.
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
            if let Some(question) = question(&mut buffer) {
                until = Instant::now() + limits.idle;
                let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
                let (shared, answers) = (shared.clone(), answers.clone());
                tokio::spawn(async move {
                    let mut out = Vec::with_capacity(514);
                    let now = shared.clock.now();
                    shared.answer(&question, from, transport, now, &mut out).await;
                    if !out.is_empty() {
                        let length = (out.len() as u16).to_be_bytes();
                        out.splice(0..0, length);
                        // The connection may have ended.
                        let _ = answers.send(out).await;
                    }
                    drop(place);
                });
                continue;
            }
            match timeout_at(until, reader.read_buf(&mut buffer)).await {
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error),
                // Half a question is none, however long it takes.
                Err(_) if buffer.is_empty() && room.available_permits() < limits.pipelined => {
                    until = Instant::now() + limits.idle;
                }
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    };
    // When reading ends, what is asked is still answered; when writing ends, nothing more is read.
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    tokio::select! {
        done = &mut write => done,
        done = &mut read => {
            done?;
            write.await
        }
    }
}

/// Takes a whole question out of the buffer.
fn question(buffer: &mut BytesMut) -> Option<BytesMut> {
    let length = usize::from(u16::from_be_bytes([*buffer.first()?, *buffer.get(1)?]));
    if buffer.len() < 2 + length {
        return None;
    }
    buffer.advance(2);
    Some(buffer.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_address_or_by_slash_64() {
        let same = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|text| client(text.parse().expect("an address")));
            a == b
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:1:2:3"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
    }
}
