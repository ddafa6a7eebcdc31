//! The tunnel's side of a bridge.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// Receive buffer for waiting datagrams, in bytes.
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// Socket at a loopback address, and the last observed address of the tunnel.
#[derive(Debug)]
pub(super) struct LocalSocket {
    socket: UdpSocket,
    /// Port of the tunnel at 127.0.0.1, 0 before its first datagram.
    tunnel: AtomicU16,
    /// Port of the WireGuard device, the only accepted sender. While it is unknown (0), datagrams wait.
    device: watch::Sender<u16>,
}

impl LocalSocket {
    pub(super) fn open(address: SocketAddr) -> io::Result<LocalSocket> {
        let socket =
            Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        socket.set_recv_buffer_size(MAX_QUEUED_BYTES)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from_std(socket.into())?;
        Ok(LocalSocket { socket, tunnel: AtomicU16::new(0), device: watch::Sender::new(0) })
    }

    /// Receives a datagram of the tunnel.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let (length, from) = self.socket.recv_from(buffer).await?;
            // This keeps a tunnel's first handshake: its device becomes known within a second.
            let _ = self.device.subscribe().wait_for(|port| *port != 0).await;
            if self.takes(from) {
                return Ok(length);
            }
        }
    }

    /// Reports whether a datagram is from the tunnel, and records its sender in that case. Any process of this host
    /// can send here, but only the WireGuard device may receive the return path.
    fn takes(&self, from: SocketAddr) -> bool {
        let device = *self.device.borrow();
        let is_tunnel = device != 0 && device == from.port();
        if is_tunnel {
            self.tunnel.store(from.port(), Ordering::Relaxed);
        }
        is_tunnel
    }

    /// Accepts datagrams from this port only. With 0 it accepts none.
    pub(super) fn set_device(&self, port: u16) {
        let before = self.device.send_replace(port);
        if before != port && port != 0 {
            self.tunnel.store(port, Ordering::Relaxed);
        }
    }

    /// Receives a datagram of the tunnel that is already waiting.
    pub(super) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let (length, from) = self.socket.try_recv_from(buffer)?;
            if self.takes(from) {
                return Ok(length);
            }
        }
    }

    /// Sends a datagram to the tunnel. A datagram that it does not accept is lost, as anywhere.
    pub(super) fn send_to_tunnel(&self, datagram: &[u8]) {
        let port = self.tunnel.load(Ordering::Relaxed);
        if port != 0 {
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let _ = socket2::SockRef::from(&self.socket).send_to(datagram, &to.into());
        }
    }

    /// Drops datagrams that waited while there was no connection: they are outdated.
    pub(super) fn drain(&self) {
        let mut buffer = [0; 2048];
        while self.socket.try_recv_from(&mut buffer).is_ok() {}
    }
}
