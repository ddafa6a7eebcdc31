//! Metrics of captures. Counters are sums over the captures of this run of the daemon, those that were deleted included.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::registry::Registry;

use super::session::{CaptureEnd, CaptureSession, CaptureState};
use crate::metrics::{counter, counters, gauge};

/// Sums over captures.
#[derive(Clone, Debug, Default)]
pub struct CaptureTotals(Arc<Mutex<Totals>>);

#[derive(Clone, Debug, Default)]
struct Totals {
    started: u64,
    ended: BTreeMap<CaptureEnd, u64>,
    packets: u64,
    bytes: u64,
    dropped: u64,
}

impl Totals {
    fn add(&mut self, session: &CaptureSession) {
        self.packets += session.packets;
        self.bytes += session.bytes;
        self.dropped += session.dropped;
    }
}

impl CaptureTotals {
    pub(super) fn count_start(&self) {
        self.0.lock().started += 1;
    }

    /// Counts a capture that has ended. `publish` makes its end known, so that no reader counts it twice or not at all.
    pub(super) fn count_end(&self, session: &CaptureSession, publish: impl FnOnce()) {
        let mut totals = self.0.lock();
        if let Some(end) = session.end {
            *totals.ended.entry(end).or_default() += 1;
        }
        totals.add(session);
        publish();
    }

    /// Adds the captures that `sessions` returns, and the sums.
    pub(super) fn register(&self, registry: &mut Registry, sessions: impl FnOnce() -> Vec<CaptureSession>) {
        // While it is locked, no capture ends.
        let totals = self.0.lock();
        let sessions = sessions();
        let mut sums = totals.clone();
        drop(totals);
        let running = sessions.iter().filter(|session| session.state == CaptureState::Running);
        let running_count = running.clone().count();
        running.for_each(|session| sums.add(session));
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        gauge(registry, "captures_running", "Packet captures that run", number(running_count));
        gauge(registry, "captures_kept", "Packet captures that run or are kept", number(sessions.len()));
        counter(registry, "captures_started", "Packet captures that were started", sums.started);
        let ended = CaptureEnd::ALL.map(|end| {
            (vec![("cause", end.as_str().to_owned())], sums.ended.get(&end).copied().unwrap_or_default())
        });
        counters(registry, "captures_ended", "Packet captures that have ended, by cause", ended);
        counter(registry, "captured_packets", "Packets of all captures", sums.packets);
        counter(registry, "captured_bytes", "Length of these packets on the wire", sums.bytes);
        let help = "Packets that passed the filter of a capture and were lost, because they came faster than they were read";
        counter(registry, "capture_dropped_packets", help, sums.dropped);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::services::captures::session::tests::session;

    fn text(totals: &CaptureTotals, sessions: &[CaptureSession]) -> String {
        let mut registry = Registry::default();
        totals.register(&mut registry, || sessions.to_vec());
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        text
    }

    #[test]
    fn running_captures_count_and_ended_ones_stay_counted_when_they_are_deleted() {
        let totals = CaptureTotals::default();
        let mut capture = session(CaptureState::Running);
        (capture.packets, capture.bytes, capture.dropped) = (3, 300, 1);
        totals.count_start();
        let shown = text(&totals, std::slice::from_ref(&capture));
        for line in [
            "captures_running 1",
            "captures_started_total 1",
            "captured_packets_total 3",
            "captured_bytes_total 300",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
        }
        capture.packets = 5;
        (capture.state, capture.end) = (CaptureState::Done, Some(CaptureEnd::Count));
        totals.count_end(&capture, || {});
        for sessions in [&[capture][..], &[]] {
            let shown = text(&totals, sessions);
            for line in [
                "captures_running 0",
                "captured_packets_total 5",
                "capture_dropped_packets_total 1",
                "captures_ended_total{cause=\"count\"} 1",
                "captures_ended_total{cause=\"size\"} 0",
            ] {
                assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
            }
        }
    }
}
