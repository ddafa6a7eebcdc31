//! Multicast subscription to changes in the network namespace.
//!
//! The content of the messages is not used, because facts are always re-read. A lost message (socket buffer overflow)
//! is therefore only another reason to read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::plan::names::NFT_TABLE;

use rtnetlink::constants::{
    RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV4_RULE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE,
    RTMGRP_LINK, RTMGRP_NEIGH,
};
use rtnetlink::sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::supervise::Supervisor;

/// Missing from the crate's constants: RTNLGRP_IPV6_RULE is 19.
const RTMGRP_IPV6_RULE: u32 = 1 << 18;
/// Groups of links, neighbours, addresses, routes and rules.
pub const ROUTING_GROUPS: u32 = RTMGRP_LINK
    | RTMGRP_NEIGH
    | RTMGRP_IPV4_IFADDR
    | RTMGRP_IPV6_IFADDR
    | RTMGRP_IPV4_ROUTE
    | RTMGRP_IPV6_ROUTE
    | RTMGRP_IPV4_RULE
    | RTMGRP_IPV6_RULE;

/// NFNLGRP_NFTABLES is 7.
pub const NFTABLES_GROUP: u32 = 1 << 6;

/// Longest interval between changes that count as one.
const QUIET_PERIOD: Duration = Duration::from_millis(50);
/// Longest delay before a change is published, even if changes continue.
const TIMEOUT: Duration = Duration::from_millis(250);
const REOPEN_AFTER: Duration = Duration::from_secs(1);

const HEADER_LENGTH: usize = 16;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;

/// Counters of observed changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelChanges {
    /// Links, addresses, routes, rules, the gateway's nftables table, or lost messages.
    pub structure: u64,
    /// Neighbours, which change all the time without significance.
    pub neighbours: u64,
}

impl KernelChanges {
    fn add(&mut self, other: KernelChanges) {
        self.structure += other.structure;
        self.neighbours += other.neighbours;
    }
}

#[derive(Debug)]
pub(super) struct Subscription {
    changed: watch::Receiver<KernelChanges>,
    tasks: Vec<JoinHandle<()>>,
}

/// Multicast groups of a netlink family, and the meaning of their messages.
#[derive(Clone, Copy)]
struct Groups {
    /// Name of the task that listens to them.
    task: &'static str,
    family: isize,
    groups: u32,
    classify: fn(&[u8]) -> KernelChanges,
}

const ROUTING: Groups =
    Groups { task: "routing_events", family: NETLINK_ROUTE, groups: ROUTING_GROUPS, classify };
const NFTABLES: Groups = Groups {
    task: "nftables_events",
    family: NETLINK_NETFILTER,
    groups: NFTABLES_GROUP,
    classify: classify_nftables,
};

impl Subscription {
    pub(super) fn open(supervisor: &Supervisor) -> io::Result<Self> {
        let (sender, changed) = watch::channel(KernelChanges::default());
        let sender = Arc::new(sender);
        let mut tasks = Vec::new();
        for groups in [ROUTING, NFTABLES] {
            let (mut socket, sender) = (Some(groups.open()?), sender.clone());
            let start = move || begin(socket.take(), groups, sender.clone());
            tasks.push(supervisor.restart(groups.task, start));
        }
        Ok(Self { changed, tasks })
    }

