//! A tunnel's datagrams through a SOCKS5 proxy (RFC 1928, section 7).

use std::future::ready;
use std::net::SocketAddr;

use gateway_common::wire::Mark;
use gateway_outbound::socks5::{Destination, datagram_header, read_datagram};
use gateway_outbound::{KernelSockets, associate};
use tokio::net::{TcpStream, UdpSocket};

use super::frames::MOST_DATAGRAM;
use super::local_socket::LocalSocket;
use super::stream::watch_over;
use crate::os::proxy::{ConnectError, over, send};

/// An association with the proxy.
pub(super) struct Association {
    /// The association ends with this connection.
    control: TcpStream,
    upstream: UdpSocket,
    header: Vec<u8>,
    /// Accepted sender of replies, or any sender if the proxy resolves a name.
    from: Option<SocketAddr>,
}

pub(super) async fn open(
    proxy: SocketAddr,
    mark: Option<Mark>,
    to: &str,
) -> Result<Association, ConnectError> {
    let from: Option<SocketAddr> = to.parse().ok();
    let destination = match (from, to.rsplit_once(':')) {
        (Some(address), _) => Destination::Address(address),
        (None, Some((name, port))) => {
            let port = port.parse().map_err(|_| ConnectError::NoAddress)?;
            Destination::Name(name.to_owned(), port)
        }
        (None, None) => return Err(ConnectError::NoAddress),
    };
    let header = datagram_header(&destination).map_err(|_| ConnectError::NoAddress)?;
    let (control, upstream) = associate(&KernelSockets::PATIENT, proxy, mark, ready(None)).await?;
    watch_over(&control).map_err(ConnectError::Connect)?;
    Ok(Association { control, upstream, header, from })
}

impl Association {
    /// Forwards datagrams in both directions. Returns the reason for the end.
    pub(super) async fn forward(&self, near: &LocalSocket) -> String {
        let up = async {
            let mut buffer = vec![0; MOST_DATAGRAM];
            loop {
                let length = match near.receive(&mut buffer).await {
                    Ok(length) => length,
                    Err(error) => return error.to_string(),
                };
                // A full socket loses datagrams, as any queue does.
                let _ = send(&self.upstream, &self.header, &buffer[..length]);
            }
        };
        let down = async {
            let mut buffer = vec![0; MOST_DATAGRAM];
            loop {
                let length = match self.upstream.recv(&mut buffer).await {
                    Ok(length) => length,
                    Err(error) => return format!("the proxy's socket is gone: {error}"),
                };
                if let Some((Some(from), start)) = read_datagram(&buffer[..length])
                    && self.from.is_none_or(|wanted| wanted == from)
                {
                    near.send_to_tunnel(&buffer[start..length]);
                }
            }
        };
        tokio::select! {
            ended = up => ended,
            ended = down => ended,
            () = over(&self.control) => "the proxy ended the association".to_owned(),
        }
    }
}
