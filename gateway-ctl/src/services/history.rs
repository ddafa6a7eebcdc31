//! History of uplinks and tunnels: samples of the published world, kept in memory for a day.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::history::{MinuteRing, Span, Spans};
use gateway_model::Id;
use gateway_model::kinds::tunnel_health::{TunnelLive, TunnelStatus};
use gateway_model::settings::uplink::UplinkState;
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::handles::in_memory;
use crate::service::{Context, Service};
use crate::world::World;
use crate::world::reports::uplinks::UplinkReport;

/// Longest time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// History that the service fills and the API reads.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    /// By interface.
    uplinks: BTreeMap<String, UplinkRecord>,
    tunnels: BTreeMap<Id, TunnelRecord>,
}

#[derive(Debug, Default)]
struct UplinkRecord {
    minutes: MinuteRing<UplinkSamples>,
    spans: Spans<(UplinkState, bool)>,
}

/// Samples of one minute.
#[derive(Clone, Debug, Default)]
struct UplinkSamples {
    latency: Mean,
    loss: Mean,
}

#[derive(Debug, Default)]
struct TunnelRecord {
    minutes: MinuteRing<TunnelSamples>,
    spans: Spans<TunnelStatus>,
    /// Counters at the last sample.
    counted: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
struct TunnelSamples {
    received: u64,
    sent: u64,
    latency: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    /// Returns the mean with three decimals. `None` without values.
    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / f64::from(self.count) * 1000.0).round() / 1000.0)
    }
}

