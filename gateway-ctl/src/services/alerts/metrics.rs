//! Metrics of alerts.

use std::collections::BTreeMap;

use prometheus_client::registry::Registry;

use super::state::State;
use crate::metrics::{counter, gauge, gauges};

/// Adds the open alerts by kind and severity, and the notifications since the start.
pub(super) fn register(registry: &mut Registry, state: &State) {
    let mut open: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for record in state.engine.open() {
        *open.entry((record.alert.kind.as_str(), record.alert.severity.as_str())).or_default() += 1;
    }
    let labels =
        |kind: &str, severity: &str| vec![("kind", kind.to_owned()), ("severity", severity.to_owned())];
    let values = open.into_iter().map(|((kind, severity), count)| (labels(kind, severity), count));
    gauges(registry, "alerts_open", "Alerts that are not resolved", values);
    let muted = u64::try_from(state.engine.muted().count()).unwrap_or(u64::MAX);
    gauge(registry, "alerts_muted", "Alerts that are muted", muted);
    counter(registry, "alerts_raised", "Notifications of raised alerts", state.raised);
    counter(registry, "alerts_resolved", "Notifications of resolved alerts", state.resolved);
}
