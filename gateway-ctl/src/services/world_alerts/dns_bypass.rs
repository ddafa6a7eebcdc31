//! Alerts of devices that ask other resolvers although their privacy blocks redirect or deny it. The subject is the ID of the
//! device.
//!
//! The kernel counts such packets by device, policy and reason. The difference of two readings is one report, whatever the
//! number of packets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gateway_common::verdict::Reason;
use gateway_common::wire::BlockKey;
use gateway_model::State;
use gateway_model::kinds::alert_rule::AlertKind;

use crate::os::bpf::Counters;
use crate::reconcile::KernelDataplane;
use crate::services::active_alerts::ActiveAlerts;
use crate::supervise::blocking;

/// Interval of the readings.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// Packets that were counted so far.
#[derive(Debug, Default)]
pub(super) struct DnsBypass {
    /// Last reading; `None` before the first.
    counted: Option<BTreeMap<BlockKey, u64>>,
    read_at: Option<Duration>,
}

/// Packets of a device since the last reading.
#[derive(Debug, Default, PartialEq, Eq)]
struct Attempts {
    packets: u64,
    protocols: BTreeSet<&'static str>,
}

impl DnsBypass {
    /// Reads the counters when it is time, and reports what is new.
    pub(super) async fn report(
        &mut self,
        alerts: &ActiveAlerts,
        state: &State,
        dataplane: &KernelDataplane,
        boot: Duration,
    ) {
        if self.read_at.is_some_and(|last| boot.saturating_sub(last) < READ_INTERVAL) {
            return;
        }
        self.read_at = Some(boot);
        let dataplane = dataplane.clone();
        let read = blocking(move || dataplane.with(|programs| programs.block_hits())).await;
        match read {
            Ok(hits) => self.publish(alerts, state, &hits),
            Err(error) => tracing::warn!(%error, "failed to read the counters of privacy blocks"),
        }
    }

    fn publish(&mut self, alerts: &ActiveAlerts, state: &State, hits: &BTreeMap<BlockKey, Counters>) {
        for (index, Attempts { packets, protocols }) in self.follow(hits) {
            let Some(device) = state.devices.iter().find(|device| device.meta.slot == index) else {
                continue;
            };
            let protocols = protocols.into_iter().collect::<Vec<_>>().join(", ");
            let message = format!("the device {} asks other resolvers: {protocols}", device.name);
            let id = device.meta.id.to_string();
            alerts.note_events(AlertKind::DnsBypassAttempt, &id, packets, message);
        }
    }

    /// Returns the new packets by the index of the device. The first reading has no new ones.
    fn follow(&mut self, hits: &BTreeMap<BlockKey, Counters>) -> BTreeMap<u32, Attempts> {
        let of_resolvers = hits.iter().filter_map(|(key, hits)| Some((*key, protocol(key)?, hits.packets)));
        let (mut now, mut attempts) = (BTreeMap::new(), BTreeMap::<u32, Attempts>::new());
        for (key, protocol, packets) in of_resolvers {
            now.insert(key, packets);
            let Some(before) = &self.counted else { continue };
            let before = before.get(&key).copied().unwrap_or_default();
            // Counters that were cleared begin again.
            let new = if packets < before { packets } else { packets - before };
            if new > 0 {
                let of_device = attempts.entry(key.device).or_default();
                of_device.packets += new;
                of_device.protocols.insert(protocol);
            }
        }
        self.counted = Some(now);
        attempts
    }
}

/// Returns the name of the protocol if the packet was for another resolver.
fn protocol(key: &BlockKey) -> Option<&'static str> {
    match Reason::from_wire(u8::try_from(key.reason).ok()?)? {
        Reason::ForcedDns => Some("DNS"),
        Reason::ForcedDnsReject | Reason::DotBlocked => Some("DNS over TLS or QUIC"),
        Reason::DohBlocked => Some("DNS over HTTPS"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(device: u32, reason: Reason, packets: u64) -> (BlockKey, Counters) {
        (BlockKey { device, policy: 0, reason: reason as u32 }, Counters { packets, bytes: 100 })
    }

    #[test]
    fn new_packets_to_other_resolvers_are_reported_by_device() {
        let mut bypass = DnsBypass::default();
        let mut read = |hits: &[(BlockKey, Counters)]| {
            let attempts = bypass.follow(&hits.iter().copied().collect()).into_iter();
            let attempts = attempts.map(|(device, it)| (device, it.packets, it.protocols.len()));
            attempts.collect::<Vec<_>>()
        };
        let (dns, dot, doh) = (Reason::ForcedDns, Reason::DotBlocked, Reason::DohBlocked);
        assert_eq!(read(&[hit(1, dns, 100)]), [], "of the time before");
        assert_eq!(read(&[hit(1, dns, 100)]), []);
        let now = [hit(1, dns, 103), hit(1, dot, 2), hit(2, doh, 1), hit(3, Reason::StunBlocked, 9)];
        assert_eq!(read(&now), [(1, 5, 2), (2, 1, 1)]);
        assert_eq!(read(&[hit(1, dns, 4)]), [(1, 4, 1)], "the counters were cleared");
    }
}
