//! A connection to a relay: introductions, then packets both ways.

use std::io;
use std::time::Duration;

use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::error::ClientError;
use super::upgrade::upgrade;
use crate::derp::frame::{ClientFrame, FrameError, HEADER, ServerFrame, parse_header, parse_server};
use crate::derp::introduction::{open_relay, seal_member};
use crate::keys::{KeyPair, NodeKey};

const PROTOCOL: &str = "DERP";
const INTRODUCTION_TIME: Duration = Duration::from_secs(20);
/// Relays send something at least each minute.
const SILENCE: Duration = Duration::from_secs(130);
const WRITE_TIME: Duration = Duration::from_secs(10);

/// A packet between this node and a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedPacket {
    pub peer: NodeKey,
    pub packet: Vec<u8>,
}

/// A node at a relay.
#[derive(Clone, Debug)]
pub struct RelayClient {
    /// Host as HTTP names it.
    pub host: String,
    pub node: KeyPair,
    /// True if peers reach the node at this relay.
    pub is_home: bool,
}

/// Exchanges packets by a relay until the connection ends, those that wait first. `opened` is called once the relay has
/// admitted the node.
pub async fn relay_packets<S>(
    socket: S,
    client: &RelayClient,
    outgoing: &mut mpsc::Receiver<RelayedPacket>,
    waiting: Option<RelayedPacket>,
    opened: impl FnOnce(),
    received: impl Fn(RelayedPacket),
) -> Result<(), ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let RelayClient { host, node, is_home } = client;
    let socket = upgrade(socket, host, (Method::GET, "/derp"), PROTOCOL, None).await?;
    let (mut reader, mut writer) = tokio::io::split(socket);
    let introduced = timeout(INTRODUCTION_TIME, introduce(node, *is_home, &mut reader, &mut writer)).await;
    introduced.map_err(|_| ClientError::Timeout)??;
    opened();
    if let Some(RelayedPacket { peer, packet }) = waiting {
        write(&mut writer, &ClientFrame::Send { to: peer, packet: &packet }).await?;
    }
    let (answers, mut to_answer) = mpsc::channel(1);
    tokio::select! {
        ended = receive(&mut reader, &answers, received) => ended,
        ended = send(outgoing, &mut to_answer, &mut writer) => ended,
    }
}

async fn introduce<R, W>(
    node: &KeyPair,
    is_home: bool,
    reader: &mut R,
    writer: &mut W,
) -> Result<(), ClientError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Some(ServerFrame::Key(relay)) = read(reader).await? else {
        return Err(ClientError::Protocol("the relay does not begin with its key"));
    };
    let sealed = seal_member(node, relay).map_err(io::Error::other)?;
    write(writer, &ClientFrame::Info { key: NodeKey(node.public()), sealed: &sealed }).await?;
    let Some(ServerFrame::Info(sealed)) = read(reader).await? else {
        return Err(ClientError::Protocol("the relay does not introduce itself"));
    };
    open_relay(node, relay, &sealed).map_err(io::Error::other)?;
    write(writer, &ClientFrame::Preferred(is_home)).await
}

async fn receive<R: AsyncRead + Unpin>(
    reader: &mut R,
    answers: &mpsc::Sender<[u8; 8]>,
    received: impl Fn(RelayedPacket),
) -> Result<(), ClientError> {
    loop {
        let frame = timeout(SILENCE, read(reader)).await.map_err(|_| ClientError::Timeout)??;
        match frame {
            Some(ServerFrame::Received { from, packet }) => received(RelayedPacket { peer: from, packet }),
            // A relay that sends more pings than it reads pongs needs no more of them.
            Some(ServerFrame::Ping(number)) => _ = answers.try_send(number),
            _ => {}
        }
    }
}

async fn send<W: AsyncWrite + Unpin>(
    outgoing: &mut mpsc::Receiver<RelayedPacket>,
    to_answer: &mut mpsc::Receiver<[u8; 8]>,
    writer: &mut W,
) -> Result<(), ClientError> {
    loop {
        let written = tokio::select! {
            packet = outgoing.recv() => {
                let Some(RelayedPacket { peer, packet }) = packet else { return Ok(()) };
                timeout(WRITE_TIME, write(writer, &ClientFrame::Send { to: peer, packet: &packet })).await
            }
            Some(number) = to_answer.recv() => timeout(WRITE_TIME, write(writer, &ClientFrame::Pong(number))).await,
        };
        written.map_err(|_| ClientError::Timeout)??;
    }
}

/// Reads a frame; none of those that have no use here.
async fn read<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Option<ServerFrame>, ClientError> {
    let mut header = [0; HEADER];
    reader.read_exact(&mut header).await?;
    let header = parse_header(header).map_err(invalid)?;
    let mut content = vec![0; header.length];
    reader.read_exact(&mut content).await?;
    Ok(parse_server(header, &content).map_err(invalid)?)
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, frame: &ClientFrame<'_>) -> Result<(), ClientError> {
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    writer.write_all(&bytes).await?;
    Ok(writer.flush().await?)
}

fn invalid(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
