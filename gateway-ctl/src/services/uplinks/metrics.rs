//! Metrics of uplinks.

use prometheus_client::registry::{Registry, Unit};

use crate::metrics::{gauges, measured};
use crate::world::reports::uplinks::UplinkStates;

/// Adds state and measurements of the uplinks that are probed.
pub(super) fn register(registry: &mut Registry, states: &UplinkStates) {
    let labels = |interface: &String| vec![("interface", interface.clone())];
    let up = states.uplinks.iter().map(|(name, report)| (labels(name), i64::from(report.state.is_usable())));
    gauges(registry, "uplink_up", "1 if traffic passes by the uplink, else 0", up);
    let active =
        states.uplinks.keys().map(|name| (labels(name), i64::from(states.active.as_ref() == Some(name))));
    gauges(registry, "uplink_active", "1 if the uplink is the active one, else 0", active);
    let loss =
        states.uplinks.iter().filter_map(|(name, report)| Some((labels(name), report.loss_pct? / 100.0)));
    measured(
        registry,
        ("uplink_loss", Unit::Ratios),
        "Share of probes without an answer in the last rounds",
        loss,
    );
    let latency =
        states.uplinks.iter().filter_map(|(name, report)| Some((labels(name), report.latency_ms? / 1000.0)));
    measured(registry, ("uplink_latency", Unit::Seconds), "Mean time of answers in the last rounds", latency);
}
