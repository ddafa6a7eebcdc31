//! Counters of notices.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::registry::Registry;

use crate::metrics::counters;

#[derive(Debug, Default)]
pub(in crate::services::federation) struct NoticeCounts {
    /// Sent to nodes, and accepted by them.
    sent: AtomicU64,
    /// Made this gateway pull.
    taken: AtomicU64,
}

impl NoticeCounts {
    pub(super) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn measure(&self, registry: &mut Registry) {
        let counts = [("sent", &self.sent), ("taken", &self.taken)];
        let counts = counts
            .map(|(result, count)| (vec![("result", result.to_owned())], count.load(Ordering::Relaxed)));
        let help = "Notices of changes: sent to nodes, or taken from a node with a pull that followed";
        counters(registry, "federation_notices", help, counts);
    }
}
