//! One uplink under watch: its probes and their outcomes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gateway_core::facts::Facts;
use gateway_core::indexes::LegId;
use gateway_core::state_machines::uplink_health::{Outcome, Round, UplinkHealth};
use gateway_model::settings::uplink::{Probe, Wan};
use gateway_outbound::SocketBinding;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::target::Target;
use crate::world::reports::uplinks::{TargetReport, UplinkReport};

/// A metered uplink that is not active is probed so many times less often.
const METERED: u32 = 10;

/// Outcomes of a round, in the order of the targets.
#[derive(Debug)]
pub(super) struct RoundOutcomes {
    pub interface: String,
    round: Round,
    outcomes: Vec<Outcome>,
}

/// Uplink under watch.
#[derive(Debug)]
pub(super) struct Line {
    pub wan: Wan,
    /// Number of its leg.
    pub number: LegId,
    pub health: UplinkHealth,
    targets: Arc<Vec<Target>>,
    outcomes: Vec<Outcome>,
    checked_at: Option<Timestamp>,
}

impl Line {
    pub(super) fn new(wan: Wan, number: LegId, now: Duration) -> Line {
        let parse = |text: &String| Target::parse(wan.probe.method, text);
        let targets = Arc::new(wan.probe.targets.iter().filter_map(parse).collect());
        Line { wan, number, health: UplinkHealth::new(now), targets, outcomes: Vec::new(), checked_at: None }
    }

    pub(super) fn name(&self) -> &str {
        self.wan.display_name()
    }

    /// Sends a round of probes if it is time.
    pub(super) fn send(
        &mut self,
        facts: &Facts,
        is_active: bool,
        now: Duration,
        sender: &mpsc::UnboundedSender<RoundOutcomes>,
    ) {
        let probe = self.probe(is_active);
        let Some(round) = self.health.handle_time(self.is_up(facts), &probe, now) else { return };
        let (interface, number) = (self.wan.interface.to_string(), self.number);
        let (targets, sender) = (self.targets.clone(), sender.clone());
        let limit = Duration::from_secs(probe.timeout_sec.into());
        tokio::spawn(async move {
            let binding = SocketBinding {
                interface: interface.clone(),
                source: None,
                mark: LegId::host_mark(Some(number)),
            };
            let outcomes = join_all(targets.iter().map(|target| target.probe(&binding, limit))).await;
            // Without a receiver, the service has ended.
            let _ = sender.send(RoundOutcomes { interface, round, outcomes });
        });
    }

    /// Takes the outcomes of a round.
    pub(super) fn take(&mut self, outcomes: RoundOutcomes, is_active: bool, now: Duration, wall: Timestamp) {
        let probe = self.probe(is_active);
        self.health.handle_round(outcomes.round, &outcomes.outcomes, &probe, now);
        self.outcomes = outcomes.outcomes;
        self.checked_at = Some(wall);
    }

    /// Reports whether probes can leave: the link is up, and has a default route.
    pub(super) fn is_up(&self, facts: &Facts) -> bool {
        let interface = self.wan.interface.as_str();
        let is_up = facts.links.get(interface).is_some_and(|link| link.up);
        let has_route = self.wan.gateway_address().is_some()
            || facts.default_routes.iter().any(|route| route.interface == interface);
        is_up && has_route
    }

    /// Returns a sentence about the last round.
    pub(super) fn evidence(&self, facts: &Facts) -> String {
        let name = self.name();
        if !self.is_up(facts) {
            return format!("the link of {name} is down, or has no default route");
        }
        let answered = self.outcomes.iter().filter(|one| matches!(one, Outcome::Answered(_))).count();
        let quality = self.health.quality();
        let latency = quality.latency.map_or(0, |latency| latency.as_millis());
        format!(
            "{answered} of {} targets of {name} answered the last probes, {:.0} % of probes are lost, answers take {latency} ms",
            self.outcomes.len(),
            quality.loss_pct,
        )
    }

    pub(super) fn report(&self, since: Timestamp) -> UplinkReport {
        let quality = self.health.quality();
        let targets = self.targets.iter().zip(&self.outcomes).map(|(target, outcome)| TargetReport {
            address: target.address().to_string(),
            ok: matches!(outcome, Outcome::Answered(_)),
            rtt: match outcome {
                Outcome::Answered(time) => Some(millis(*time)),
                Outcome::Lost | Outcome::Captive => None,
            },
        });
        UplinkReport {
            name: self.name().to_owned(),
            state: self.health.state(),
            since: Some(since),
            loss_pct: self.checked_at.map(|_| quality.loss_pct),
            latency_ms: quality.latency.map(millis),
            jitter_ms: quality.jitter.map(millis),
            targets: targets.collect(),
            checked_at: self.checked_at,
        }
    }

    fn probe(&self, is_active: bool) -> Probe {
        let mut probe = self.wan.probe.clone();
        if self.wan.metered && !is_active {
            probe.interval_sec = probe.interval_sec.saturating_mul(METERED);
        }
        probe
    }
}

/// A round trip through a process is not accurate beyond microseconds.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
