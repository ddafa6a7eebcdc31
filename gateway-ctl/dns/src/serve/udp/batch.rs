//! Buffers for many datagrams, which the kernel fills and empties with one call each.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::peer::{Control, Peer, address, turn};
use crate::wire::PAYLOAD;

/// So many datagrams are read at once.
pub const SIZE: usize = 64;

/// Longer questions are none that anybody asks: they are dropped.
const DATAGRAM: usize = 2048;

pub struct Batch {
    datagrams: Box<[[u8; DATAGRAM]]>,
    peers: Box<[Peer]>,
    lengths: [usize; SIZE],
    answers: Box<[Vec<u8>]>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    pub fn new() -> Batch {
        // SAFETY: all zeroes is a valid sockaddr_storage, of no family.
        let name = unsafe { std::mem::zeroed() };
        let peer = Peer { name, name_length: 0, control: Control([0; 64]), control_length: 0, arrival: None };
        Batch {
            datagrams: vec![[0; DATAGRAM]; SIZE].into(),
            peers: vec![peer; SIZE].into(),
            lengths: [0; SIZE],
            answers: (0..SIZE).map(|_| Vec::with_capacity(PAYLOAD + 64)).collect(),
        }
    }

    /// Reads what is there, and says how many datagrams; none is not an error.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        // SAFETY: all zeroes is a valid mmsghdr: null pointers with zero lengths.
        let mut headers: [libc::mmsghdr; SIZE] = unsafe { std::mem::zeroed() };
        // SAFETY: all zeroes is a valid iovec.
        let mut vectors: [libc::iovec; SIZE] = unsafe { std::mem::zeroed() };
        for (index, header) in headers.iter_mut().enumerate() {
            let (datagram, peer) = (&mut self.datagrams[index], &mut self.peers[index]);
            vectors[index] = libc::iovec { iov_base: datagram.as_mut_ptr().cast(), iov_len: DATAGRAM };
            header.msg_hdr.msg_name = (&raw mut peer.name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_hdr.msg_iov = &raw mut vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = (&raw mut peer.control).cast();
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
        let (headers_at, flags) = (headers.as_mut_ptr(), libc::MSG_DONTWAIT);
        // SAFETY: every header points to a name, a vector of one buffer and a control buffer with their true lengths; all of
        // them live until the call returns.
        let count = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), headers_at, SIZE as _, flags as _, std::ptr::null_mut())
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        };
        for (index, header) in headers[..count].iter().enumerate() {
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            self.lengths[index] = if cut { 0 } else { header.msg_len as usize };
            let peer = &mut self.peers[index];
            peer.name_length = header.msg_hdr.msg_namelen;
            peer.control_length = header.msg_hdr.msg_controllen;
            peer.arrival = turn(&mut peer.control, peer.control_length);
            self.answers[index].clear();
        }
        Ok(count)
    }

    /// A datagram, where it came from, and room for its answer; none when nothing can be sent back.
    pub fn datagram(&mut self, index: usize) -> Option<(&[u8], IpAddr, &mut Vec<u8>)> {
        let (from, port) = address(&self.peers[index].name)?;
        let datagram = &self.datagrams[index][..self.lengths[index]];
        (port != 0 && !datagram.is_empty()).then_some((datagram, from, &mut self.answers[index]))
    }

    pub fn arrival(&self, index: usize) -> Option<(u32, IpAddr)> {
        self.peers[index].arrival()
    }

    pub fn peer(&self, index: usize) -> Peer {
        self.peers[index]
    }

    pub fn question(&self, index: usize) -> &[u8] {
        &self.datagrams[index][..self.lengths[index]]
    }

    /// What was written for a datagram.
    pub fn answer(&self, index: usize) -> &[u8] {
        &self.answers[index]
    }

    /// Sends the answers to the first `count` datagrams, without those that are empty. What the kernel does not take is
    /// lost, as datagrams are.
    pub fn send(&mut self, socket: &UdpSocket, count: usize) {
        // SAFETY: all zeroes is a valid mmsghdr: null pointers with zero lengths.
        let mut headers: [libc::mmsghdr; SIZE] = unsafe { std::mem::zeroed() };
        // SAFETY: all zeroes is a valid iovec.
        let mut vectors: [libc::iovec; SIZE] = unsafe { std::mem::zeroed() };
        let mut used = 0;
        for (answer, peer) in self.answers[..count].iter_mut().zip(&mut self.peers) {
            if answer.is_empty() {
                continue;
            }
            vectors[used] = libc::iovec { iov_base: answer.as_mut_ptr().cast(), iov_len: answer.len() };
            let header = &mut headers[used].msg_hdr;
            header.msg_name = (&raw mut peer.name).cast();
            header.msg_namelen = peer.name_length;
            header.msg_iov = &raw mut vectors[used];
            header.msg_iovlen = 1;
            if peer.control_length > 0 {
                header.msg_control = (&raw mut peer.control).cast();
                header.msg_controllen = peer.control_length as _;
            }
            used += 1;
        }
        let mut at = 0;
        while at < used {
            let (rest, left) = (headers[at..used].as_mut_ptr(), (used - at) as _);
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the headers from `at` on point to names, vectors of one buffer and control buffers with their true
            // lengths; all of them live until the call returns.
            let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), rest, left, flags as _) };
            // The first one that fails ends the call: it is left out.
            at += usize::try_from(sent).unwrap_or(1).max(1);
        }
    }
}