/// History of an uplink in the last day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct UplinkHistory {
    /// States one after the other, oldest first. Times before the start of the daemon are missing.
    pub spans: Vec<UplinkSpan>,
    /// Measurements by minute, oldest first. Minutes without probes are missing.
    pub minutes: Vec<UplinkMinute>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UplinkSpan {
    pub from: Timestamp,
    pub to: Timestamp,
    pub state: UplinkState,
    /// It was the active uplink.
    pub active: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UplinkMinute {
    /// Begin of the minute.
    pub at: Timestamp,
    /// Mean over the minute; null if no probe was answered.
    pub latency_ms: Option<f64>,
    pub loss_pct: Option<f64>,
}

/// History of a tunnel in the last day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TunnelHistory {
    /// States one after the other, oldest first. Times before the start of the daemon are missing.
    pub spans: Vec<TunnelSpan>,
    /// Traffic by minute, oldest first. Minutes in which the daemon did not run are missing.
    pub minutes: Vec<TunnelMinute>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TunnelSpan {
    pub from: Timestamp,
    pub to: Timestamp,
    pub status: TunnelStatus,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TunnelMinute {
    /// Begin of the minute.
    pub at: Timestamp,
    /// Bytes received in this minute.
    pub rx_bytes: u64,
    /// Bytes sent in this minute.
    pub tx_bytes: u64,
    /// Mean over the minute; null without probes.
    pub latency_ms: Option<f64>,
}

in_memory!(History);

impl History {
    /// Returns the last minutes of an uplink, by interface.
    pub fn uplink(&self, interface: &str, now: Timestamp, minutes: usize) -> UplinkHistory {
        let mut recorded = self.0.lock();
        let Some(record) = recorded.uplinks.get_mut(interface) else { return UplinkHistory::default() };
        let span = |Span { from, to, state: (state, active) }| UplinkSpan { from, to, state, active };
        let minute = |(at, samples): (Timestamp, &UplinkSamples)| UplinkMinute {
            at,
            latency_ms: samples.latency.value(),
            loss_pct: samples.loss.value(),
        };
        UplinkHistory {
            spans: record.spans.last(now, minutes).into_iter().map(span).collect(),
            minutes: record.minutes.last(now, minutes).map(minute).collect(),
        }
    }

    /// Returns the last minutes of a tunnel.
    pub fn tunnel(&self, id: Id, now: Timestamp, minutes: usize) -> TunnelHistory {
        let mut recorded = self.0.lock();
        let Some(record) = recorded.tunnels.get_mut(&id) else { return TunnelHistory::default() };
        let span = |Span { from, to, state }| TunnelSpan { from, to, status: state };
        let minute = |(at, samples): (Timestamp, &TunnelSamples)| TunnelMinute {
            at,
            rx_bytes: samples.received,
            tx_bytes: samples.sent,
            latency_ms: samples.latency.value(),
        };
        TunnelHistory {
            spans: record.spans.last(now, minutes).into_iter().map(span).collect(),
            minutes: record.minutes.last(now, minutes).map(minute).collect(),
        }
    }

    fn clear(&self) {
        *self.0.lock() = Recorded::default();
    }

    /// Notes states and measurements.
    fn sample(&self, world: &World, now: Timestamp) {
        let mut recorded = self.0.lock();
        recorded.note_states(world, now);
        recorded.measure(world, now);
    }
}

impl Recorded {
    fn note_states(&mut self, world: &World, now: Timestamp) {
        let report = &world.reports.uplinks;
        self.uplinks.retain(|interface, _| report.uplinks.contains_key(interface));
        for (interface, uplink) in &report.uplinks {
            let is_active = report.active.as_ref() == Some(interface);
            let record = self.uplinks.entry(interface.clone()).or_default();
            // Becoming active is no change of the state, so its time is the present one.
            record.spans.note(&(uplink.state, is_active), now);
        }
        let tunnels = &world.reports.tunnels.tunnels;
        self.tunnels.retain(|id, _| tunnels.contains_key(id));
        for (id, tunnel) in tunnels {
            let record = self.tunnels.entry(*id).or_default();
            record.spans.note(&tunnel.status, tunnel.last_change.unwrap_or(now).min(now));
        }
    }

    fn measure(&mut self, world: &World, now: Timestamp) {
        for (interface, uplink) in &world.reports.uplinks.uplinks {
            self.uplinks.entry(interface.clone()).or_default().measure(uplink, now);
        }
        for (id, tunnel) in &world.reports.tunnels.tunnels {
            self.tunnels.entry(*id).or_default().measure(tunnel, now);
        }
    }
}

impl UplinkRecord {
    fn measure(&mut self, report: &UplinkReport, now: Timestamp) {
        if report.checked_at.is_some() {
            let samples = self.minutes.slot(now);
            samples.latency.add(report.latency_ms);
            samples.loss.add(report.loss_pct);
        }
    }
}

impl TunnelRecord {
    fn measure(&mut self, live: &TunnelLive, now: Timestamp) {
        let samples = self.minutes.slot(now);
        let counters = (live.rx_bytes, live.tx_bytes);
        if let Some((received, sent)) = self.counted.replace(counters) {
            samples.received += growth(received, counters.0);
            samples.sent += growth(sent, counters.1);
        }
        samples.latency.add(live.latency_ms);
    }
}

/// Returns the growth of a counter. A counter that is lower than before began again with its interface.
fn growth(before: u64, after: u64) -> u64 {
    after.checked_sub(before).unwrap_or(after)
}

/// Returns the service that takes the samples.
pub fn service(context: &Context) -> Service {
    let history = context.handles.get::<History>();
    Service::new("history", context, run).erases(move |_| {
        history.clear();
        std::future::ready(Ok(()))
    })
}

/// Takes samples until it is aborted.
async fn run(context: Context) {
    let history = &context.handles.get::<History>();
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut published = context.worlds.watch();
    loop {
        // A state, and a tunnel with its counters, may last for less than the interval.
        tokio::select! {
            _ = ticks.tick() => {}
            Ok(()) = published.changed() => {}
        }
        let world = published.borrow_and_update().clone();
        history.sample(&world, context.store.clock().now());
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::Compiled;
    use gateway_core::history::MINUTES;

    use super::*;
    use crate::world::reports::tunnels::TunnelStates;
    use crate::world::reports::uplinks::UplinkStates;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    #[test]
    fn traffic_of_a_tunnel_is_the_growth_of_its_counters() {
        let (history, id) = (History::default(), Id::mint(at(0), 1));
        let sample = |second, rx_bytes, status, since| {
            let live = TunnelLive {
                rx_bytes,
                tx_bytes: 2 * rx_bytes,
                status,
                last_change: Some(at(since)),
                ..TunnelLive::default()
            };
            let mut world = World::of(Compiled::default(), at(second));
            let mut states = TunnelStates::default();
            states.tunnels.insert(id, live);
            world.reports.tunnels = Arc::new(states);
            history.sample(&world, at(second));
        };
        sample(0, 1000, TunnelStatus::Up, 0);
        sample(30, 1500, TunnelStatus::Up, 0);
        sample(65, 1700, TunnelStatus::Up, 0);
        // The interface was created again.
        sample(70, 100, TunnelStatus::Degraded, 67);
        let shown = history.tunnel(id, at(80), MINUTES);
        let minutes: Vec<(u64, u64)> =
            shown.minutes.iter().map(|minute| (minute.rx_bytes, minute.tx_bytes)).collect();
        assert_eq!(minutes, [(500, 1000), (300, 600)]);
        let spans: Vec<_> = shown.spans.iter().map(|span| (span.from, span.to, span.status)).collect();
        let expected = [(at(0), at(67), TunnelStatus::Up), (at(67), at(80), TunnelStatus::Degraded)];
        assert_eq!(spans, expected);
        history.sample(&World::of(Compiled::default(), at(90)), at(90));
        assert_eq!(history.tunnel(id, at(90), MINUTES), TunnelHistory::default(), "the tunnel is gone");
    }

    #[test]
    fn measurements_of_an_uplink_are_means_and_its_spans_tell_when_it_was_active() {
        let history = History::default();
        let sample = |second, latency_ms, active: bool| {
            let report = UplinkReport {
                state: UplinkState::Online,
                latency_ms,
                loss_pct: Some(10.0),
                checked_at: Some(at(second)),
                ..UplinkReport::default()
            };
            let mut world = World::of(Compiled::default(), at(second));
            let mut states = UplinkStates::default();
            states.uplinks.insert("wan0".to_owned(), report);
            states.active = active.then(|| "wan0".to_owned());
            world.reports.uplinks = Arc::new(states);
            history.sample(&world, at(second));
        };
        sample(0, Some(10.0), false);
        sample(10, Some(20.0), true);
        sample(60, None, true);
        let shown = history.uplink("wan0", at(70), MINUTES);
        let latencies: Vec<_> = shown.minutes.iter().map(|minute| minute.latency_ms).collect();
        assert_eq!(latencies, [Some(15.0), None]);
        assert_eq!(shown.minutes[1].loss_pct, Some(10.0));
        let active: Vec<_> = shown.spans.iter().map(|span| (span.from, span.active)).collect();
        assert_eq!(active, [(at(0), false), (at(10), true)]);
        assert_eq!(history.uplink("wan1", at(70), MINUTES), UplinkHistory::default());
    }
}
