//! Buffers for batches of datagrams: one recvmmsg(2) call fills them and one sendmmsg(2) call sends them.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::peer::{Control, Peer, address, reply_source};
use crate::wire::PAYLOAD;

/// Maximum number of datagrams of one batch.
const SIZE: usize = 64;
const MIN_BATCH: usize = 4;

/// Maximum length of a query in bytes. Clients do not send longer queries; longer datagrams are dropped.
const DATAGRAM: usize = 2048;

pub(crate) struct Batch {
    datagrams: Box<[[u8; DATAGRAM]]>,
    peers: Box<[Peer]>,
    lengths: [usize; SIZE],
    answers: Box<[Vec<u8>]>,
    messages: Messages,
    /// Maximum number of datagrams of the next call. It follows the load, because the preparation of unused buffers
    /// costs time.
    room: usize,
}

/// Message headers and vectors for recvmmsg(2) and sendmmsg(2).
struct Messages {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
}

impl Messages {
    fn new() -> Messages {
        // SAFETY: all zeroes is a valid mmsghdr: null pointers with zero lengths.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Messages { headers: vec![header; SIZE].into(), vectors: vec![vector; SIZE].into() }
    }

    fn put(&mut self, index: usize, bytes: (*mut u8, usize), peer: &mut Peer, lengths: (u32, usize)) {
        let vector = &mut self.vectors[index];
        *vector = libc::iovec { iov_base: bytes.0.cast(), iov_len: bytes.1 };
        let (header, (name_length, control_length)) = (&mut self.headers[index].msg_hdr, lengths);
        header.msg_name = (&raw mut peer.name).cast();
        header.msg_namelen = name_length;
        header.msg_iov = &raw mut *vector;
        header.msg_iovlen = 1;
        let control = (&raw mut peer.control).cast();
        header.msg_control = if control_length > 0 { control } else { std::ptr::null_mut() };
        header.msg_controllen = control_length as _;
    }
}

/// Sizes of the address and control buffers, in bytes, for any peer.
const FULL_LENGTHS: (u32, usize) = (size_of::<libc::sockaddr_storage>() as u32, size_of::<Control>());

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    pub(crate) fn new() -> Batch {
        // SAFETY: all zeroes is a valid sockaddr_storage, of no family.
        let name = unsafe { std::mem::zeroed() };
        let peer = Peer { name, name_length: 0, control: Control([0; 64]), control_length: 0, arrival: None };
        Batch {
            datagrams: vec![[0; DATAGRAM]; SIZE].into(),
            peers: vec![peer; SIZE].into(),
            lengths: [0; SIZE],
            answers: (0..SIZE).map(|_| Vec::with_capacity(PAYLOAD + 64)).collect(),
            messages: Messages::new(),
            room: MIN_BATCH,
        }
    }

    /// Receives the datagrams that wait. Returns their number, and whether more may wait. An empty socket is not an
    /// error.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<(usize, bool)> {
        let room = self.room;
        for (index, (datagram, peer)) in self.datagrams[..room].iter_mut().zip(&mut self.peers).enumerate() {
            self.messages.put(index, (datagram.as_mut_ptr(), DATAGRAM), peer, FULL_LENGTHS);
        }
        let (headers_at, flags) = (self.messages.headers[..room].as_mut_ptr(), libc::MSG_DONTWAIT);
        // SAFETY: each of the first `room` headers points to a name, a vector of one buffer and a control buffer with
        // their true lengths; all of them live until the call returns.
        let count = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), headers_at, room as _, flags as _, std::ptr::null_mut())
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok((0, false)),
                _ => Err(error),
            };
        };
        self.room = (2 * count).clamp(MIN_BATCH, SIZE);
        for (index, header) in self.messages.headers[..count].iter().enumerate() {
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            self.lengths[index] = if cut { 0 } else { header.msg_len as usize };
            let peer = &mut self.peers[index];
            peer.name_length = header.msg_hdr.msg_namelen;
            peer.control_length = header.msg_hdr.msg_controllen;
            peer.arrival = reply_source(&mut peer.control, peer.control_length);
            self.answers[index].clear();
        }
        Ok((count, count == room))
    }

    /// Returns a datagram, its source address and the buffer for its answer. None: no answer can be sent.
    pub(crate) fn datagram(&mut self, index: usize) -> Option<(&[u8], SocketAddr, &mut Vec<u8>)> {
        let from = address(&self.peers[index].name)?;
        let datagram = &self.datagrams[index][..self.lengths[index]];
        (from.port() != 0 && !datagram.is_empty()).then_some((datagram, from, &mut self.answers[index]))
    }

    pub(crate) fn arrival(&self, index: usize) -> Option<(u32, IpAddr)> {
        self.peers[index].arrival()
    }

    pub(crate) fn peer(&self, index: usize) -> Peer {
        self.peers[index]
    }

    pub(crate) fn question(&self, index: usize) -> &[u8] {
        &self.datagrams[index][..self.lengths[index]]
    }

    /// Returns the answer to a datagram.
    pub(crate) fn answer(&self, index: usize) -> &[u8] {
        &self.answers[index]
    }

    /// Sends the answers to the first `count` datagrams, except empty ones. Answers that the kernel does not accept are
    /// lost.
    pub(crate) fn send(&mut self, socket: &UdpSocket, count: usize) {
        let mut used = 0;
        for (answer, peer) in self.answers[..count].iter_mut().zip(&mut self.peers) {
            if answer.is_empty() {
                continue;
            }
            let lengths = (peer.name_length, peer.control_length);
            self.messages.put(used, (answer.as_mut_ptr(), answer.len()), peer, lengths);
            used += 1;
        }
        let mut at = 0;
        while at < used {
            let (rest, left) = (self.messages.headers[at..used].as_mut_ptr(), (used - at) as _);
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the headers from `at` on point to names, vectors of one buffer and control buffers with their
            // true lengths; all of them live until the call returns.
            let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), rest, left, flags as _) };
            // A datagram that fails ends the call, so the loop skips it.
            at += usize::try_from(sent).unwrap_or(1).max(1);
        }
    }
}
