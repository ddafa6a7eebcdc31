//! A connection to the relay: introductions, then packets both ways.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::coordinator::Coordinator;
use crate::derp::frame::{ClientFrame, HEADER, ServerFrame, parse_client, parse_header};
use crate::derp::{Attachment, introduction};
use crate::keys::{KeyPair, NodeKey};

const INTRODUCTION_TIME: Duration = Duration::from_secs(10);
/// Clients give a silent relay up after 120 s.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// A client that takes this long to read a frame is gone.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// Serves a client of the relay until it ends.
pub(super) async fn serve<S>(coordinator: Arc<Coordinator>, identity: KeyPair, from: IpAddr, socket: S)
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (mut reader, mut writer) = tokio::io::split(socket);
    let introduced =
        timeout(INTRODUCTION_TIME, introduce(&coordinator, &identity, &mut reader, &mut writer)).await;
    let key = match introduced {
        Ok(Ok(key)) => key,
        Ok(Err(error)) => return tracing::debug!(%from, "relay: {error}"),
        Err(_) => return tracing::debug!(%from, "relay: the client does not introduce itself"),
    };
    let Some((attachment, frames)) = coordinator.switch().attach(key) else {
        return tracing::warn!(%from, "relay: there are too many clients");
    };
    // Admitted before, and perhaps removed since: the removal of a node detaches its clients.
    if !coordinator.admits(key) {
        return;
    }
    let ended = tokio::select! {
        ended = receive(&attachment, &mut reader) => ended,
        ended = send(frames, &mut writer) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%from, "relay: {error}");
    }
}

async fn introduce<R, W>(
    coordinator: &Coordinator,
    relay: &KeyPair,
    reader: &mut R,
    writer: &mut W,
) -> io::Result<NodeKey>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    write(writer, &ServerFrame::Key(relay.public())).await?;
    let mut content = Vec::new();
    let header = read_header(reader).await?;
    if header.length > introduction::LONGEST {
        return Err(invalid("the introduction is too long"));
    }
    read_content(reader, header.length, &mut content).await?;
    let ClientFrame::Info { key, sealed } = parse_client(header, &content).map_err(invalid)? else {
        return Err(invalid("the first frame is no introduction"));
    };
    introduction::open(relay, key, sealed).map_err(invalid)?;
    if !coordinator.admits(key) {
        return Err(invalid("the client is no node of the mesh"));
    }
    let sealed = introduction::seal(relay, key).map_err(invalid)?;
    write(writer, &ServerFrame::Info(sealed)).await?;
    Ok(key)
}

async fn receive<R: AsyncRead + Unpin>(attachment: &Attachment, reader: &mut R) -> io::Result<()> {
    let mut content = Vec::new();
    loop {
        let header = read_header(reader).await?;
        read_content(reader, header.length, &mut content).await?;
        match parse_client(header, &content).map_err(invalid)? {
            ClientFrame::Send { to, packet } => attachment.send(to, packet),
            ClientFrame::Ping(number) => attachment.reply(ServerFrame::Pong(number)),
            ClientFrame::Info { .. } => return Err(invalid("the client introduces itself again")),
            ClientFrame::Preferred(_) | ClientFrame::Pong(_) | ClientFrame::Other => {}
        }
    }
}

async fn send<W: AsyncWrite + Unpin>(
    mut frames: mpsc::Receiver<ServerFrame>,
    writer: &mut W,
) -> io::Result<()> {
    loop {
        let frame = match timeout(KEEP_ALIVE, frames.recv()).await {
            Ok(Some(frame)) => frame,
            // Detached.
            Ok(None) => return Ok(()),
            Err(_) => ServerFrame::KeepAlive,
        };
        timeout(WRITE_TIME, write(writer, &frame)).await.map_err(io::Error::from)??;
    }
}

async fn read_header<R: AsyncRead + Unpin>(reader: &mut R) -> io::Result<crate::derp::frame::FrameHeader> {
    let mut header = [0; HEADER];
    reader.read_exact(&mut header).await?;
    parse_header(header).map_err(invalid)
}

async fn read_content<R: AsyncRead + Unpin>(
    reader: &mut R,
    length: usize,
    content: &mut Vec<u8>,
) -> io::Result<()> {
    content.resize(length, 0);
    reader.read_exact(content).await.map(drop)
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, frame: &ServerFrame) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    writer.write_all(&bytes).await?;
    writer.flush().await
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
