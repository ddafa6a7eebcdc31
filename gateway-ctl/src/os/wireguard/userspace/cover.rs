//! Cover traffic: dummy packets among the real ones, so that packet times and counts reveal less.
//!
//! The maybenot machines (`machines`) determine the times, and a budget (`budget`) limits the amount. Only this end
//! sends cover. The remote end is a WireGuard peer without knowledge of it, so every peer must drop a cover packet by
//! itself. The packet is an ordinary data message with the length of a recent real packet. Its plaintext begins as an
//! IPv4 packet of that length and is zero otherwise.
//!
//! The source 0.0.0.0 is not in the allowed IPs of a peer. The packet thus ends at the remote end's source check and
//! never reaches the device. If a peer allows every source, any IP stack drops the packet at once for its header
//! length of 0. The packet is well formed up to the source, so the remote end's protocol machine takes it for data.
//! It keeps its timers as for data: after ten seconds without anything to send, it replies with a keepalive. An empty
//! message would have no such effect, but no packet has its length. A packet to a real destination would be answered
//! or forwarded.
//!
//! Without a session, the device sends no cover and starts no handshake. A sender that received nothing for fifteen
//! seconds requests a new session when it sends data. Cover gets no immediate reply, so it must not cause that on a
//! silent tunnel. The device therefore sends cover only within four seconds of the last packet from the peer. The
//! remote end's keepalive then comes in time. Cover also ends with a peer that is gone.
//!
//! A machine that delays packets is refused, because every flow would pay for its queue. The remote end recognises
//! cover and counts errors of its interface; observers of the path cannot see it. With cover off the path of a packet
//! reads one flag.

mod budget;
mod driver;
mod flow;
mod machines;
pub(super) mod meter;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gateway_model::settings::groups::CoverSettings;
use tokio::sync::{Notify, watch};

use super::super::device::CoverStatus;
use super::peer::Peer;

pub(super) use self::flow::packets;

/// Cover switch of one device, and the notification by which packet tasks report traffic.
pub(super) struct Cover {
    on: AtomicBool,
    settings: watch::Sender<CoverSettings>,
    news: AtomicBool,
    wake: Notify,
}

impl Cover {
    pub(super) fn new(settings: CoverSettings) -> Self {
        let on = AtomicBool::new(settings.enabled);
        let (settings, _) = watch::channel(settings);
        Self { on, settings, news: AtomicBool::new(false), wake: Notify::new() }
    }

    pub(super) fn set(&self, wanted: &CoverSettings) {
        self.on.store(wanted.enabled, Ordering::Relaxed);
        self.settings.send_if_modified(|settings| {
            let differs = settings != wanted;
            if differs {
                settings.clone_from(wanted);
            }
            differs
        });
    }

    /// Records a real packet that was sent, by its plaintext length.
    pub(super) fn sent(&self, peer: &Peer, plaintext: usize) {
        if self.on.load(Ordering::Relaxed) {
            peer.meter.sent(plaintext);
            self.notify();
        }
    }

    /// Records an authentic message that was received, and whether it held a real packet.
    pub(super) fn received(&self, peer: &Peer, packet: bool) {
        if self.on.load(Ordering::Relaxed) {
            peer.meter.received(packet);
            self.notify();
        }
    }

    pub(super) fn status<'a>(&self, peers: impl Iterator<Item = &'a Arc<Peer>>) -> CoverStatus {
        let mut status = CoverStatus::default();
        for peer in peers {
            let counts = peer.meter.counts();
            status.session |= peer.has_session();
            status.normal_packets += counts.normal_packets;
            status.normal_bytes += counts.normal_bytes;
            status.padding_packets += counts.padding_packets;
            status.padding_bytes += counts.padding_bytes;
            status.throttled += counts.throttled;
        }
        status
    }

    fn notify(&self) {
        if !self.news.swap(true, Ordering::AcqRel) {
            self.wake.notify_one();
        }
    }

    /// Enables the notification of new traffic again.
    fn listen(&self) {
        self.news.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
