//! State of the membership, as the API shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway_mesh::NodeKey;
use gateway_mesh::network_map::NetworkMap;
use jiff::Timestamp;
use parking_lot::Mutex;

/// Path to a peer, and what went by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PeerTraffic {
    /// Round-trip time of the direct path; none without one.
    pub direct: Option<Duration>,
    /// True if packets were exchanged in the last minutes.
    pub is_active: bool,
    pub rx: u64,
    pub tx: u64,
}

/// Observations of a membership that is on.
#[derive(Clone, Debug, Default)]
pub(super) struct Observation {
    /// The map is followed.
    pub is_connected: bool,
    /// Time at which the coordinator last sent something.
    pub last_seen: Option<Timestamp>,
    /// Reason why the map is not followed.
    pub failure: Option<String>,
    /// The coordinator has no such node any more.
    pub is_refused: bool,
    /// Reason why there is no device.
    pub device_failure: Option<String>,
    pub map: NetworkMap,
    pub traffic: BTreeMap<NodeKey, PeerTraffic>,
    /// Region of the relay at which this gateway is, once that has admitted it.
    pub home_region: Option<u32>,
    /// Round-trip times to relays by region.
    pub latencies: BTreeMap<u32, Duration>,
    /// Reasons why relays are not used, by region.
    pub relay_failures: BTreeMap<u32, String>,
}

/// Observations, and whether the store was wiped.
#[derive(Debug, Default)]
pub(super) struct Observed {
    current: Mutex<Observation>,
    erased: std::sync::atomic::AtomicBool,
}

impl Observed {
    pub(super) fn get(&self) -> Observation {
        self.current.lock().clone()
    }

    /// Changes the observations.
    pub(super) fn update(&self, change: impl FnOnce(&mut Observation)) {
        change(&mut self.current.lock());
    }

    pub(super) fn clear(&self) {
        *self.current.lock() = Observation::default();
    }

    /// Notes that the coordinator has no such node.
    pub(super) fn refuse(&self, reason: String) {
        *self.current.lock() =
            Observation { is_refused: true, failure: Some(reason), ..Observation::default() };
    }

    /// Notes that the connection to the coordinator is lost. The last map stays.
    pub(super) fn lose(&self, reason: String) {
        self.update(|seen| (seen.is_connected, seen.failure) = (false, Some(reason)));
    }

    /// Returns the reason why the membership does not work as wanted.
    pub(super) fn failure(&self) -> Option<String> {
        let current = self.current.lock();
        current.failure.clone().or_else(|| current.device_failure.clone())
    }

    pub(super) fn erase(&self) {
        self.erased.store(true, std::sync::atomic::Ordering::Release);
        self.clear();
    }

    pub(super) fn is_erased(&self) -> bool {
        self.erased.load(std::sync::atomic::Ordering::Acquire)
    }
}
