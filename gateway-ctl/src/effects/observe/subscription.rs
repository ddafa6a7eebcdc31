//! The multicast subscription to what changes in the network namespace.
//!
//! The messages' contents are not used: facts are always read afresh, so that a lost message (the socket's buffer
//! overflowed) is only one more reason to read.

use std::io;
use std::time::Duration;

use rtnetlink::constants::{
    RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV4_RULE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE,
    RTMGRP_LINK, RTMGRP_NEIGH,
};
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

/// Missing from the crate's constants: RTNLGRP_IPV6_RULE is 19.
const RTMGRP_IPV6_RULE: u32 = 1 << 18;
const GROUPS: u32 = RTMGRP_LINK
    | RTMGRP_NEIGH
    | RTMGRP_IPV4_IFADDR
    | RTMGRP_IPV6_IFADDR
    | RTMGRP_IPV4_ROUTE
    | RTMGRP_IPV6_ROUTE
    | RTMGRP_IPV4_RULE
    | RTMGRP_IPV6_RULE;

/// Changes that follow each other this quickly are one.
const QUIET: Duration = Duration::from_millis(50);
/// A change is told after this time even if there is no end of them.
const PATIENCE: Duration = Duration::from_millis(250);
const REOPEN_AFTER: Duration = Duration::from_secs(1);

const HEADER_LENGTH: usize = 16;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;

/// How often something was seen to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Links, addresses, routes, rules, or messages were lost.
    pub structure: u64,
    /// Neighbours, which change all the time without meaning anything.
    pub neighbours: u64,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.structure += other.structure;
        self.neighbours += other.neighbours;
    }
}

#[derive(Debug)]
pub(super) struct Subscription {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

impl Subscription {
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket()?;
        let (sender, seen) = watch::channel(Seen::default());
        Ok(Self { seen, task: tokio::spawn(listen(socket, sender)) })
    }

    pub(super) fn seen(&self) -> watch::Receiver<Seen> {
        self.seen.clone()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn socket() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    socket.socket_mut().bind(&SocketAddr::new(0, GROUPS))?;
    Ok(socket)
}

async fn listen(mut socket: TokioSocket, sender: watch::Sender<Seen>) {
    loop {
        let mut seen = match next(&mut socket).await {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(%error, "the netlink subscription broke");
                socket = reopened().await;
                Seen { structure: 1, neighbours: 0 }
            }
        };
        let patience = Instant::now() + PATIENCE;
        loop {
            let quiet = (Instant::now() + QUIET).min(patience);
            match timeout_at(quiet, next(&mut socket)).await {
                Ok(Ok(more)) => seen.add(more),
                // A broken socket is found again by the outer loop.
                Ok(Err(_)) | Err(_) => break,
            }
        }
        sender.send_modify(|total| total.add(seen));
    }
}

async fn reopened() -> TokioSocket {
    loop {
        sleep(REOPEN_AFTER).await;
        match socket() {
            Ok(socket) => return socket,
            Err(error) => tracing::warn!(%error, "cannot subscribe to netlink"),
        }
    }
}

/// Waits for a datagram. Messages that were lost count as a change.
async fn next(socket: &mut TokioSocket) -> io::Result<Seen> {
    match socket.recv_from_full().await {
        Ok((datagram, _)) => Ok(classify(&datagram)),
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(Seen { structure: 1, neighbours: 0 }),
        Err(error) => Err(error),
    }
}

/// Counts the messages of a datagram by the type in their headers.
fn classify(mut datagram: &[u8]) -> Seen {
    let mut seen = Seen::default();
    while let Some(header) = datagram.first_chunk::<HEADER_LENGTH>() {
        let [l0, l1, l2, l3, t0, t1, ..] = *header;
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        match u16::from_ne_bytes([t0, t1]) {
            RTM_NEWNEIGH..=RTM_GETNEIGH => seen.neighbours += 1,
            _ => seen.structure += 1,
        }
        let aligned = length.max(HEADER_LENGTH).next_multiple_of(4);
        datagram = datagram.get(aligned..).unwrap_or_default();
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, payload: usize) -> Vec<u8> {
        let length = (HEADER_LENGTH + payload) as u32;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize((HEADER_LENGTH + payload).next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn neighbours_are_told_from_the_rest() {
        let datagram = [message(RTM_NEWNEIGH, 13), message(16, 32), message(29, 12)].concat();
        assert_eq!(classify(&datagram), Seen { structure: 1, neighbours: 2 });
    }

    #[test]
    fn broken_datagrams_end_the_count() {
        assert_eq!(classify(&[]), Seen::default());
        assert_eq!(classify(&message(16, 64)[..HEADER_LENGTH - 1]), Seen::default());
        let mut lying = message(16, 0);
        lying[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(classify(&lying), Seen { structure: 1, neighbours: 0 });
        lying[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(classify(&lying), Seen { structure: 1, neighbours: 0 });
    }
}
