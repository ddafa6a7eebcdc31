//! Zero-copy transfer between two connections in both directions, through pipes (splice(2)). A direction holds a pipe
//! only while bytes are in flight, so an idle connection costs only its sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes in flight in one direction, beside the socket buffers.
const IN_FLIGHT: usize = 256 << 10;
/// Pipe capacity in bytes. A pipe has a slot for each piece of memory, and a segment may arrive in a piece of its
/// own.
const PIPE: usize = 1 << 20;
/// Largest number of directions with a pipe at a time: each costs two descriptors. Others copy through a small
/// buffer.
const PIPES: usize = 256;
const SPARE_PIPES: usize = 32;
const BUFFER: usize = 32 << 10;

/// Bytes from the client to the server and back.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub up: AtomicU64,
    pub down: AtomicU64,
}

/// The pipes of all connections.
#[derive(Debug)]
pub(super) struct Pool {
    spare: Mutex<Vec<Pipe>>,
    permits: Semaphore,
}

#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Container of the bytes in flight.
enum TransferBuffer<'a> {
    Pipe { pipe: Option<Pipe>, filled: usize, pool: &'a Pool, _permit: SemaphorePermit<'a> },
    Buffer { bytes: Box<[u8]>, start: usize, end: usize },
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { spare: Mutex::default(), permits: Semaphore::new(PIPES) }
    }
}

impl Pool {
    fn medium(&self) -> TransferBuffer<'_> {
        if let Ok(permit) = self.permits.try_acquire() {
            let spare = self.spare.lock().pop();
            if let Some(pipe) = spare.map_or_else(|| Pipe::open().ok(), Some) {
                return TransferBuffer::Pipe { pipe: Some(pipe), filled: 0, pool: self, _permit: permit };
            }
        }
        TransferBuffer::Buffer { bytes: vec![0; BUFFER].into(), start: 0, end: 0 }
    }
}

impl Pipe {
    fn open() -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // If the system grants less, the default size is used.
        let _ = fcntl_setpipe_size(&write, PIPE);
        Ok(Pipe { read, write })
    }
}

