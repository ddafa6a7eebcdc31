//! Anomaly that was found.

use gateway_model::Id;
use gateway_model::kinds::anomaly::{AnomalyKind, AnomalyStatus};
use gateway_model::settings::groups::Severity;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use crate::flow_log::FlowId;

/// Time in which the value was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnomalyWindow {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// Anomaly in the traffic of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Anomaly {
    /// Grows with each anomaly; unique.
    pub id: u64,
    pub kind: AnomalyKind,
    pub device_id: Id,
    /// Distance from what is usual: 0.5 at the threshold, near 1 far above it.
    pub score: f64,
    pub severity: Severity,
    /// Usual value. Null where one observation is enough.
    pub baseline: Option<Baseline>,
    /// Largest value in the window, in the unit of `unit`.
    pub observed: f64,
    /// Unit of `observed` and of the baseline.
    pub unit: String,
    pub window: AnomalyWindow,
    /// Source that it rests on.
    pub rests_on: String,
    /// Flows that it rests on, at most eight: those of the last connections, or with the most bytes. Empty if it rests on no
    /// flows.
    #[serde(default)]
    pub flow_ids: Vec<FlowId>,
    /// Human-readable description.
    pub description: String,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    pub status: AnomalyStatus,
}

/// Conditions on anomalies. All that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnomalyFilter {
    pub kind: Option<AnomalyKind>,
    pub severity: Option<Severity>,
    pub status: Option<AnomalyStatus>,
    pub device_id: Option<Id>,
}

impl AnomalyFilter {
    pub fn matches(&self, anomaly: &Anomaly) -> bool {
        self.kind.is_none_or(|kind| kind == anomaly.kind)
            && self.severity.is_none_or(|severity| severity == anomaly.severity)
            && self.status.is_none_or(|status| status == anomaly.status)
            && self.device_id.is_none_or(|device| device == anomaly.device_id)
    }
}

/// Observation that is an anomaly.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Detected {
    pub kind: AnomalyKind,
    pub observed: f64,
    pub unit: &'static str,
    pub baseline: Option<Baseline>,
    pub rests_on: &'static str,
    pub flow_ids: Vec<FlowId>,
    pub description: String,
}

impl Detected {
    /// Returns the distance from what is usual.
    pub(super) fn score(&self) -> f64 {
        let threshold = self.baseline.map_or(0.0, |baseline| baseline.threshold);
        let score = if self.observed > 0.0 { 1.0 - threshold / (2.0 * self.observed) } else { 0.5 };
        let certain = if self.baseline.is_none() { 0.75 } else { score };
        (certain.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
    }

    pub(super) fn severity(&self) -> Severity {
        match self.kind {
            AnomalyKind::MacSpoof => Severity::Critical,
            AnomalyKind::NewPort
            | AnomalyKind::NewDestinationCountry
            | AnomalyKind::NightActivity
            | AnomalyKind::DohUsage => Severity::Info,
            _ if self.score() >= 0.95 => Severity::Critical,
            _ => Severity::Warning,
        }
    }
}
