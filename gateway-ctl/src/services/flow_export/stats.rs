//! Counters and state of each collector.

use enum_map::{Enum, EnumMap};
use gateway_model::text_enum;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::Serialize;

use crate::metrics::{counter, counters, gauges};

text_enum! {
    /// Protocol of a collector.
    #[derive(Enum)]
    pub enum Collector {
        Ipfix = "ipfix",
        Syslog = "syslog",
        Otlp = "otlp",
    }
}

text_enum! {
    /// State of a collector.
    pub enum CollectorStatus {
        /// The collector is off.
        Off = "off",
        /// Nothing was sent yet, or not since the connection was lost.
        Unknown = "unknown",
        /// The last attempt succeeded.
        Ok = "ok",
        /// The last attempt failed; it is repeated.
        Failed = "failed",
    }
}

/// Collector, and what it has got since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CollectorState {
    pub collector: Collector,
    pub status: CollectorStatus,
    /// Records that were sent. Over UDP, nothing tells whether they arrived.
    pub sent: u64,
    /// Records that wait; null while the collector gets none.
    pub waiting: Option<u64>,
    /// Records that the flow log removed before the collector took them.
    pub lost: u64,
    /// Time of the last records that were sent.
    pub last_sent_at: Option<Timestamp>,
    /// Reason of the last failure, while the collector fails.
    pub error: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    sent: u64,
    lost: u64,
    failures: u64,
    last_sent_at: Option<Timestamp>,
    /// `None` before the first attempt.
    result: Option<Result<(), String>>,
}

#[derive(Debug, Default)]
pub(super) struct Stats {
    counts: Mutex<EnumMap<Collector, Counts>>,
    /// Readings of the metrics that were sent.
    pushes: Mutex<u64>,
}

impl Stats {
    pub(super) fn sent(&self, collector: Collector) -> u64 {
        self.counts.lock()[collector].sent
    }

    pub(super) fn took(&self, collector: Collector, records: usize, now: Timestamp) {
        let mut counts = self.counts.lock();
        let counts = &mut counts[collector];
        if records > 0 {
            counts.sent += records as u64;
            counts.last_sent_at = Some(now);
            counts.result = Some(Ok(()));
        }
    }

    pub(super) fn lost(&self, collector: Collector, records: u64) {
        self.counts.lock()[collector].lost += records;
    }

    pub(super) fn failed(&self, collector: Collector, error: String) {
        let mut counts = self.counts.lock();
        counts[collector].failures += 1;
        counts[collector].result = Some(Err(error));
    }

    /// Notes that a collector took a connection after a failure. Whether it takes records is not known yet.
    pub(super) fn connected(&self, collector: Collector) {
        let mut counts = self.counts.lock();
        counts[collector].result.take_if(|result| result.is_err());
    }

    pub(super) fn off(&self, collector: Collector) {
        self.counts.lock()[collector].result = None;
    }

    pub(super) fn pushed(&self) {
        *self.pushes.lock() += 1;
        self.counts.lock()[Collector::Otlp].result = Some(Ok(()));
    }

    pub(super) fn state(&self, collector: Collector, is_on: bool, waiting: Option<u64>) -> CollectorState {
        let Counts { sent, lost, last_sent_at, result, .. } = self.counts.lock()[collector].clone();
        let (status, error) = match result {
            _ if !is_on => (CollectorStatus::Off, None),
            None => (CollectorStatus::Unknown, None),
            Some(Ok(())) => (CollectorStatus::Ok, None),
            Some(Err(error)) => (CollectorStatus::Failed, Some(error)),
        };
        CollectorState { collector, status, sent, waiting, lost, last_sent_at, error }
    }

    pub(super) fn measure(&self, registry: &mut Registry, states: &[CollectorState]) {
        let label = |collector: Collector| vec![("collector", collector.to_string())];
        let count = |of: fn(&Counts) -> u64| {
            let counts = self.counts.lock();
            let values: Vec<_> = Collector::ALL.iter().map(|c| (label(*c), of(&counts[*c]))).collect();
            values
        };
        counters(registry, "flow_export_records", "Flow records sent to collectors", count(|c| c.sent));
        counters(
            registry,
            "flow_export_lost_records",
            "Flow records that the flow log removed before the collector took them",
            count(|c| c.lost),
        );
        counters(registry, "flow_export_failures", "Attempts that failed", count(|c| c.failures));
        let waiting = states.iter().filter_map(|state| Some((label(state.collector), state.waiting?)));
        let waiting = waiting.map(|(label, count)| (label, i64::try_from(count).unwrap_or(i64::MAX)));
        gauges(registry, "flow_export_waiting_records", "Flow records that wait for a collector", waiting);
        counter(
            registry,
            "metrics_pushes",
            "Readings of the metrics that were sent to a collector",
            *self.pushes.lock(),
        );
    }
}
