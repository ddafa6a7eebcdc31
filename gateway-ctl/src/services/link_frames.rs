//! Broadcast and multicast packets of the LANs, for the services that read them: announcements of hosts, messages of
//! routers, and messages of DHCP servers.
//!
//! Decision 0184 says why.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::link_protocol::LinkProtocol;
use gateway_common::wire::LinkFrame;
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use crate::handles::in_memory;
use crate::service::{Context, Service};
use crate::supervise::blocking;

/// Packets of a protocol that wait for their reader. Beyond that, the oldest is lost.
const QUEUE_CAPACITY: usize = 256;
/// Copies of a ring that are read at a time.
const BATCH: usize = 64;
/// Pause after copies were read. A flood of them costs little, and the rest is lost in the ring.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(10);

/// Packet that arrived at a LAN interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Index of the interface.
    pub interface: u32,
    /// Source address of the frame.
    pub mac: [u8; 6],
    /// The packet, from its IP header on.
    pub packet: Vec<u8>,
}

/// Packets by protocol. Each protocol has one reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkFrames(Arc<Queues>);

#[derive(Debug, Default)]
struct Queues {
    announcements: Queue,
    dhcp_replies: Queue,
    solicitations: Queue,
    advertisements: Queue,
}

#[derive(Debug, Default)]
struct Queue {
    packets: Mutex<VecDeque<Arrival>>,
    arrived: Notify,
}

in_memory!(LinkFrames);

impl LinkFrames {
    /// Waits until packets of the protocol may have arrived.
    pub(crate) async fn arrived(&self, protocol: LinkProtocol) {
        self.queue(protocol).arrived.notified().await;
    }

    /// Takes the packets of the protocol, oldest first.
    pub(crate) fn take(&self, protocol: LinkProtocol) -> VecDeque<Arrival> {
        std::mem::take(&mut self.queue(protocol).packets.lock())
    }

    fn add(&self, protocol: LinkProtocol, arrival: Arrival) {
        let queue = self.queue(protocol);
        let mut packets = queue.packets.lock();
        if packets.len() >= QUEUE_CAPACITY {
            packets.pop_front();
        }
        packets.push_back(arrival);
        drop(packets);
        queue.arrived.notify_one();
    }

    fn clear(&self) {
        let Queues { announcements, dhcp_replies, solicitations, advertisements } = &*self.0;
        for queue in [announcements, dhcp_replies, solicitations, advertisements] {
            queue.packets.lock().clear();
        }
    }

    fn queue(&self, protocol: LinkProtocol) -> &Queue {
        match protocol {
            LinkProtocol::Announcement => &self.0.announcements,
            LinkProtocol::DhcpReply => &self.0.dhcp_replies,
            LinkProtocol::RouterSolicitation => &self.0.solicitations,
            LinkProtocol::RouterAdvertisement => &self.0.advertisements,
        }
    }
}

impl Queue {}

/// Returns the service that reads the copies of the kernel programs.
pub(crate) fn service(context: &Context) -> Service {
    let frames = context.handles.get::<LinkFrames>();
    Service::new("link_frames", context, run).erases(move |_| {
        frames.clear();
        std::future::ready(Ok(()))
    })
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let frames = context.handles.get::<LinkFrames>();
    loop {
        if let Err(error) = follow(&context, &frames).await {
            tracing::warn!(%error, "failed to read broadcast and multicast packets of the LANs");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn follow(context: &Context, frames: &LinkFrames) -> io::Result<()> {
    let dataplane = &context.dataplane;
    let [messages, announcements] =
        dataplane.with(|programs| programs.link_frame_descriptors())?.map(watched);
    let (messages, announcements) = (messages?, announcements?);
    loop {
        tokio::select! {
            ready = messages.readable() => ready?.clear_ready(),
            ready = announcements.readable() => ready?.clear_ready(),
        }
        loop {
            let dataplane = dataplane.clone();
            let copies = blocking(move || dataplane.with(|programs| programs.drain_link_frames(BATCH))).await;
            if copies.is_empty() {
                break;
            }
            for (protocol, arrival) in copies.iter().filter_map(|copy| read(copy)) {
                frames.add(protocol, arrival);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn watched(ring: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, and of the same file, until its owner ends with the registration.
    let watched = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

fn read(copy: &LinkFrame) -> Option<(LinkProtocol, Arrival)> {
    let length = usize::try_from(copy.length).ok()?;
    let packet = copy.bytes.get(..length)?.to_vec();
    let arrival = Arrival { interface: copy.interface, mac: copy.mac.octets(), packet };
    Some((LinkProtocol::of(copy.protocol)?, arrival))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(interface: u32) -> Arrival {
        Arrival { interface, mac: [2; 6], packet: vec![0x45] }
    }

    #[test]
    fn a_flood_of_one_protocol_loses_its_oldest_and_none_of_another() {
        let frames = LinkFrames::default();
        frames.add(LinkProtocol::RouterAdvertisement, arrival(1));
        for interface in 0..1000 {
            frames.add(LinkProtocol::Announcement, arrival(interface));
        }
        assert_eq!(frames.take(LinkProtocol::RouterAdvertisement), [arrival(1)]);
        let kept = frames.take(LinkProtocol::Announcement);
        assert_eq!((kept.len(), kept[0].interface, kept[255].interface), (256, 744, 999));
        assert!(frames.take(LinkProtocol::Announcement).is_empty());
    }

    #[tokio::test]
    async fn a_reader_that_comes_later_learns_that_packets_arrived() {
        let frames = LinkFrames::default();
        frames.add(LinkProtocol::DhcpReply, arrival(7));
        frames.arrived(LinkProtocol::DhcpReply).await;
        assert_eq!(frames.take(LinkProtocol::DhcpReply), [arrival(7)]);
        frames.add(LinkProtocol::DhcpReply, arrival(7));
        frames.clear();
        assert!(frames.take(LinkProtocol::DhcpReply).is_empty());
    }

    #[test]
    fn copies_with_an_impossible_length_or_protocol_are_ignored() {
        let copy = |protocol, length| LinkFrame {
            interface: 3,
            protocol,
            length,
            mac: gateway_common::wire::Mac::default(),
            padding: 0,
            bytes: [9; gateway_common::wire::LINK_PACKET],
        };
        assert_eq!(read(&copy(3, 2)).unwrap().1.packet, [9, 9]);
        assert_eq!((read(&copy(3, 2049)), read(&copy(0, 2))), (None, None));
    }
}
