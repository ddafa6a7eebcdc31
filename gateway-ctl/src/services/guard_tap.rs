//! Tap behind the egress guard of each interface, and the alert about packets that left past it.
//!
//! Decision 0101 says why.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::facts::Facts;
use gateway_core::plan::{Attachment, Plan};
use gateway_model::kinds::alert_rule::AlertKind;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::handles::in_memory;
use crate::metrics::counters;
use crate::os::bpf::{self, Counters, InterfaceTap};
use crate::os::link_counters;
use crate::reconcile::KernelDataplane;
use crate::service::{Context, Service};
use crate::services::active_alerts::ActiveAlerts;
use crate::services::flow_check;
use crate::services::tap_observation::{self, Observed};
use crate::supervise::blocking;

/// Period after which the counters are read. A burst ends it.
const OBSERVATION: Duration = Duration::from_secs(1);
/// The first is short: there is no verdict before it.
const FIRST_OBSERVATION: Duration = Duration::from_millis(250);
/// Pause of the tap while interfaces send more than [`MAX_RATE`].
const PAUSE: Duration = Duration::from_secs(9);
/// Packets per second that the tap observes without a pause. The kernel copies the descriptor of each packet for a tap, which
/// takes about 0.3 microseconds: at this rate 1.5 % of a processor.
const MAX_RATE: u64 = 50_000;
/// Time for which a packet that left past the guard counts as a leak of now.
const LEAK_PERIOD: Duration = Duration::from_secs(300);
const LEAK: AlertKind = AlertKind::LeakDetected;

/// Forwarded packets that left past the egress guard.
#[derive(Clone, Debug, Default)]
pub struct Escapes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By interface, since the start of the daemon.
    counters: BTreeMap<String, Counters>,
    /// Packets of the last [`LEAK_PERIOD`].
    recent: VecDeque<(Instant, String, u64)>,
    /// Time for which the tap has observed under a plan in force, and for which it has paused.
    observed: Duration,
    paused: Duration,
    /// Reason for which packets are not counted.
    failure: Option<String>,
}

/// Reading of the tap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EscapeCounts {
    pub counters: BTreeMap<String, Counters>,
    /// Packets of the last minutes.
    pub recent: u64,
    /// The tap has observed under a plan in force. Before that, no packets does not mean no leak.
    pub is_observed: bool,
    /// Share of the time since the start that the tap has observed, in percent.
    pub observed_pct: f64,
    /// Reason for which packets are not counted; human-readable.
    pub failure: Option<String>,
}

in_memory!(Escapes);

impl Escapes {
    pub fn read(&self) -> EscapeCounts {
        let state = self.0.lock();
        let recent = state.recent.iter().map(|(.., packets)| packets).sum();
        EscapeCounts {
            counters: state.counters.clone(),
            recent,
            is_observed: !state.observed.is_zero(),
            observed_pct: percent(state.observed, state.paused),
            failure: state.failure.clone(),
        }
    }

    /// Takes a reading of the counters. Returns the new packets by interface.
    fn note(&self, now: Instant, counters: BTreeMap<String, Counters>) -> BTreeMap<String, u64> {
        let mut state = self.0.lock();
        let before = |name: &String| state.counters.get(name).map_or(0, |counters| counters.packets);
        let new = counters.iter().map(|(name, now)| (name.clone(), now.packets.saturating_sub(before(name))));
        let new: BTreeMap<String, u64> = new.filter(|(_, packets)| *packets > 0).collect();
        state.recent.extend(new.iter().map(|(name, packets)| (now, name.clone(), *packets)));
        while state.recent.front().is_some_and(|(at, ..)| now.duration_since(*at) > LEAK_PERIOD) {
            state.recent.pop_front();
        }
        // Counters of an interface that is gone are kept.
        state.counters.extend(counters);
        new
    }

    fn note_observed(&self, duration: Duration) {
        let mut state = self.0.lock();
        state.observed += duration;
        state.failure = None;
    }

    fn note_pause(&self, duration: Duration) {
        self.0.lock().paused += duration;
    }

    fn fail(&self, failure: String) {
        self.0.lock().failure = Some(failure);
    }
}

/// Returns the service that observes the guarded interfaces.
pub fn service(context: &Context) -> Service {
    let escapes = context.handles.get::<Escapes>();
    Service::new("guard_tap", context, run).measures(move |registry| {
        let escaped = escapes.read().counters.into_iter();
        counters(
            registry,
            "escaped_packets",
            "Forwarded packets that left past the egress guard while the tap observed, by interface",
            escaped.map(|(interface, counted)| (vec![("interface", interface)], counted.packets)),
        );
    })
}

