//! Counters of the flow log, and its metrics.

use gateway_core::flow_log::Losses;
use prometheus_client::registry::Registry;

use crate::metrics::{counter, gauge};

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowLogStats {
    /// Flows that go on.
    pub active: usize,
    pub written: u64,
    pub losses: Losses,
    /// Observations during which the kernel could not report all ends.
    pub lost_reports: u64,
    /// Observations that failed.
    pub failed: u64,
}

pub(super) fn register(registry: &mut Registry, stats: &FlowLogStats) {
    let FlowLogStats { active, written, losses, lost_reports, failed } = *stats;
    let active = u64::try_from(active).unwrap_or(u64::MAX);
    gauge(registry, "flow_log_active_flows", "Flows that the flow log follows", active);
    let mut count = |name, help, value| counter(registry, name, help, value);
    count("flow_log_records", "Records that the flow log has written", written);
    count(
        "flow_log_untracked_flows",
        "Flows without a record, because too many are followed",
        losses.untracked,
    );
    count("flow_log_unreported_ends", "Flows whose end the kernel did not report", losses.unreported);
    count(
        "flow_log_lost_reports",
        "Readings before which the kernel lost reports of ended connections",
        lost_reports,
    );
    count("flow_log_failed_readings", "Readings of the kernel's tables that failed", failed);
}
