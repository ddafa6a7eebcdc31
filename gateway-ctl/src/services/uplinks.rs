//! Uplinks: probes each of them by itself, selects the active one, and tells the compiler.
//!
//! The decisions are those of pure state machines; this service gives them packets and time.

mod alerts;
mod decisions;
mod line;
mod metrics;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::facts::{Facts, UplinkFacts};
use gateway_core::indexes::LegId;
use gateway_core::network::Network;
use gateway_core::state_machines::wan_manager::{Candidate, WanManager};
use gateway_model::settings::Bootstrap;
use gateway_model::settings::bootstrap::FailoverMode;
use gateway_model::settings::uplink::Wan;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use crate::reconcile::Reason;
use crate::service::{Context, Service};
use crate::world::World;
use crate::world::reports::uplinks::{MAX_DECISIONS, PinnedUplink, UplinkDecision, UplinkStates};

use decisions::describe;
use line::{Line, RoundOutcomes};

/// Longest time without a look at configuration and links.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Returns the service that probes the uplinks.
pub(crate) fn service(context: &Context) -> Service {
    let (worlds, measured) = (context.worlds.clone(), context.worlds.clone());
    Service::new("uplinks", context, run)
        .contributes(move |facts| worlds.last().reports.uplinks.enrich(facts))
        .measures(move |registry| metrics::register(registry, &measured.last().reports.uplinks))
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    let (mut facts, mut status) = (context.wake.facts(), context.wake.status());
    let mut revisions = context.store.watch();
    let mut manager = Manager { sender, ..Manager::new() };
    loop {
        let world = context.worlds.last();
        let now = manager.evaluate(&world, &facts.borrow_and_update(), &context);
        let report = Arc::new(manager.report.clone());
        alerts::report(&context.active_alerts, &report);
        let before = world.reports.uplinks.clone();
        let acts = before.facts != report.facts;
        context.worlds.report(|reports| reports.uplinks = report);
        if acts {
            context.wake.wake(Reason::Facts);
        }
        let pause = manager.pause(now.boot);
        tokio::select! {
            outcome = outcomes.recv() => {
                if let Some(outcome) = outcome {
                    manager.take(outcome, &context);
                }
            }
            _ = facts.changed() => {}
            _ = status.changed() => manager.note_kernel(&facts.borrow(), context.store.clock().now()),
            _ = revisions.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

#[derive(Clone, Copy)]
struct Now {
    boot: Duration,
    wall: Timestamp,
}

struct Manager {
    /// By interface.
    lines: BTreeMap<String, Line>,
    selection: WanManager,
    sender: mpsc::UnboundedSender<RoundOutcomes>,
    report: UplinkStates,
    /// The manager applies its decisions.
    applies: bool,
}

impl Manager {
    fn new() -> Manager {
        Manager {
            lines: BTreeMap::new(),
            selection: WanManager::default(),
            sender: mpsc::unbounded_channel().0,
            report: UplinkStates::default(),
            applies: false,
        }
    }

    /// Follows the configuration, sends the probes that are due, and selects the active uplink.
    fn evaluate(&mut self, world: &World, facts: &Facts, context: &Context) -> Now {
        let clock = context.store.clock();
        let now = Now { boot: clock.boot(), wall: clock.now() };
        self.follow(&world.config, &world.network, now.boot);
        let active = self.selection.active();
        // Before the first observation all links seem to be down.
        let observed = !facts.links.is_empty();
        for line in self.lines.values_mut().filter(|_| observed) {
            line.send(facts, active == Some(line.number), now.boot, &self.sender);
        }
        let candidates: Vec<Candidate> = self.lines.values().map(candidate).collect();
        if let Some(decision) = self.selection.evaluate(&candidates, now.boot) {
            let made = describe(&decision, &self.lines, facts, self.applies, now.wall);
            let UplinkDecision { from, to, reason, applied, .. } = &made;
            tracing::info!(from, to, reason, applied, "decided on the active uplink");
            self.report.decisions.push_front(made);
            self.report.decisions.truncate(MAX_DECISIONS);
        }
        self.report.facts = self.facts(&candidates, now.boot);
        self.describe_uplinks(now);
        now
    }

    /// Takes over the configured uplinks. One whose settings have changed begins again.
    fn follow(&mut self, config: &Bootstrap, network: &Network, now: Duration) {
        let selected = config.selected_uplinks();
        let wans: Vec<&Wan> = selected.iter().filter(|wan| wan.enabled).collect();
        let number = |wan: &Wan| {
            let uplink = network.uplinks.iter().find(|uplink| uplink.interface == wan.interface.as_str());
            uplink.map(|uplink| uplink.number)
        };
        let configured: BTreeMap<&str, (&Wan, LegId)> =
            wans.iter().filter_map(|wan| Some((wan.interface.as_str(), (*wan, number(wan)?)))).collect();
        self.lines.retain(|interface, line| {
            configured
                .get(interface.as_str())
                .is_some_and(|(wan, number)| line.number == *number && line.wan.probe == wan.probe)
        });
        for (interface, (wan, number)) in configured {
            let line =
                self.lines.entry(interface.to_owned()).or_insert_with(|| Line::new(wan.clone(), number, now));
            line.wan.clone_from(wan);
        }
        // Beside a disabled uplink, the only enabled one is a selection, too: the main table may lead to the other.
        let selects = self.lines.len() > 1 || !self.lines.is_empty() && !network.disabled_uplinks.is_empty();
        self.applies = config.network.wan_failover_mode == FailoverMode::Auto && selects;
    }

    /// Returns the selection for the compiler.
    fn facts(&self, candidates: &[Candidate], now: Duration) -> UplinkFacts {
        if !self.applies {
            return UplinkFacts::default();
        }
        let is_any_usable = candidates.iter().any(|one| one.state.is_usable());
        let failed = self.lines.values().filter(|line| is_any_usable && !line.health.state().is_usable());
        UplinkFacts {
            active: self.selection.active(),
            balanced: self.selection.balanced(candidates, now).collect(),
            failed: failed.map(|line| (line.number, format!("it is {}", line.health.state()))).collect(),
        }
    }

    fn describe_uplinks(&mut self, now: Now) {
        let wall = |boot: Duration| {
            let ago = SignedDuration::try_from(now.boot.saturating_sub(boot)).unwrap_or_default();
            let ahead = SignedDuration::try_from(boot.saturating_sub(now.boot)).unwrap_or_default();
            now.wall - ago + ahead
        };
        let interface = |number: LegId| {
            self.lines.values().find(|line| line.number == number).map(|line| line.wan.interface.to_string())
        };
        let report = |line: &Line| (line.wan.interface.to_string(), line.report(wall(line.health.since())));
        self.report.uplinks = self.lines.values().map(report).collect();
        self.report.active = self.selection.active().and_then(interface);
        let first = self.lines.values().min_by_key(|line| (line.wan.priority, line.number));
        self.report.is_on_standby =
            self.selection.active().is_some() && first.map(|line| line.number) != self.selection.active();
        let pinned = |(number, pin): (LegId, gateway_core::state_machines::wan_manager::FlapPin)| {
            let line = self.lines.values().find(|line| line.number == number)?;
            let uplink = line.name().to_owned();
            Some(PinnedUplink { uplink, count: pin.count, pinned_until: wall(pin.until) })
        };
        self.report.pins = self.selection.pins(now.boot).filter_map(pinned).collect();
        let next = self.lines.values().filter_map(|line| line.health.next()).min();
        self.report.next_eval = next.map(wall);
    }

    fn take(&mut self, outcomes: RoundOutcomes, context: &Context) {
        let clock = context.store.clock();
        let active = self.selection.active();
        if let Some(line) = self.lines.get_mut(&outcomes.interface) {
            line.take(outcomes, active == Some(line.number), clock.boot(), clock.now());
        }
    }

    /// Notes that the kernel has the selection, as a run of the reconcile loop with these facts shows.
    fn note_kernel(&mut self, facts: &Facts, now: Timestamp) {
        if facts.uplinks.active != self.report.facts.active {
            return;
        }
        if let Some(newest) = self.report.decisions.front_mut().filter(|one| one.applied) {
            newest.kernel_agrees_at.get_or_insert(now);
        }
    }

    /// Returns the time until the next probe is due.
    fn pause(&self, now: Duration) -> Duration {
        let next = self.lines.values().filter_map(|line| line.health.next()).min();
        next.map_or(MAX_PAUSE, |next| next.saturating_sub(now)).min(MAX_PAUSE)
    }
}

fn candidate(line: &Line) -> Candidate {
    Candidate {
        number: line.number,
        priority: line.wan.priority,
        state: line.health.state(),
        since: line.health.since(),
    }
}
