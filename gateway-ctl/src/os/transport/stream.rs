//! A tunnel's datagrams in one TCP connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_outbound::{Keepalive, KernelSockets, Sockets};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::frames::{Frames, HEADER, MOST_DATAGRAM, header};
use super::local_socket::LocalSocket;
use crate::os::proxy::ConnectError;

/// Size limit of one write that combines waiting datagrams, in bytes.
const BATCH: usize = 2 * (HEADER + MOST_DATAGRAM);
/// Keepalive that detects the loss of the remote end within a bounded time, for idle and busy connections.
const KEEPALIVE: Keepalive = Keepalive {
    idle: Duration::from_secs(15),
    probes: Some((Duration::from_secs(3), 3)),
    unacknowledged: Duration::from_secs(20),
};

pub(super) async fn open(address: SocketAddr, mark: Option<Mark>) -> Result<TcpStream, ConnectError> {
    KernelSockets { keepalive: KEEPALIVE }.connect(address, mark).await.map_err(ConnectError::Connect)
}

pub(super) fn watch_over(stream: &TcpStream) -> io::Result<()> {
    KEEPALIVE.apply(stream)
}

/// Forwards datagrams in both directions. Returns the reason for the end.
pub(super) async fn forward(mut far: TcpStream, near: &LocalSocket) -> String {
    let (mut read, mut write) = far.split();
    let up = async {
        let mut buffer = vec![0; BATCH];
        loop {
            let length = near.receive(&mut buffer[HEADER..HEADER + MOST_DATAGRAM]).await?;
            let mut filled = put_header(&mut buffer, 0, length);
            while filled + HEADER + MOST_DATAGRAM <= BATCH {
                let range = filled + HEADER..filled + HEADER + MOST_DATAGRAM;
                let Ok(length) = near.try_receive(&mut buffer[range]) else { break };
                filled = put_header(&mut buffer, filled, length);
            }
            write.write_all(&buffer[..filled]).await?;
        }
    };
    let down = async {
        let mut frames = Frames::new();
        loop {
            let bytes = read.read(frames.room()).await?;
            if bytes == 0 {
                return Ok("the far end closed the connection".to_owned());
            }
            frames.filled(bytes);
            while let Some(datagram) = frames.next() {
                near.send_to_tunnel(datagram);
            }
        }
    };
    let ended: io::Result<String> = tokio::select! {
        ended = up => ended,
        ended = down => ended,
    };
    ended.unwrap_or_else(|error| format!("the connection broke: {error}"))
}

/// Writes the header of a datagram and returns the offset behind the datagram.
fn put_header(buffer: &mut [u8], at: usize, length: usize) -> usize {
    buffer[at..at + HEADER].copy_from_slice(&header(length));
    at + HEADER + length
}
