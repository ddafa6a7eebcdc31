//! Session with a NATS server over a connection of the gateway's own.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use gateway_core::federation::bus::hub::MAX_PAYLOAD_BYTES;
use gateway_core::federation::bus::wire::{
    self, Greeting, Incoming, Message, SignIn, WireError, connect, parse, publish, subscribe,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Deadline of each step of the sign-in, of an answer, and of a write.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest message that is read: the payload, and headers of the server.
const MAX_MESSAGE_BYTES: usize = MAX_PAYLOAD_BYTES + (64 << 10);
/// Number of pings without an answer after which the session counts as dead.
const MAX_PINGS: u32 = 2;
/// Number of messages that wait while an answer is due.
const MAX_WAITING: usize = 1024;
/// Subscription of the answers to this session.
const INBOX: u64 = 1;

/// Connection to a hub, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Reason why a session ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the server does not speak the protocol of NATS: {0}")]
    Wire(#[from] WireError),
    #[error("the server has sent something else than its greeting")]
    Greeting,
    #[error("the server refuses: {0}")]
    Refused(String),
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the server sends more than is read")]
    Overrun,
}

/// Open session.
pub(super) struct Session {
    stream: Box<dyn Stream>,
    received: BytesMut,
    /// Subject of the answers to this session, without its last token.
    inbox: String,
    requests: u64,
    subscriptions: u64,
    /// Messages of other subscriptions that arrived while an answer was due.
    waiting: VecDeque<Message>,
    unanswered_pings: u32,
    /// The last permission that was missing.
    pub(super) denied: Option<String>,
}

/// Reads the greeting, and not a byte more: TLS may begin behind it.
pub(super) async fn greeting(stream: &mut (impl AsyncRead + Unpin)) -> Result<Greeting, SessionError> {
    let mut received = Vec::new();
    loop {
        match parse(&received, 0)? {
            Some((Incoming::Greeting(greeting), _)) => return Ok(greeting),
            Some(_) => return Err(SessionError::Greeting),
            None => received.push(stream.read_u8().await?),
        }
    }
}

impl Session {
    /// Signs in. `inbox` is the subject of answers, without its last token.
    pub(super) async fn open(
        stream: Box<dyn Stream>,
        name: &str,
        is_tls: bool,
        sign_in: &SignIn,
        inbox: String,
    ) -> Result<Session, SessionError> {
        let mut session = Session {
            stream,
            received: BytesMut::new(),
            inbox,
            requests: 0,
            subscriptions: INBOX,
            waiting: VecDeque::new(),
            unanswered_pings: 0,
            denied: None,
        };
        session.write(&connect(name, env!("CARGO_PKG_VERSION"), is_tls, sign_in)).await?;
        in_time(session.signed_in()).await?;
        let answers = format!("{}.*", session.inbox);
        session.write(&subscribe(&answers, INBOX)).await?;
        Ok(session)
    }

    /// Waits for the answer to the ping behind the sign-in.
    async fn signed_in(&mut self) -> Result<(), SessionError> {
        loop {
            match self.pop()? {
                Some(Incoming::Pong) => return Ok(()),
                Some(incoming) => drop(self.handle(incoming).await?),
                None => self.fill().await?,
            }
        }
    }

    /// Subscribes to a subject. Returns the number of the subscription.
    pub(super) async fn subscribe(&mut self, subject: &str) -> Result<u64, SessionError> {
        self.subscriptions += 1;
        let bytes = subscribe(subject, self.subscriptions);
        self.write(&bytes).await?;
        Ok(self.subscriptions)
    }

    /// Reads more bytes. Losing the future loses nothing.
    pub(super) async fn fill(&mut self) -> Result<(), SessionError> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    /// Returns the next message of a subscription among what was read.
    pub(super) async fn take(&mut self) -> Result<Option<Message>, SessionError> {
        if let Some(message) = self.waiting.pop_front() {
            return Ok(Some(message));
        }
        while let Some(incoming) = self.pop()? {
            // A late answer has no request any more.
            if let Some(message) = self.handle(incoming).await?
                && message.subscription != INBOX
            {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Publishes a message and returns the answer to it.
    pub(super) async fn request(&mut self, subject: &str, payload: &[u8]) -> Result<Message, SessionError> {
        self.requests += 1;
        let reply_to = format!("{}.{}", self.inbox, self.requests);
        let denied = self.denied.take();
        self.write(&publish(subject, &reply_to, payload)).await?;
        let answer = in_time(self.answer(subject, &reply_to)).await;
        if self.denied.is_none() {
            self.denied = denied;
        }
        answer
    }

    async fn answer(&mut self, subject: &str, reply_to: &str) -> Result<Message, SessionError> {
        loop {
            while let Some(incoming) = self.pop()? {
                let Some(message) = self.handle(incoming).await? else { continue };
                match message.subscription {
                    INBOX if message.subject == reply_to => return Ok(message),
                    INBOX => {}
                    _ if self.waiting.len() == MAX_WAITING => return Err(SessionError::Overrun),
                    _ => self.waiting.push_back(message),
                }
            }
            let is_denied = |denied: &&String| denied.contains(&format!("\"{subject}\""));
            if let Some(denied) = self.denied.as_ref().filter(is_denied) {
                return Err(SessionError::Refused(denied.clone()));
            }
            self.fill().await?;
        }
    }

    /// Asks for a sign of life. Fails if earlier ones were not answered.
    pub(super) async fn ping(&mut self) -> Result<(), SessionError> {
        if self.unanswered_pings == MAX_PINGS {
            return Err(SessionError::Timeout);
        }
        self.unanswered_pings += 1;
        self.write(wire::PING).await
    }

    fn pop(&mut self) -> Result<Option<Incoming>, WireError> {
        let Some((incoming, length)) = parse(&self.received, MAX_MESSAGE_BYTES)? else { return Ok(None) };
        self.received.advance(length);
        Ok(Some(incoming))
    }

    /// Returns the message, and answers what is none.
    async fn handle(&mut self, incoming: Incoming) -> Result<Option<Message>, SessionError> {
        match incoming {
            Incoming::Message(message) => return Ok(Some(message)),
            Incoming::Ping => self.write(wire::PONG).await?,
            Incoming::Pong => self.unanswered_pings = 0,
            // The server keeps the session.
            Incoming::Error(error) if error.starts_with("Permissions Violation") => {
                tracing::warn!(error, "the hub of the federation denies a subject");
                self.denied = Some(error);
            }
            Incoming::Error(error) => return Err(SessionError::Refused(error)),
            Incoming::Greeting(_) | Incoming::Ok => {}
        }
        Ok(None)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        tokio::time::timeout(TIMEOUT, write).await.map_err(|_| SessionError::Timeout)??;
        Ok(())
    }
}

/// Returns the result of a step if it comes in time.
pub(super) async fn in_time<T>(
    step: impl Future<Output = Result<T, SessionError>>,
) -> Result<T, SessionError> {
    tokio::time::timeout(TIMEOUT, step).await.unwrap_or(Err(SessionError::Timeout))
}
