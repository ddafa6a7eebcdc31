//! The socket of one connection, as the library wants it: straight to the server, or wrapped for a proxy.
//!
//! ICMP errors end a connection that is being established, so that another upstream is queried at once. They do not end
//! an established one, because anybody may have sent them.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gateway_outbound::{any_address, socks5};
use parking_lot::Mutex;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use super::super::error::Error;

/// The longest that may come.
const MAX_DATAGRAM_BYTES: usize = 65_535;

#[derive(Debug)]
pub(super) struct Datagrams {
    /// Hears one address only.
    socket: UdpSocket,
    to: SocketAddr,
    /// Of a proxy; empty without one.
    header: Vec<u8>,
    error: Mutex<Option<io::Error>>,
    failed: Notify,
}

impl Datagrams {
    pub(super) fn new(socket: UdpSocket, to: SocketAddr, header: Vec<u8>) -> Datagrams {
        Datagrams { socket, to, header, error: Mutex::default(), failed: Notify::new() }
    }

    /// Waits until the system reports an error of the path.
    pub(super) async fn failed(&self) -> Error {
        loop {
            self.failed.notified().await;
            let error = self.error.lock().take();
            if let Some(error) = error {
                return error.into();
            }
        }
    }

    fn note(&self, error: io::Error) {
        *self.error.lock() = Some(error);
        self.failed.notify_one();
    }

    fn receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.header.is_empty() {
            let mut buffer = ReadBuf::new(into);
            ready!(self.socket.poll_recv(cx, &mut buffer))?;
            return Poll::Ready(Ok(buffer.filled().len()));
        }
        let mut wrapped = vec![0; MAX_DATAGRAM_BYTES];
        let mut buffer = ReadBuf::new(&mut wrapped);
        ready!(self.socket.poll_recv(cx, &mut buffer))?;
        // An empty datagram counts as none: the library ignores it.
        let inside = socks5::payload(buffer.filled()).unwrap_or_default();
        let length = inside.len().min(into.len());
        into[..length].copy_from_slice(&inside[..length]);
        Poll::Ready(Ok(length))
    }
}

impl AsyncUdpSocket for Datagrams {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = match self.header.is_empty() {
            true => self.socket.try_send(transmit.contents),
            false => self.socket.try_send(&[&self.header, transmit.contents].concat()),
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            // Lost like any other datagram.
            Err(error) => {
                self.note(error);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (Some(into), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Ok(0));
        };
        match ready!(self.receive(cx, into)) {
            Ok(length) => {
                *meta = RecvMeta { addr: self.to, len: length, stride: length, ecn: None, dst_ip: None };
                Poll::Ready(Ok(1))
            }
            Err(error) => {
                self.note(error);
                // It is reported once, and there may be more behind it.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Through a proxy, the family of the server counts.
    fn local_addr(&self) -> io::Result<SocketAddr> {
        match self.header.is_empty() {
            true => self.socket.local_addr(),
            false => Ok(any_address(self.to.is_ipv6())),
        }
    }
}

#[derive(Debug)]
struct Writable(Arc<Datagrams>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // One connection is all that waits for this socket.
        self.0.socket.poll_send_ready(cx)
    }
}
