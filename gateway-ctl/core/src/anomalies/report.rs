//! Summary of the detection.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::kinds::anomaly::{AnomalyKind, AnomalyStatus};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::engine::AnomalyEngine;

/// Source of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservationSource {
    DeviceCounters,
    QueryLog,
    Hosts,
    FlowLog,
    /// A database of the countries of addresses.
    Countries,
}

/// Summary of the detection.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnomalyStats {
    pub enabled: bool,
    /// True while no device was observed for long enough.
    pub learning: bool,
    /// Time from which on devices are observed. Null before.
    pub learned_since: Option<Timestamp>,
    /// Number of devices that are observed.
    pub devices: usize,
    /// Of these, those whose usual values are still learned.
    pub devices_learning: usize,
    /// Anomalies of the last 30 days by kind.
    pub by_kind: BTreeMap<&'static str, usize>,
    pub by_severity: BTreeMap<&'static str, usize>,
    /// Anomalies that are open.
    pub open: usize,
    /// Anomalies that were first seen in the last 24 hours.
    pub last_24h: usize,
    /// Every kind, and whether it can be observed.
    pub kinds: Vec<AnomalyKindState>,
    /// DNS queries that were not observed, because there were too many.
    pub missed_queries: u64,
}

/// State of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnomalyKindState {
    pub kind: AnomalyKind,
    pub observed: bool,
    /// Source of its observations.
    pub source: ObservationSource,
    /// Reason for which it is not observed.
    pub reason: Option<String>,
}

/// Returns the source of the observations of a kind.
pub(super) fn source_of(kind: AnomalyKind) -> ObservationSource {
    use AnomalyKind::*;
    match kind {
        AbnormalUpload | LargeUpload | NightActivity => ObservationSource::DeviceCounters,
        DnsVolume | DnsNxdomainBurst | DgaLike | DnsTunnelLike | DohUsage => ObservationSource::QueryLog,
        NewPort | Beaconing | PortScan | TorOrVpnUsage => ObservationSource::FlowLog,
        MacSpoof => ObservationSource::Hosts,
        NewDestinationCountry => ObservationSource::Countries,
    }
}

fn missing(source: ObservationSource) -> &'static str {
    match source {
        ObservationSource::DeviceCounters => "The counters of the dataplane cannot be read.",
        ObservationSource::QueryLog => "The gateway runs no resolver.",
        ObservationSource::Hosts => "Hosts are not observed.",
        ObservationSource::FlowLog => "Flows are not compared.",
        ObservationSource::Countries => "The countries of addresses are not known.",
    }
}

impl AnomalyEngine {
    /// Returns the summary. `sources` are those that are there.
    pub fn stats(
        &self,
        enabled: bool,
        sources: &BTreeSet<ObservationSource>,
        missed_queries: u64,
        now: Timestamp,
    ) -> AnomalyStats {
        let (devices, devices_learning) = self.devices();
        let (mut by_kind, mut by_severity) = (BTreeMap::new(), BTreeMap::new());
        for anomaly in self.anomalies() {
            *by_kind.entry(anomaly.kind.as_str()).or_default() += 1;
            *by_severity.entry(anomaly.severity.as_str()).or_default() += 1;
        }
        let day = SignedDuration::from_hours(24);
        let is_new = |first: Timestamp| now.duration_since(first) < day;
        let state = |kind: &AnomalyKind| {
            let source = source_of(*kind);
            let observed = enabled && sources.contains(&source);
            let reason = (!observed).then(|| match enabled {
                true => missing(source).to_owned(),
                false => "The detection is off: anomalies.enabled.".to_owned(),
            });
            AnomalyKindState { kind: *kind, observed, source, reason }
        };
        AnomalyStats {
            enabled,
            learning: devices_learning == devices,
            learned_since: self.learned_since(),
            devices,
            devices_learning,
            by_kind,
            by_severity,
            open: self.anomalies().filter(|anomaly| anomaly.status == AnomalyStatus::Open).count(),
            last_24h: self.anomalies().filter(|anomaly| is_new(anomaly.first_seen)).count(),
            kinds: AnomalyKind::ALL.iter().map(state).collect(),
            missed_queries,
        }
    }
}
