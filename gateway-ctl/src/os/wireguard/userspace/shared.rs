//! State that the tasks of one device share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tun_rs::AsyncDevice;

use super::super::device::Drops;
use super::cover::Cover;
use super::path_layer::PathLayer;
use super::peer_tun::PeerTuns;
use super::table::Table;

/// The TUN device with its peers, counters and cover traffic.
pub(super) struct Shared {
    pub(super) tun: AsyncDevice,
    pub(super) table: ArcSwap<Table>,
    /// TUN devices of single peers. Other devices than those of a mesh have none.
    pub(super) peer_tuns: ArcSwap<PeerTuns>,
    pub(super) drops: Counters,
    pub(super) cover: Cover,
    /// Absent on devices whose peers have one endpoint each.
    pub(super) layer: Option<Arc<dyn PathLayer>>,
}

/// Counters of dropped packets, by reason.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) malformed: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) no_peer: AtomicU64,
    pub(super) wrong_source: AtomicU64,
    pub(super) filtered: AtomicU64,
    pub(super) send_failed: AtomicU64,
    pub(super) device_failed: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn read(&self) -> Drops {
        let Self { malformed, rejected, no_peer, wrong_source, filtered, send_failed, device_failed } = self;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Drops {
            malformed: read(malformed),
            rejected: read(rejected),
            no_peer: read(no_peer),
            wrong_source: read(wrong_source),
            filtered: read(filtered),
            send_failed: read(send_failed),
            device_failed: read(device_failed),
        }
    }
}
