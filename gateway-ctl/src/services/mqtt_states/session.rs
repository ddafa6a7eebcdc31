//! Session with an MQTT broker (version 3.1.1): packets of `rumqttc` over a connection of the gateway's own.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rumqttc::mqttbytes::v4::{
    ConnAck, Connect, ConnectReturnCode, LastWill, Packet, PubAck, Publish, Subscribe,
};
use rumqttc::mqttbytes::{Error as CodecError, QoS};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum length of a packet in either direction.
const MAX_PACKET_BYTES: usize = 64 << 10;
/// Time without a packet after which the broker gives the session up.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Deadline of an acknowledgement.
const ACK_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason why a session ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the broker refuses the session: {0:?}")]
    Refused(ConnectReturnCode),
    #[error("the broker does not speak MQTT 3.1.1: {0}")]
    Codec(CodecError),
    #[error("the broker did not answer in time")]
    Timeout,
    #[error("the egress of the session is not usable any more")]
    EgressGone,
}

/// Sign-in and last will of a session.
pub(super) struct SessionOptions {
    pub client_id: String,
    /// User and password.
    pub login: Option<(String, String)>,
    /// Topic and message that the broker publishes when the session breaks.
    pub last_will: Option<(String, &'static str)>,
}

/// Open session.
pub(super) struct Session<S> {
    stream: S,
    received: BytesMut,
    last_id: u16,
    /// Retained messages of subscriptions that arrived while something else was expected.
    retained: Vec<Publish>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Time after which [`Session::ping`] is due.
    pub(super) const PING_INTERVAL: Duration = Duration::from_secs(25);

    pub(super) async fn open(stream: S, options: SessionOptions) -> Result<Session<S>, SessionError> {
        let mut connect = Connect::new(options.client_id);
        connect.keep_alive = u16::try_from(KEEP_ALIVE.as_secs()).unwrap_or(u16::MAX);
        if let Some((user, password)) = options.login {
            connect.set_login(user, password);
        }
        connect.last_will =
            options.last_will.map(|(topic, message)| LastWill::new(topic, message, QoS::AtLeastOnce, true));
        let mut session = Session { stream, received: BytesMut::new(), last_id: 0, retained: Vec::new() };
        session.write(&Packet::Connect(connect)).await?;
        match session.read_in_time().await? {
            Packet::ConnAck(ConnAck { code: ConnectReturnCode::Success, .. }) => Ok(session),
            Packet::ConnAck(ConnAck { code, .. }) => Err(SessionError::Refused(code)),
            _ => Err(SessionError::Codec(CodecError::PayloadRequired)),
        }
    }

    /// Publishes a retained message, and waits until the broker has it.
    pub(super) async fn publish(&mut self, topic: &str, message: &str) -> Result<(), SessionError> {
        self.send(topic, message, true).await
    }

    /// Publishes a message for those who listen now, and waits until the broker has it.
    pub(super) async fn publish_once(&mut self, topic: &str, message: &str) -> Result<(), SessionError> {
        self.send(topic, message, false).await
    }

    async fn send(&mut self, topic: &str, message: &str, retain: bool) -> Result<(), SessionError> {
        let id = self.next_id();
        let mut publish =
            Publish::from_bytes(topic, QoS::AtLeastOnce, Bytes::copy_from_slice(message.as_bytes()));
        (publish.retain, publish.pkid) = (retain, id);
        self.write(&Packet::Publish(publish)).await?;
        self.expect(|packet| matches!(packet, Packet::PubAck(PubAck { pkid, .. }) if *pkid == id)).await
    }

    /// Subscribes to topics.
    pub(super) async fn subscribe(&mut self, filters: &[String]) -> Result<(), SessionError> {
        for filter in filters {
            let id = self.next_id();
            let mut subscribe = Subscribe::new(filter, QoS::AtMostOnce);
            subscribe.pkid = id;
            self.write(&Packet::Subscribe(subscribe)).await?;
            self.expect(|packet| matches!(packet, Packet::SubAck(ack) if ack.pkid == id)).await?;
        }
        Ok(())
    }

    /// Asks the broker for a sign of life.
    pub(super) async fn ping(&mut self) -> Result<(), SessionError> {
        self.write(&Packet::PingReq).await?;
        self.expect(|packet| *packet == Packet::PingResp).await
    }

    /// Returns the topics of retained messages that have arrived so far.
    pub(super) fn take_retained(&mut self) -> Vec<String> {
        self.retained.drain(..).map(|publish| publish.topic).collect()
    }

    /// Ends the session, so that the broker does not publish the last will.
    pub(super) async fn close(mut self) {
        if self.write(&Packet::Disconnect).await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }

    fn next_id(&mut self) -> u16 {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.last_id
    }

    async fn expect(&mut self, is_expected: impl Fn(&Packet) -> bool) -> Result<(), SessionError> {
        loop {
            let packet = self.read_in_time().await?;
            if is_expected(&packet) {
                return Ok(());
            }
            if let Packet::Publish(publish) = packet
                && publish.retain
                && !publish.payload.is_empty()
            {
                self.retained.push(publish);
            }
        }
    }

    async fn read_in_time(&mut self) -> Result<Packet, SessionError> {
        tokio::time::timeout(ACK_TIMEOUT, self.read()).await.unwrap_or(Err(SessionError::Timeout))
    }

    async fn read(&mut self) -> Result<Packet, SessionError> {
        loop {
            match Packet::read(&mut self.received, MAX_PACKET_BYTES) {
                Ok(packet) => return Ok(packet),
                Err(CodecError::InsufficientBytes(_)) => {}
                Err(error) => return Err(SessionError::Codec(error)),
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }

    async fn write(&mut self, packet: &Packet) -> Result<(), SessionError> {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, MAX_PACKET_BYTES).map_err(SessionError::Codec)?;
        let written = tokio::time::timeout(ACK_TIMEOUT, self.stream.write_all(&bytes));
        written.await.map_err(|_| SessionError::Timeout)??;
        Ok(())
    }
}
