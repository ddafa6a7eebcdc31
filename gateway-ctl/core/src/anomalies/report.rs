//! Summary of the detection.

use std::collections::BTreeMap;

use gateway_model::kinds::anomaly::{AnomalyKind, AnomalyStatus};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::engine::AnomalyEngine;
use super::observation_source::ObservationSource;

/// Summary of the detection.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnomalyStats {
    pub enabled: bool,
    /// `encrypted_storage` while what is usual of devices waits for it: nothing is observed until it is open. Null
    /// otherwise.
    pub waits_for: Option<&'static str>,
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
    /// Flows that were not observed, because there were too many.
    pub missed_flows: u64,
}

/// Numbers of what was not observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    pub queries: u64,
    pub flows: u64,
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
    /// Number of devices of which it is still learned what is usual. 0 if it needs no baseline.
    pub devices_learning: usize,
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
        ObservationSource::FlowLog => "Flows are not logged: flow_log.enabled, or there is no kernel.",
        ObservationSource::Countries => {
            "The countries of addresses are not known: countries.database names no database, or flows are not logged."
        }
    }
}

impl AnomalyEngine {
    fn learning_of(&self, kind: AnomalyKind) -> usize {
        use AnomalyKind::*;
        match kind {
            AbnormalUpload | NightActivity | DnsVolume | DnsNxdomainBurst => {
                self.learning(|profile| profile.hours)
            }
            NewPort | Beaconing | TorOrVpnUsage => self.learning(|profile| profile.flow_hours),
            NewDestinationCountry => self.learning(|profile| profile.country_hours),
            LargeUpload | DgaLike | DnsTunnelLike | DohUsage | PortScan | MacSpoof => 0,
        }
    }

    /// Returns the summary.
    pub fn stats(&self, enabled: bool, missed: Missed, now: Timestamp) -> AnomalyStats {
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
            let reason = if !enabled {
                Some("The detection is off: anomalies.enabled.".to_owned())
            } else if !self.is_enabled(*kind) {
                Some("It is off: anomalies.disabled_kinds.".to_owned())
            } else if !self.sources().contains(&source) {
                Some(missing(source).to_owned())
            } else {
                None
            };
            let devices_learning = self.learning_of(*kind);
            AnomalyKindState { kind: *kind, observed: reason.is_none(), source, reason, devices_learning }
        };
        AnomalyStats {
            enabled,
            waits_for: None,
            learning: devices_learning == devices,
            learned_since: self.learned_since(),
            devices,
            devices_learning,
            by_kind,
            by_severity,
            open: self.anomalies().filter(|anomaly| anomaly.status == AnomalyStatus::Open).count(),
            last_24h: self.anomalies().filter(|anomaly| is_new(anomaly.first_seen)).count(),
            kinds: AnomalyKind::ALL.iter().map(state).collect(),
            missed_queries: missed.queries,
            missed_flows: missed.flows,
        }
    }
}
