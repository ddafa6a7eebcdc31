//! Datagrams of one size for one peer, gathered for one system call.

use std::net::SocketAddr;

use super::shared::{Shared, count};
use super::sockets::{MAX_DATAGRAM, Sockets};

/// Kernel limits of one call: segments (UDP_MAX_SEGMENTS before Linux 6.9) and bytes (the longest UDP payload over
/// IPv4).
const MAX_SEGMENTS: usize = 64;
const MAX_BYTES: usize = 65_507;

pub(super) struct Outbox {
    buffer: Vec<u8>,
    len: usize,
    /// Length of all datagrams but the last.
    segment: usize,
    count: usize,
    to: Option<SocketAddr>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; MAX_BYTES + MAX_DATAGRAM], len: 0, segment: 0, count: 0, to: None }
    }

    /// Returns a buffer for the next datagram of at most `len` bytes. It flushes earlier datagrams if necessary.
    pub(super) async fn room(&mut self, shared: &Shared, sockets: &Sockets, len: usize) -> &mut [u8] {
        if self.count == MAX_SEGMENTS || self.len + len > MAX_BYTES {
            self.flush(shared, sockets).await;
        }
        &mut self.buffer[self.len..]
    }

    /// Adds the datagram that was written into the buffer.
    pub(super) async fn add(&mut self, shared: &Shared, sockets: &Sockets, len: usize, to: SocketAddr) {
        if self.count > 0 && (self.to != Some(to) || len > self.segment) {
            let start = self.len;
            self.flush(shared, sockets).await;
            self.buffer.copy_within(start..start + len, 0);
        }
        if self.count == 0 {
            self.segment = len;
            self.to = Some(to);
        }
        self.len += len;
        self.count += 1;
        // Only the last of a burst may be shorter.
        if len < self.segment {
            self.flush(shared, sockets).await;
        }
    }

    /// Sends the gathered datagrams. A failed send loses them, as on any network.
    pub(super) async fn flush(&mut self, shared: &Shared, sockets: &Sockets) {
        let Some(to) = self.to.take() else { return };
        if let Err(error) = sockets.send_burst(&self.buffer[..self.len], self.segment, to).await {
            tracing::trace!(%to, %error, "cannot send");
            count(&shared.drops.send_failed);
        }
        (self.len, self.segment, self.count) = (0, 0, 0);
    }
}
