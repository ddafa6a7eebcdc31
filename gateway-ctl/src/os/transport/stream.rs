//! A tunnel's datagrams in one TCP connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use gateway_outbound::{Keepalive, KernelSockets, Sockets};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::frames::{Frames, HEADER, header};
use super::{MOST_DATAGRAM, Near};
use crate::os::proxy::Unreached;

/// Datagrams that wait go out in one write, up to this many bytes.
const BATCH: usize = 2 * (HEADER + MOST_DATAGRAM);
/// A connection whose other end is gone is noticed after so long, whether something is sent or not.
const KEEPALIVE: Keepalive = Keepalive {
    idle: Duration::from_secs(15),
    probes: Some((Duration::from_secs(3), 3)),
    unacknowledged: Duration::from_secs(20),
};

pub async fn open(address: SocketAddr, mark: u32) -> Result<TcpStream, Unreached> {
    KernelSockets { keepalive: KEEPALIVE }.connect(address, mark).await.map_err(Unreached::Connect)
}

pub fn watch_over(stream: &TcpStream) -> io::Result<()> {
    KEEPALIVE.apply(stream)
}

/// Carries datagrams both ways; why it ended.
pub async fn carry(mut far: TcpStream, near: &Near) -> String {
    let (mut read, mut write) = far.split();
    let up = async {
        let mut buffer = vec![0; BATCH];
        loop {
            let length = near.receive(&mut buffer[HEADER..HEADER + MOST_DATAGRAM]).await?;
            let mut filled = put_header(&mut buffer, 0, length);
            while filled + HEADER + MOST_DATAGRAM <= BATCH {
                let place = filled + HEADER..filled + HEADER + MOST_DATAGRAM;
                let Ok(length) = near.try_receive(&mut buffer[place]) else { break };
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
                near.give(datagram);
            }
        }
    };
    let ended: io::Result<String> = tokio::select! {
        ended = up => ended,
        ended = down => ended,
    };
    ended.unwrap_or_else(|error| format!("the connection broke: {error}"))
}

/// Where the next datagram goes.
fn put_header(buffer: &mut [u8], at: usize, length: usize) -> usize {
    buffer[at..at + HEADER].copy_from_slice(&header(length));
    at + HEADER + length
}