    pub(super) fn changed(&self) -> watch::Receiver<KernelChanges> {
        self.changed.clone()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Groups {
    fn open(self) -> io::Result<TokioSocket> {
        let mut socket = TokioSocket::new(self.family)?;
        socket.socket_mut().bind(&SocketAddr::new(0, self.groups))?;
        Ok(socket)
    }
}

/// Listens on the first socket, or after a restart on a new one. Changes in between are unknown, so a restart counts
/// as a change.
async fn begin(socket: Option<TokioSocket>, groups: Groups, sender: Arc<watch::Sender<KernelChanges>>) {
    let socket = match socket {
        Some(socket) => socket,
        None => {
            let socket = reopened(groups).await;
            sender.send_modify(|total| total.add(KernelChanges { structure: 1, neighbours: 0 }));
            socket
        }
    };
    listen(socket, groups, sender).await;
}

async fn listen(mut socket: TokioSocket, groups: Groups, sender: Arc<watch::Sender<KernelChanges>>) {
    loop {
        let mut changed = match next(&mut socket, groups).await {
            Ok(changed) => changed,
            Err(error) => {
                tracing::warn!(%error, "netlink subscription ended");
                socket = reopened(groups).await;
                KernelChanges { structure: 1, neighbours: 0 }
            }
        };
        let timeout = Instant::now() + TIMEOUT;
        loop {
            let quiet = (Instant::now() + QUIET_PERIOD).min(timeout);
            match timeout_at(quiet, next(&mut socket, groups)).await {
                Ok(Ok(more)) => changed.add(more),
                // The outer loop replaces a broken socket.
                Ok(Err(_)) | Err(_) => break,
            }
        }
        if changed != KernelChanges::default() {
            sender.send_modify(|total| total.add(changed));
        }
    }
}

async fn reopened(groups: Groups) -> TokioSocket {
    loop {
        sleep(REOPEN_AFTER).await;
        match groups.open() {
            Ok(socket) => return socket,
            Err(error) => tracing::warn!(%error, "failed to subscribe to netlink"),
        }
    }
}

/// Waits for a datagram. Lost messages count as a change.
async fn next(socket: &mut TokioSocket, groups: Groups) -> io::Result<KernelChanges> {
    match socket.recv_from_full().await {
        Ok((datagram, _)) => Ok((groups.classify)(&datagram)),
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
            Ok(KernelChanges { structure: 1, neighbours: 0 })
        }
        Err(error) => Err(error),
    }
}

/// Counts the messages of a datagram by the type in their headers.
fn classify(datagram: &[u8]) -> KernelChanges {
    let mut changed = KernelChanges::default();
    for (kind, _) in messages(datagram) {
        match kind {
            RTM_NEWNEIGH..=RTM_GETNEIGH => changed.neighbours += 1,
            _ => changed.structure += 1,
        }
    }
    changed
}

/// Counts the messages about the gateway's table. Other programs may change theirs all the time.
fn classify_nftables(datagram: &[u8]) -> KernelChanges {
    /// Offset behind the family, version and resource of `struct nfgenmsg`.
    const ATTRIBUTES: usize = 4;
    const ATTRIBUTE_HEADER: usize = 4;
    /// `NFTA_TABLE_NAME`, `NFTA_CHAIN_TABLE`, `NFTA_RULE_TABLE`, `NFTA_SET_TABLE` and so on.
    const TABLE: [u8; 2] = 1_u16.to_ne_bytes();
    let is_ours = |body: &[u8]| {
        let attribute = body.get(ATTRIBUTES..).unwrap_or_default();
        let name = attribute.get(ATTRIBUTE_HEADER..).unwrap_or_default();
        attribute.get(2..4) == Some(&TABLE)
            && name.strip_prefix(NFT_TABLE.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    };
    let structure = messages(datagram).filter(|(_, body)| is_ours(body)).count();
    KernelChanges { structure: structure as u64, neighbours: 0 }
}

/// Returns the types and bodies of the messages in a datagram.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, l2, l3, t0, t1, ..] = *datagram.first_chunk::<HEADER_LENGTH>()?;
        let length = (u32::from_ne_bytes([l0, l1, l2, l3]) as usize).max(HEADER_LENGTH);
        let body = datagram.get(HEADER_LENGTH..length.min(datagram.len())).unwrap_or_default();
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([t0, t1]), body))
    })
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
    fn neighbours_are_distinguished_from_the_rest() {
        let datagram = [message(RTM_NEWNEIGH, 13), message(16, 32), message(29, 12)].concat();
        assert_eq!(classify(&datagram), KernelChanges { structure: 1, neighbours: 2 });
    }

    #[test]
    fn only_our_nftables_table_counts() {
        let about = |kind: u16, table: &str| {
            let mut bytes = message(kind, 8 + table.len() + 1);
            bytes[HEADER_LENGTH + 4..HEADER_LENGTH + 8]
                .copy_from_slice(&[(5 + table.len() as u16).to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
            bytes[HEADER_LENGTH + 8..][..table.len()].copy_from_slice(table.as_bytes());
            bytes
        };
        // A deleted table and a deleted rule; then a generation, which has a number instead of the name.
        let datagram = [about(0xa02, "gateway"), about(0xa08, "gateway"), message(0xa0f, 12)].concat();
        assert_eq!(classify_nftables(&datagram).structure, 2);
        for other in ["filter", "gateway2", "gate"] {
            assert_eq!(classify_nftables(&about(0xa02, other)), KernelChanges::default(), "{other}");
        }
        assert_eq!(classify_nftables(&datagram[..HEADER_LENGTH + 3]), KernelChanges::default());
    }

    #[test]
    fn broken_datagrams_end_the_count() {
        assert_eq!(classify(&[]), KernelChanges::default());
        assert_eq!(classify(&message(16, 64)[..HEADER_LENGTH - 1]), KernelChanges::default());
        let mut lying = message(16, 0);
        lying[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(classify(&lying), KernelChanges { structure: 1, neighbours: 0 });
        lying[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(classify(&lying), KernelChanges { structure: 1, neighbours: 0 });
    }
}