impl Drop for TransferBuffer<'_> {
    fn drop(&mut self) {
        // A pipe that still holds bytes is not reused.
        if let TransferBuffer::Pipe { pipe, filled: 0, pool, .. } = self {
            let mut spare = pool.spare.lock();
            if spare.len() < SPARE_PIPES {
                spare.extend(pipe.take());
            }
        }
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

impl TransferBuffer<'_> {
    fn is_empty(&self) -> bool {
        match self {
            TransferBuffer::Pipe { filled, .. } => *filled == 0,
            TransferBuffer::Buffer { start, end, .. } => start == end,
        }
    }

    /// Fills the empty medium. 0 is the end of the stream.
    fn fill(&mut self, from: &TcpStream) -> io::Result<usize> {
        match self {
            TransferBuffer::Pipe { pipe: Some(pipe), filled, .. } => {
                let splice = || Ok(splice(from, None, &pipe.write, None, IN_FLIGHT, FLAGS)?);
                *filled = from.try_io(Interest::READABLE, splice)?;
                Ok(*filled)
            }
            TransferBuffer::Pipe { pipe: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
            TransferBuffer::Buffer { bytes, start, end } => {
                *end = from.try_read(bytes)?;
                *start = 0;
                Ok(*end)
            }
        }
    }

    fn drain(&mut self, to: &TcpStream) -> io::Result<usize> {
        match self {
            TransferBuffer::Pipe { pipe: Some(pipe), filled, .. } => {
                let splice = || Ok(splice(&pipe.read, None, to, None, *filled, FLAGS)?);
                let sent = to.try_io(Interest::WRITABLE, splice)?;
                *filled -= sent;
                Ok(sent)
            }
            TransferBuffer::Pipe { pipe: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
            TransferBuffer::Buffer { bytes, start, end } => {
                let sent = to.try_write(&bytes[*start..*end])?;
                *start += sent;
                Ok(sent)
            }
        }
    }
}

/// Transfers bytes until both sides have ended their stream. An error means that the connection broke on one side.
pub(super) async fn pump(
    client: &TcpStream,
    server: &TcpStream,
    pool: &Pool,
    traffic: &Traffic,
) -> io::Result<()> {
    let (up, down) =
        (direction(client, server, pool, &traffic.up), direction(server, client, pool, &traffic.down));
    tokio::pin!(up, down);
    let (mut up_ended, mut down_ended) = (false, false);
    while !(up_ended && down_ended) {
        tokio::select! {
            outcome = &mut up, if !up_ended => { outcome?; up_ended = true; }
            outcome = &mut down, if !down_ended => { outcome?; down_ended = true; }
            // A side that has ended its stream is no longer read, so a read would not notice a reset.
            error = broken(client), if up_ended => return Err(error),
            error = broken(server), if down_ended => return Err(error),
        }
    }
    Ok(())
}

async fn direction(from: &TcpStream, to: &TcpStream, pool: &Pool, count: &AtomicU64) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut medium = pool.medium();
        loop {
            match medium.fill(from) {
                Ok(0) => return end_stream(to),
                Ok(bytes) => {
                    count.fetch_add(bytes as u64, Ordering::Relaxed);
                    while !medium.is_empty() {
                        match medium.drain(to) {
                            Ok(_) => {}
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
                            Err(error) => return Err(error),
                        }
                    }
                    // Yields to other connections.
                    from.readable().await?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Ends the stream towards a side and continues to read from it.
fn end_stream(to: &TcpStream) -> io::Result<()> {
    match rustix::net::shutdown(to, rustix::net::Shutdown::Write) {
        // The connection is gone altogether. The other direction gets the error.
        Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits for a connection to be reset.
async fn broken(stream: &TcpStream) -> io::Error {
    match stream.ready(Interest::ERROR).await {
        Ok(_) => stream.take_error().ok().flatten().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (near.unwrap(), far.unwrap().0)
    }

    #[tokio::test]
    async fn each_side_may_end_its_stream_by_itself() {
        let ((mut client, near), (far, mut server)) = (pair().await, pair().await);
        let pool = Pool::default();
        let traffic = Traffic::default();
        let question = vec![7u8; 3 << 20];
        let talk = async {
            let (mut read, mut write) = server.split();
            let mut got = Vec::new();
            read.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, question);
            write.write_all(b"the answer comes after the end of the question").await.unwrap();
            write.shutdown().await.unwrap();
        };
        let ask = async {
            let (mut read, mut write) = client.split();
            write.write_all(&question).await.unwrap();
            write.shutdown().await.unwrap();
            let mut answer = String::new();
            read.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("the answer"));
        };
        let (outcome, (), ()) = tokio::join!(pump(&near, &far, &pool, &traffic), talk, ask);
        outcome.unwrap();
        assert_eq!(traffic.up.load(Ordering::Relaxed), 3 << 20);
        assert_eq!(traffic.down.load(Ordering::Relaxed), 46);
        assert_eq!(pool.permits.available_permits(), PIPES, "nothing is held");
    }

    #[tokio::test]
    async fn a_slow_side_slows_the_other_one_down() {
        let ((client, near), (far, mut server)) = (pair().await, pair().await);
        let (pool, traffic) = (Pool::default(), Traffic::default());
        let flood = async {
            let mut sent = 0;
            while tokio::time::timeout(Duration::from_millis(300), client.writable()).await.is_ok() {
                sent += client.try_write(&[1; 65536]).unwrap_or(0);
            }
            sent
        };
        let sent = tokio::select! {
            sent = flood => sent,
            outcome = pump(&near, &far, &pool, &traffic) => panic!("{outcome:?}"),
        };
        // The socket buffers take some megabytes. Without backpressure the loop would not end.
        assert!(sent < 64 << 20, "{sent} bytes");
        drop(client);
        let drain = async {
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            server.shutdown().await.unwrap();
            got.len()
        };
        let (outcome, got) = tokio::join!(pump(&near, &far, &pool, &traffic), drain);
        outcome.unwrap();
        // The bytes in flight are lost when the first pump is dropped.
        assert!(got > 0 && got <= sent);
    }

    #[tokio::test]
    async fn a_reset_is_noticed_even_after_the_end_of_the_stream() {
        let ((client, near), (far, server)) = (pair().await, pair().await);
        let (pool, traffic) = (Pool::default(), Traffic::default());
        let reset = async {
            let mut client = client;
            client.shutdown().await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            // A closed socket answers data with a reset.
            drop(client);
            server.writable().await.unwrap();
            server.try_write(b"late").unwrap();
            server
        };
        let both = async { tokio::join!(pump(&near, &far, &pool, &traffic), reset) };
        let (outcome, _server) = tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
        outcome.unwrap_err();
    }

    #[tokio::test]
    async fn without_pipes_buffers_do() {
        let ((mut client, near), (far, mut server)) = (pair().await, pair().await);
        let (pool, traffic) = (Pool::default(), Traffic::default());
        let all = pool.permits.acquire_many(u32::try_from(PIPES).unwrap()).await.unwrap();
        let talk = async {
            client.write_all(&vec![3; 1 << 20]).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let listen = async {
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, vec![3; 1 << 20]);
            server.shutdown().await.unwrap();
        };
        let (outcome, (), ()) = tokio::join!(pump(&near, &far, &pool, &traffic), talk, listen);
        outcome.unwrap();
        drop(all);
    }
}
