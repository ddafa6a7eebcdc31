//! Cover traffic: packets for nobody among those for somebody, so that their times and number tell less.
//!
//! When one goes out is up to maybenot's machines (`machines`), how many to a budget (`budget`). Only this end sends any,
//! and the far end is a WireGuard peer that knows nothing of it, so a packet of cover must be one that every peer drops by
//! itself: it is a data message like all others, of a length that was just sent for somebody, and inside it begins as
//! an IPv4 packet of that length and is zeros otherwise. Its source, 0.0.0.0, is none that a peer is allowed to have, so
//! it ends at the far end's check of sources and never reaches the device; where a peer is allowed every source,
//! the header length of 0 ends it at the first look of any IP stack. As it is well formed up to the source, the far end's
//! protocol machine takes it for data and keeps its timers as it does for data: after ten seconds in which it had nothing
//! to send it answers with a keepalive. An empty message would stir nothing but is as long as no packet; a packet to
//! someone would be answered, or forwarded.
//!
//! Without a session nothing is sent, nor is a handshake begun. A sender who heard nothing for fifteen seconds asks for
//! a new session when it sends data; cover, which nobody answers at once, must not do that to a silent tunnel. So it goes
//! out only within four seconds of the last sign of the peer: then the far end's keepalive comes in time. It also means
//! that cover ends with a peer that is gone.

mod budget;
mod driver;
mod flow;
mod machines;
mod meter;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gateway_model::settings::groups::CoverSettings;
use tokio::sync::{Notify, watch};

use super::super::device::CoverStatus;
use super::peer::Peer;

pub(super) use self::flow::packets;
pub(super) use self::meter::Meter;

/// The switch of one device, and how those that carry packets tell that some passed.
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

    /// A packet went out for somebody, of this plaintext length.
    pub(super) fn sent(&self, peer: &Peer, plaintext: usize) {
        if self.on.load(Ordering::Relaxed) {
            peer.meter.sent(plaintext);
            self.tell();
        }
    }

    /// Something authentic came in, and maybe a packet for somebody.
    pub(super) fn received(&self, peer: &Peer, packet: bool) {
        if self.on.load(Ordering::Relaxed) {
            peer.meter.received(packet);
            self.tell();
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

    fn tell(&self) {
        if !self.news.swap(true, Ordering::AcqRel) {
            self.wake.notify_one();
        }
    }

    /// What passes from here on is told of again.
    fn listen(&self) {
        self.news.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
