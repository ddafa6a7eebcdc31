//! Queries over QUIC (RFC 9250): one connection with a stream for each query.
//!
//! Each connection has a socket of its own, made and marked before the library gets it: ports, tickets and tokens that
//! two connections share would link query routes. Datagrams stay at 1 200 bytes: answers fit in few, and no path is
//! probed.

mod datagrams;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ConnectionError, Endpoint, EndpointConfig, ReadError, ReadExactError, RecvStream, SendStream,
    TokioRuntime, TransportConfig, VarInt, WriteError,
};
use rustls::ClientConfig;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use self::datagrams::Datagrams;
use super::error::Error;
use super::message::{ReplyHeader, Verdict, check_reply, has_keepalive};
use super::stall::StallDetector;
use gateway_outbound::{Tls, UdpPath};

/// ALPN identifier (RFC 9250, section 4.1.1).
pub(super) const PROTOCOL: &[u8] = b"doq";
/// Idle timeout of a connection.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of answers that the server may send ahead: of one, of all.
const ANSWER: u32 = 1 << 17;
const ANSWERS: u32 = 1 << 22;

// RFC 9250, section 4.3.
const NO_ERROR: VarInt = VarInt::from_u32(0);
const PROTOCOL_ERROR: VarInt = VarInt::from_u32(2);
const REQUEST_CANCELLED: VarInt = VarInt::from_u32(3);

/// First QUIC error code of TLS alerts (RFC 9001, section 4.8).
const ALERTS: u64 = 0x100;

#[derive(Clone, Debug)]
pub(super) struct Streams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connection: quinn::Connection,
    stall: StallDetector,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.connection.close(NO_ERROR, b"");
    }
}

impl Streams {
    /// Agrees with the server that has this name.
    pub(super) async fn open(
        path: UdpPath,
        tls: (&dyn Tls, Arc<ClientConfig>),
        name: &str,
        to: SocketAddr,
    ) -> Result<Streams, Error> {
        let (tls, config) = tls;
        let crypto = QuicClientConfig::try_from(config).map_err(reply)?;
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport()?));
        let (header, control) = path.wrapper.map(|wrapper| (wrapper.header, wrapper.control)).unzip();
        let datagrams = Arc::new(Datagrams::new(path.socket, to, header.unwrap_or_default()));
        // Each connection has its own port, so that observers cannot link two of them.
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            None,
            datagrams.clone(),
            Arc::new(TokioRuntime),
        )?;
        let connecting = endpoint.connect_with(config, to, name).map_err(reply)?;
        let connection = tokio::select! {
            connected = connecting => connected.map_err(|error| refused(tls, &error))?,
            error = datagrams.failed() => return Err(error),
        };
        if let Some(control) = control {
            tokio::spawn(hold(control, connection.clone()));
        }
        Ok(Streams(Arc::new(Inner { connection, stall: StallDetector::default() })))
    }

    pub(super) fn is_open(&self) -> bool {
        !self.0.stall.has_stopped() && self.0.connection.close_reason().is_none()
    }

    pub(super) fn is(&self, other: &Streams) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn has_answered(&self) -> bool {
        self.0.stall.has_answered()
    }

    pub(super) async fn send_query(&self, mut message: Vec<u8>) -> Result<(Vec<u8>, ReplyHeader), Error> {
        // RFC 9250, section 4.2.1.
        message[..2].fill(0);
        let _waiting = self.0.stall.wait();
        let (send, recv) = self.0.connection.open_bi().await.map_err(lost)?;
        let mut stream = Stream { send, recv, whole: false };
        let answer = stream.exchange(&message).await;
        let verdict = match answer {
            Ok(answer) => match check_reply(&answer, &message) {
                Verdict::Fits(head) if !has_keepalive(&answer) => Ok((answer, head)),
                _ => Err(Error::Broken),
            },
            Err(error) => Err(error),
        };
        match &verdict {
            Ok(_) => self.0.stall.answered(),
            // Who breaks the protocol once is not to be believed the next time (section 4.3.3).
            Err(Error::Broken) => self.0.connection.close(PROTOCOL_ERROR, b""),
            Err(_) => {}
        }
        verdict
    }
}

