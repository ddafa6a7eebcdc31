//! Connection that many queries share (RFC 7766): pipelined, answered in any order, kept open.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::error::{Error, random};
use super::message::{ReplyHeader, Verdict, check_reply};

/// Idle timeout of a connection.
const IDLE: Duration = Duration::from_secs(30);
/// A connection without a reply for this time after a query was given up is broken.
const STALL_TIMEOUT: Duration = Duration::from_millis(1500);
const TICK: Duration = Duration::from_millis(500);
/// Maximum number of pending queries.
const MAX_PENDING_QUERIES: usize = 2048;
/// Maximum number of unsent bytes before queries wait.
const BACKLOG: usize = 64 << 10;

/// Local end. The connection closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct PipelinedConnection {
    jobs: mpsc::Sender<Job>,
    answered: Arc<AtomicBool>,
}

type Answer = (Vec<u8>, ReplyHeader);

#[derive(Debug)]
struct Job {
    /// With any id: the connection gives its own.
    message: Vec<u8>,
    answer: oneshot::Sender<Result<Answer, Error>>,
}

struct PendingReply {
    sent: Vec<u8>,
    since: Instant,
    answer: oneshot::Sender<Result<Answer, Error>>,
}

impl PipelinedConnection {
    /// Takes over an established connection.
    pub(super) fn new<S>(stream: S) -> PipelinedConnection
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (sender, jobs) = mpsc::channel(256);
        let answered = Arc::<AtomicBool>::default();
        let pipe = PipelinedConnection { jobs: sender, answered: answered.clone() };
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(stream);
            let mut end = ConnectionState {
                reader,
                writer,
                waiting: HashMap::new(),
                arrived: Vec::new(),
                leaving: Vec::new(),
                unflushed: false,
                answered,
                heard: Instant::now(),
                used: Instant::now(),
            };
            let error = end.serve(jobs).await.err().unwrap_or(Error::Closed);
            for (_, waiting) in end.waiting.drain() {
                // Those who gave up do not listen.
                let _ = waiting.answer.send(Err(error.clone()));
            }
            let _ = end.writer.shutdown().await;
        });
        pipe
    }

    pub(super) fn is_open(&self) -> bool {
        !self.jobs.is_closed()
    }

    pub(super) fn is(&self, other: &PipelinedConnection) -> bool {
        self.jobs.same_channel(&other.jobs)
    }

    /// Reports whether any query was answered. Some servers answer one query and close.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    pub(super) async fn send_query(&self, message: Vec<u8>) -> Result<Answer, Error> {
        let (answer, answered) = oneshot::channel();
        self.jobs.send(Job { message, answer }).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }
}

struct ConnectionState<R, W> {
    reader: R,
    writer: W,
    waiting: HashMap<u16, PendingReply>,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
    unflushed: bool,
    answered: Arc<AtomicBool>,
    heard: Instant,
    used: Instant,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ConnectionState<R, W> {
    async fn serve(&mut self, mut jobs: mpsc::Receiver<Job>) -> Result<(), Error> {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            let takes = self.waiting.len() < MAX_PENDING_QUERIES && self.leaving.len() < BACKLOG;
            let sends = !self.leaving.is_empty();
            tokio::select! {
                job = jobs.recv(), if takes => match job {
                    Some(job) => self.take(job)?,
                    None => return Ok(()),
                },
                read = self.reader.read_buf(&mut self.arrived) => {
                    if read? == 0 {
                        return Err(Error::Closed);
                    }
                    self.deliver()?;
                },
                sent = send(&mut self.writer, &self.leaving), if sends || self.unflushed => {
                    self.leaving.drain(..sent?);
                    self.unflushed = sends;
                },
                now = ticks.tick() => self.sweep(now)?,
            }
        }
    }

    fn take(&mut self, job: Job) -> Result<(), Error> {
        let Job { mut message, answer } = job;
        let Ok(length) = u16::try_from(message.len()) else {
            let _ = answer.send(Err(Error::Broken));
            return Ok(());
        };
        if answer.is_closed() {
            return Ok(());
        }
        let id = loop {
            let id = u16::from_be_bytes(random()?);
            // At most MOST of 65536 are taken.
            if !self.waiting.contains_key(&id) {
                break id;
            }
        };
        message[..2].copy_from_slice(&id.to_be_bytes());
        self.leaving.extend_from_slice(&length.to_be_bytes());
        self.leaving.extend_from_slice(&message);
        self.used = Instant::now();
        self.waiting.insert(id, PendingReply { sent: message, since: self.used, answer });
        Ok(())
    }

    /// Hands out the messages that are whole.
    fn deliver(&mut self) -> Result<(), Error> {
        self.heard = Instant::now();
        let mut at = 0;
        while let Some(&[a, b]) = self.arrived.get(at..at + 2) {
            let length = usize::from(u16::from_be_bytes([a, b]));
            let Some(message) = self.arrived.get(at + 2..at + 2 + length) else {
                break;
            };
            at += 2 + length;
            let Some(&[a, b]) = message.get(..2) else {
                return Err(Error::Broken);
            };
            let id = u16::from_be_bytes([a, b]);
            // Reply to a query that has ended.
            let Some(waiting) = self.waiting.get(&id) else {
                continue;
            };
            match check_reply(message, &waiting.sent) {
                Verdict::Fits(head) => {
                    self.answered.store(true, Ordering::Relaxed);
                    if let Some(waiting) = self.waiting.remove(&id) {
                        let _ = waiting.answer.send(Ok((message.to_vec(), head)));
                    }
                }
                Verdict::Broken => {
                    if let Some(waiting) = self.waiting.remove(&id) {
                        let _ = waiting.answer.send(Err(Error::Broken));
                    }
                }
                Verdict::Stranger | Verdict::OtherCase => {}
            }
        }
        self.arrived.drain(..at);
        Ok(())
    }