/// Runs until it is aborted.
async fn run(Context { worlds, wake, dataplane, active_alerts, handles, .. }: Context) {
    let escapes = &handles.get::<Escapes>();
    let (compiled, facts) = (wake.compiled(), wake.facts());
    while worlds.now().status.run == 0 {
        tokio::time::sleep(FIRST_OBSERVATION).await;
    }
    let mut open: Option<OpenTap> = None;
    loop {
        let guarded = guarded(&compiled.borrow().plan, &facts.borrow());
        let duration = if escapes.read().is_observed { OBSERVATION } else { FIRST_OBSERVATION };
        match observe(&dataplane, open.take(), guarded, duration).await {
            Ok((tap, observed)) => {
                escapes.note_observed(observed.duration);
                report(&active_alerts, escapes, observed.counters);
                open = Some(tap);
                // While packets leave past the guard, none goes uncounted.
                if observed.is_burst && escapes.read().recent == 0 {
                    open = None;
                    escapes.note_pause(PAUSE);
                    tokio::time::sleep(PAUSE).await;
                }
            }
            Err(error) => {
                escapes.fail(error.to_string());
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Tap on all guarded interfaces.
struct OpenTap {
    /// Names by index.
    guarded: BTreeMap<u32, String>,
    #[expect(dead_code, reason = "they observe until they are dropped")]
    sockets: Vec<InterfaceTap>,
}

/// Result of an observation.
struct Observation {
    counters: BTreeMap<String, Counters>,
    duration: Duration,
    /// The guarded interfaces sent more than [`MAX_RATE`].
    is_burst: bool,
}

/// Returns the interfaces with a guard, by index.
fn guarded(plan: &Plan, facts: &Facts) -> BTreeMap<u32, String> {
    let guarded = plan.attach.iter().filter(|(_, kind)| **kind == Attachment::Guard);
    guarded.filter_map(|(name, _)| Some((facts.links.get(name)?.index, name.clone()))).collect()
}

/// Observes the interfaces for some time with the tap that is open, or with a new one if the interfaces have changed.
async fn observe(
    dataplane: &KernelDataplane,
    open: Option<OpenTap>,
    guarded: BTreeMap<u32, String>,
    duration: Duration,
) -> Result<(OpenTap, Observation), bpf::Error> {
    let tap = match open {
        Some(tap) if tap.guarded == guarded => tap,
        // The former one observes until the new one does.
        former => {
            let (programs, indexes) = (dataplane.clone(), guarded.keys().copied().collect());
            let sockets = blocking(move || tap(&programs, indexes)).await?;
            drop(former);
            OpenTap { guarded, sockets }
        }
    };
    let budget = packets_in(duration);
    let Observed { duration, packets } =
        tap_observation::observe(duration, budget, || sent_packets(&tap.guarded)).await;
    let programs = dataplane.clone();
    let counters = blocking(move || programs.with(|programs| programs.escaped())).await?;
    let counters = named(&tap.guarded, counters);
    Ok((tap, Observation { counters, duration, is_burst: packets > budget }))
}

fn tap(dataplane: &KernelDataplane, interfaces: Vec<u32>) -> Result<Vec<InterfaceTap>, bpf::Error> {
    interfaces.into_iter().map(|index| dataplane.with(|programs| programs.tap_guard(index))).collect()
}

/// Returns the number of packets that the interfaces have sent.
fn sent_packets(guarded: &BTreeMap<u32, String>) -> u64 {
    match link_counters::sent_packets() {
        Ok(sent) => guarded.values().filter_map(|name| sent.get(name)).sum(),
        Err(error) => {
            tracing::warn!(%error, "failed to read the counters of interfaces");
            0
        }
    }
}

fn percent(observed: Duration, paused: Duration) -> f64 {
    let all = (observed + paused).as_secs_f64();
    if all == 0.0 { 0.0 } else { (1000.0 * observed.as_secs_f64() / all).round() / 10.0 }
}

/// Returns the number of packets in a time at [`MAX_RATE`].
fn packets_in(duration: Duration) -> u64 {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    milliseconds.saturating_mul(MAX_RATE) / 1000
}

fn named(guarded: &BTreeMap<u32, String>, counters: BTreeMap<u32, Counters>) -> BTreeMap<String, Counters> {
    let name = |index: u32| guarded.get(&index).cloned().unwrap_or_else(|| format!("ifindex {index}"));
    counters.into_iter().map(|(index, counters)| (name(index), counters)).collect()
}

fn report(active_alerts: &ActiveAlerts, escapes: &Escapes, counters: BTreeMap<String, Counters>) {
    for (interface, packets) in escapes.note(Instant::now(), counters) {
        tracing::error!(%interface, packets, "packets left past the egress guard");
        let message = format!("{packets} packets left past the egress guard by {interface}");
        active_alerts.raise(LEAK, &interface, message);
    }
    let state = escapes.0.lock();
    // Alerts about flows end by themselves.
    let is_recent = |interface: &str| state.recent.iter().any(|(_, name, _)| name == interface);
    active_alerts.keep(LEAK, |subject| subject == flow_check::SUBJECT || is_recent(subject));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn budget_of_a_time_is_its_share_of_a_second() {
        assert_eq!(packets_in(Duration::from_millis(250)), MAX_RATE / 4);
    }

    fn counted(packets: u64) -> BTreeMap<String, Counters> {
        BTreeMap::from([("eth0".to_owned(), Counters { packets, bytes: 100 * packets })])
    }

    #[tokio::test(start_paused = true)]
    async fn an_escape_is_an_alert_for_some_minutes() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        let escapes = Escapes::default();
        report(&active_alerts, &escapes, BTreeMap::new());
        assert_eq!(active_alerts.list(), []);
        report(&active_alerts, &escapes, counted(2));
        report(&active_alerts, &escapes, counted(5));
        let active = active_alerts.list();
        assert_eq!((active.len(), active[0].subject.as_str()), (1, "eth0"));
        assert_eq!(escapes.read().recent, 5);
        tokio::time::advance(LEAK_PERIOD + OBSERVATION).await;
        report(&active_alerts, &escapes, counted(5));
        assert_eq!(active_alerts.list(), []);
        escapes.note_observed(OBSERVATION);
        escapes.note_pause(PAUSE);
        assert_eq!(escapes.read().observed_pct, 10.0);
        let later = escapes.read();
        assert_eq!((later.recent, later.counters["eth0"].packets), (0, 5));
    }
}
