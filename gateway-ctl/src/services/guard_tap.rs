//! Tap behind the egress guard of each interface, and the alert about packets that left past it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_core::facts::Facts;
use gateway_core::plan::{Attachment, Plan};
use gateway_model::kinds::alert_rule::AlertKind;
use tokio::time::Instant;

use crate::os::bpf::{self, Counters, GuardTap};
use crate::reconcile::KernelDataplane;
use crate::service::Context;
use crate::services::active_alerts::ActiveAlerts;
use crate::supervise::blocking;

/// The kernel copies the descriptor of each packet for a tap. One second in ten costs forwarding about one percent.
const OBSERVATION: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(9);
/// The first is short: there is no verdict before it.
const FIRST_OBSERVATION: Duration = Duration::from_millis(250);
/// Time for which a packet that left past the guard counts as a leak of now.
const LEAK_PERIOD: Duration = Duration::from_secs(300);
const LEAK: AlertKind = AlertKind::LeakDetected;

/// Forwarded packets that left past the egress guard.
#[derive(Clone, Debug, Default)]
pub struct Escapes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By interface, in the observed time since the start of the daemon.
    counters: BTreeMap<String, Counters>,
    /// Packets of the last [`LEAK_PERIOD`].
    recent: VecDeque<(Instant, String, u64)>,
    /// The tap has observed under a plan in force.
    is_observed: bool,
    /// Reason for which packets are not counted.
    failure: Option<String>,
}

/// Reading of the tap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EscapeCounts {
    pub counters: BTreeMap<String, Counters>,
    /// Packets of the last minutes.
    pub recent: u64,
    /// The tap has observed under a plan in force. Before that, no packets does not mean no leak.
    pub is_observed: bool,
    /// Reason for which packets are not counted; human-readable.
    pub failure: Option<String>,
}

impl Escapes {
    pub fn read(&self) -> EscapeCounts {
        let state = self.lock();
        let recent = state.recent.iter().map(|(.., packets)| packets).sum();
        EscapeCounts {
            counters: state.counters.clone(),
            recent,
            is_observed: state.is_observed,
            failure: state.failure.clone(),
        }
    }

    /// Takes a reading of the counters. Returns the new packets by interface.
    fn note(&self, now: Instant, counters: BTreeMap<String, Counters>) -> BTreeMap<String, u64> {
        let mut state = self.lock();
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

    fn set_observed(&self) {
        let mut state = self.lock();
        state.is_observed = true;
        state.failure = None;
    }

    fn fail(&self, failure: String) {
        self.lock().failure = Some(failure);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until it is aborted.
pub async fn run(Context { worlds, wake, dataplane, active_alerts, .. }: Context, escapes: Escapes) {
    let (compiled, facts) = (wake.compiled(), wake.facts());
    while worlds.now().status.run == 0 {
        tokio::time::sleep(FIRST_OBSERVATION).await;
    }
    loop {
        let guarded = guarded(&compiled.borrow().plan, &facts.borrow());
        let duration = if escapes.read().is_observed { OBSERVATION } else { FIRST_OBSERVATION };
        match observe(&dataplane, guarded, duration).await {
            Ok(counters) => {
                escapes.set_observed();
                report(&active_alerts, &escapes, counters);
            }
            Err(error) => escapes.fail(error.to_string()),
        }
        // While packets leave past the guard, none goes uncounted.
        if escapes.read().recent == 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns the interfaces with a guard, by index.
fn guarded(plan: &Plan, facts: &Facts) -> BTreeMap<u32, String> {
    let guarded = plan.attach.iter().filter(|(_, kind)| **kind == Attachment::Guard);
    guarded.filter_map(|(name, _)| Some((facts.links.get(name)?.index, name.clone()))).collect()
}

/// Taps the interfaces for some time, and reads the counters.
async fn observe(
    dataplane: &KernelDataplane,
    guarded: BTreeMap<u32, String>,
    duration: Duration,
) -> Result<BTreeMap<String, Counters>, bpf::Error> {
    let (programs, indexes) = (dataplane.clone(), guarded.keys().copied().collect());
    let taps = blocking(move || tap(&programs, indexes)).await?;
    // No thread waits: the daemon would not end before it.
    tokio::time::sleep(duration).await;
    drop(taps);
    let programs = dataplane.clone();
    let counters = blocking(move || programs.with(|programs| programs.escaped())).await?;
    Ok(named(&guarded, counters))
}

fn tap(dataplane: &KernelDataplane, interfaces: Vec<u32>) -> Result<Vec<GuardTap>, bpf::Error> {
    interfaces.into_iter().map(|index| dataplane.with(|programs| programs.tap_guard(index))).collect()
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
    let state = escapes.lock();
    active_alerts.keep(LEAK, |interface| state.recent.iter().any(|(_, name, _)| name == interface));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    fn counted(packets: u64) -> BTreeMap<String, Counters> {
        BTreeMap::from([("eth0".to_owned(), Counters { packets, bytes: 100 * packets })])
    }

    #[tokio::test(start_paused = true)]
    async fn an_escape_is_an_alert_for_some_minutes() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        let escapes = Escapes::default();
        report(&active_alerts, &escapes, BTreeMap::new());
        assert_eq!(active_alerts.subscribe().0, []);
        report(&active_alerts, &escapes, counted(2));
        report(&active_alerts, &escapes, counted(5));
        let (active, _) = active_alerts.subscribe();
        assert_eq!((active.len(), active[0].subject.as_str()), (1, "eth0"));
        assert_eq!(escapes.read().recent, 5);
        tokio::time::advance(LEAK_PERIOD + OBSERVATION).await;
        report(&active_alerts, &escapes, counted(5));
        assert_eq!(active_alerts.subscribe().0, []);
        let later = escapes.read();
        assert_eq!((later.recent, later.counters["eth0"].packets), (0, 5));
    }
}