fn transport() -> Result<TransportConfig, Error> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IDLE.try_into().map_err(reply)?))
        // Servers begin no streams (section 4.2).
        .max_concurrent_bidi_streams(0u8.into())
        .max_concurrent_uni_streams(0u8.into())
        .stream_receive_window(ANSWER.into())
        .receive_window(ANSWERS.into())
        .datagram_receive_buffer_size(None)
        // It would reveal the distance of the server to observers.
        .allow_spin(false);
    Ok(transport)
}

/// Sends one query and returns its reply. Stops a stream that is not read to its end.
struct Stream {
    send: SendStream,
    recv: RecvStream,
    whole: bool,
}

impl Stream {
    async fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let length = u16::try_from(message.len()).map_err(|_| Error::Broken)?;
        self.send.write_all(&[&length.to_be_bytes(), message].concat()).await.map_err(unsent)?;
        // Otherwise the server may wait for more.
        self.send.finish().map_err(|_| Error::Closed)?;
        let mut length = [0; 2];
        self.recv.read_exact(&mut length).await.map_err(unread)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        self.recv.read_exact(&mut answer).await.map_err(unread)?;
        self.whole = true;
        // The end mostly comes along with the answer; there is no wait for it.
        match self.recv.read_chunk(1, true).now_or_never() {
            Some(Ok(Some(_))) => Err(Error::Broken),
            _ => Ok(answer),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let code = if self.whole { NO_ERROR } else { REQUEST_CANCELLED };
        // Streams that have ended, or whose connection has, need no notification.
        let _ = self.recv.stop(code);
        if !self.whole {
            let _ = self.send.reset(code);
        }
    }
}

/// Ends the connection when the proxy ends the relay, and the reverse.
async fn hold(mut control: TcpStream, connection: quinn::Connection) {
    tokio::select! {
        // A proxy sends nothing more there.
        _ = control.read_u8() => connection.close(NO_ERROR, b""),
        _ = connection.closed() => {}
    }
}

fn reply(error: impl ToString) -> Error {
    Error::Quic(error.to_string().into())
}

/// Returns the reason for which no connection was made.
fn refused(tls: &dyn Tls, error: &ConnectionError) -> Error {
    match error {
        ConnectionError::TransportError(error) if u64::from(error.code) >= ALERTS => {
            Error::Tls(error.reason.as_str().into())
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) >= ALERTS => {
            match alert(close.error_code.into()) {
                // The post-quantum mode may be the reason.
                Some(alert) => Error::Tls(format!("refused by the server: {}", tls.explain(alert)).into()),
                None => Error::Tls(format!("refused by the server: {close}").into()),
            }
        }
        ConnectionError::TimedOut => Error::Timeout,
        other => reply(other),
    }
}

/// Returns the TLS alert that a QUIC error code carries (RFC 9001, section 4.8).
fn alert(code: u64) -> Option<std::io::Error> {
    let alert = u8::try_from(code.checked_sub(ALERTS)?).ok()?;
    Some(std::io::Error::other(rustls::Error::AlertReceived(alert.into())))
}

/// Returns the reason for which an established connection ended.
fn lost(error: ConnectionError) -> Error {
    match error {
        ConnectionError::TransportError(error) => reply(error),
        _ => Error::Closed,
    }
}

fn unsent(error: WriteError) -> Error {
    match error {
        WriteError::ConnectionLost(error) => lost(error),
        WriteError::Stopped(code) => reply(format!("the server wants no question, code {code}")),
        other => reply(other),
    }
}

fn unread(error: ReadExactError) -> Error {
    match error {
        ReadExactError::FinishedEarly(_) => Error::Broken,
        ReadExactError::ReadError(ReadError::ConnectionLost(error)) => lost(error),
        ReadExactError::ReadError(ReadError::Reset(code)) => {
            reply(format!("the server gave up on the question, code {code}"))
        }
        ReadExactError::ReadError(other) => reply(other),
    }
}