    fn sweep(&mut self, now: Instant) -> Result<(), Error> {
        let heard = self.heard;
        let mut stuck = false;
        self.waiting.retain(|_, waiting| {
            let given_up = waiting.answer.is_closed() && now - waiting.since > STALL_TIMEOUT;
            stuck |= given_up && waiting.since >= heard;
            !given_up
        });
        if stuck {
            return Err(Error::Timeout);
        }
        if self.waiting.is_empty() && now - self.used > IDLE {
            return Err(Error::Closed);
        }
        Ok(())
    }
}

/// Reads some of these bytes, or buffered ones first. Cancel-safe.
async fn send<W: AsyncWrite + Unpin>(writer: &mut W, leaving: &[u8]) -> Result<usize, Error> {
    if leaving.is_empty() {
        writer.flush().await?;
        return Ok(0);
    }
    match writer.write(leaving).await? {
        0 => Err(Error::Closed),
        sent => Ok(sent),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::DuplexStream;

    use super::super::message::{QueryEncoding, UpstreamQuery, question_of, root_question};
    use super::*;

    async fn read(stream: &mut DuplexStream) -> Vec<u8> {
        let length = stream.read_u16().await.unwrap();
        let mut message = vec![0; usize::from(length)];
        stream.read_exact(&mut message).await.unwrap();
        message
    }

    async fn write(stream: &mut DuplexStream, message: &[u8]) {
        stream.write_u16(message.len() as u16).await.unwrap();
        stream.write_all(message).await.unwrap();
    }

    fn question(qtype: u16) -> Vec<u8> {
        UpstreamQuery { qtype, ..root_question() }.message(&QueryEncoding::default())
    }

    /// An empty answer.
    fn answer(to: &[u8]) -> Vec<u8> {
        let mut message = to[..2].to_vec();
        message.extend_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
        message.extend_from_slice(question_of(to).unwrap());
        message
    }

    #[tokio::test]
    async fn replies_match_their_queries_in_any_order() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let pipe = PipelinedConnection::new(ours);
        let server = async {
            let first = read(&mut theirs).await;
            let second = read(&mut theirs).await;
            assert_ne!(first[..2], second[..2]);
            write(&mut theirs, &answer(&second)).await;
            write(&mut theirs, &answer(&first)).await;
        };
        let (_, one, two) = tokio::join!(server, pipe.send_query(question(1)), pipe.send_query(question(2)));
        assert_eq!(question_of(&one.unwrap().0), Some(&b"\0\0\x01\0\x01"[..]));
        assert_eq!(question_of(&two.unwrap().0), Some(&b"\0\0\x02\0\x01"[..]));
    }

    #[tokio::test]
    async fn replies_to_other_queries_are_ignored() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let pipe = PipelinedConnection::new(ours);
        let server = async {
            let asked = read(&mut theirs).await;
            let mut other_id = answer(&asked);
            other_id[0] ^= 1;
            let mut other_question = answer(&asked);
            *other_question.last_mut().unwrap() = 3;
            write(&mut theirs, &other_id).await;
            write(&mut theirs, &other_question).await;
            write(&mut theirs, &answer(&asked)).await;
        };
        let (_, answered) = tokio::join!(server, pipe.send_query(question(1)));
        assert_eq!(answered.unwrap().1.rcode, 0);
    }

    #[tokio::test]
    async fn a_closed_connection_fails_all_pending_queries() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let pipe = PipelinedConnection::new(ours);
        let server = async move {
            let first = read(&mut theirs).await;
            read(&mut theirs).await;
            write(&mut theirs, &answer(&first)).await;
            // Half of an answer.
            theirs.write_all(&[0, 40, 1]).await.unwrap();
        };
        let (one, two, _) = tokio::join!(pipe.send_query(question(1)), pipe.send_query(question(2)), server);
        assert_eq!([one.is_ok(), two.is_ok()].iter().filter(|ok| **ok).count(), 1);
        assert!(matches!(pipe.send_query(question(1)).await, Err(Error::Closed)));
        assert!(!pipe.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_brings_nothing_is_given_up() {
        let (ours, theirs) = tokio::io::duplex(4096);
        let pipe = PipelinedConnection::new(ours);
        let given_up = tokio::time::timeout(Duration::from_secs(1), pipe.send_query(question(1))).await;
        assert!(given_up.is_err());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(!pipe.is_open());
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed_and_a_used_one_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let pipe = PipelinedConnection::new(ours);
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let server = async {
                let asked = read(&mut theirs).await;
                write(&mut theirs, &answer(&asked)).await;
            };
            tokio::join!(server, pipe.send_query(question(1))).1.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert!(!pipe.is_open());
    }
}
