//! Health of a tunnel by its probes: the time of the next probe, and whether the tunnel counts as healthy.
//!
//! Failures and successes count in a row, so that one lost packet does not move anybody's traffic. Probes are spread
//! over time at random: a fixed interval would reveal the gateway to observers of the tunnel.

use std::collections::VecDeque;
use std::time::Duration;

use gateway_model::kinds::tunnel_health::{Health, HealthCheck};

/// Loss and latency are those of so many probes.
const WINDOW_PROBES: usize = 20;
/// Time until the next probe after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The probes of one tunnel.
#[derive(Clone, Debug, Default)]
pub struct TunnelHealth {
    health: Health,
    /// Outcomes in a row that speak against `health`.
    against: u32,
    /// Time of the next probe. `None`: at once.
    next: Option<Duration>,
    pending: Option<ProbeId>,
    last: ProbeId,
    /// Round-trip times of the last probes, none for those without an answer.
    window: VecDeque<Option<Duration>>,
}

/// Tells a probe from those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeId(u64);

impl TunnelHealth {
    /// Handles a tick. `is_up`: the tunnel itself is up, so probes can pass. Returns the probe of a probe to send
    /// now.
    pub fn handle_time(&mut self, is_up: bool, now: Duration) -> Option<ProbeId> {
        if !is_up {
            // Results of the previous path say nothing about the next one. Pending replies are ignored.
            *self = TunnelHealth { last: self.last, ..TunnelHealth::default() };
            return None;
        }
        if self.pending.is_some() || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.last.0 += 1;
        self.pending = Some(self.last);
        self.pending
    }

    /// A probe was answered after a time, or not at all. `random` is from 0 to 1.
    pub fn handle_outcome(
        &mut self,
        probe: ProbeId,
        outcome: Option<Duration>,
        check: &HealthCheck,
        now: Duration,
        random: f64,
    ) {
        if self.pending != Some(probe) {
            return;
        }
        self.pending = None;
        self.window.push_back(outcome);
        if self.window.len() > WINDOW_PROBES {
            self.window.pop_front();
        }
        let (outcome_health, needed) = match outcome {
            // The first reply shows that the tunnel works. A tunnel that failed needs several.
            Some(_) if self.health == Health::Unknown => (Health::Healthy, 1),
            Some(_) => (Health::Healthy, check.success),
            None => (Health::Unhealthy, check.fail),
        };
        self.against = if self.health == outcome_health { 0 } else { self.against + 1 };
        if self.against >= needed {
            (self.health, self.against) = (outcome_health, 0);
        }
        let interval = Duration::from_secs(check.interval_sec.into());
        let doubtful = outcome.is_none() && self.health != Health::Unhealthy;
        let pause = if doubtful { interval.min(RETRY_INTERVAL) } else { interval };
        self.next = Some(now + pause.mul_f64(0.75 + random.clamp(0.0, 1.0) / 2.0));
    }

    /// Makes the next probe due at once: the remote end does not answer data.
    pub fn probe_now(&mut self, now: Duration) {
        if self.next.is_some_and(|next| next > now + RETRY_INTERVAL) {
            self.next = Some(now);
        }
    }

    pub fn health(&self) -> Health {
        self.health
    }

    /// Mean round-trip time of the last probes that were answered.
    pub fn latency(&self) -> Option<Duration> {
        let answered: Vec<Duration> = self.window.iter().flatten().copied().collect();
        let count = u32::try_from(answered.len()).ok().filter(|count| *count > 0)?;
        Some(answered.iter().sum::<Duration>() / count)
    }

    /// Share of the last probes without an answer.
    pub fn loss_pct(&self) -> Option<f64> {
        let lost = self.window.iter().filter(|outcome| outcome.is_none()).count();
        (!self.window.is_empty()).then(|| 100.0 * lost as f64 / self.window.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(20));

    fn check() -> HealthCheck {
        HealthCheck { interval_sec: 30, fail: 3, success: 2, ..HealthCheck::default() }
    }

    /// Sends a probe as soon as one is due; when that was.
    fn probe(machine: &mut TunnelHealth, now: &mut Duration, outcome: Option<Duration>) -> Duration {
        let before = *now;
        let probe = loop {
            if let Some(probe) = machine.handle_time(true, *now) {
                break probe;
            }
            *now += Duration::from_millis(50);
        };
        machine.handle_outcome(probe, outcome, &check(), *now, 0.5);
        *now - before
    }

    #[test]
    fn failures_and_successes_count_in_a_row() {
        let (mut machine, mut now) = (TunnelHealth::default(), Duration::ZERO);
        let mut after = |outcome| {
            let waited = probe(&mut machine, &mut now, outcome).as_secs();
            (waited, machine.health())
        };
        use Health::{Healthy, Unhealthy, Unknown};
        assert_eq!(after(RTT), (0, Healthy), "the first answer is enough");
        assert_eq!(after(None), (30, Healthy));
        assert_eq!(after(None), (1, Healthy), "asked again at once");
        assert_eq!(after(RTT), (1, Healthy));
        assert_eq!(after(None), (30, Healthy), "the row begins anew");
        assert_eq!(after(None), (1, Healthy));
        assert_eq!(after(None), (1, Unhealthy));
        assert_eq!(after(RTT), (30, Unhealthy));
        assert_eq!(after(None), (30, Unhealthy));
        assert_eq!(after(RTT), (30, Unhealthy));
        assert_eq!(after(RTT), (30, Healthy));

        let (mut machine, mut now) = (TunnelHealth::default(), Duration::ZERO);
        let seen: Vec<Health> = [None, None, RTT]
            .map(|outcome| {
                probe(&mut machine, &mut now, outcome);
                machine.health()
            })
            .into();
        assert_eq!(seen, [Unknown, Unknown, Healthy]);
    }

    #[test]
    fn a_doubt_makes_the_next_probe_due_at_once() {
        let (mut machine, mut now) = (TunnelHealth::default(), Duration::ZERO);
        probe(&mut machine, &mut now, RTT);
        assert_eq!(machine.handle_time(true, now), None);
        machine.probe_now(now);
        assert!(machine.handle_time(true, now).is_some());
    }

    #[test]
    fn a_tunnel_that_went_is_unknown_when_it_comes_back() {
        let (mut machine, mut now) = (TunnelHealth::default(), Duration::ZERO);
        probe(&mut machine, &mut now, RTT);
        now += Duration::from_secs(60);
        let probe = machine.handle_time(true, now).expect("due");
        assert_eq!(machine.handle_time(true, now), None, "one at a time");
        assert_eq!(machine.handle_time(false, now), None);
        assert_eq!(machine.health(), Health::Unknown);
        let next = machine.handle_time(true, now).expect("at once");
        machine.handle_outcome(probe, RTT, &check(), now, 0.5);
        assert_eq!(machine.health(), Health::Unknown, "that was an answer by the way before");
        machine.handle_outcome(next, RTT, &check(), now, 0.5);
        assert_eq!(machine.health(), Health::Healthy);
    }

    #[test]
    fn loss_and_latency_are_those_of_the_last_probes() {
        let (mut machine, mut now) = (TunnelHealth::default(), Duration::ZERO);
        assert_eq!((machine.loss_pct(), machine.latency()), (None, None));
        for outcome in [None, RTT, Some(Duration::from_millis(40)), None] {
            probe(&mut machine, &mut now, outcome);
        }
        assert_eq!((machine.loss_pct(), machine.latency()), (Some(50.0), Some(Duration::from_millis(30))));
        for _ in 0..WINDOW_PROBES {
            probe(&mut machine, &mut now, RTT);
        }
        assert_eq!((machine.loss_pct(), machine.latency()), (Some(0.0), RTT));
    }

    proptest! {
        /// In all cases: one probe at a time, at least 0.75 s after another, at most 1.25 intervals later, and a change
        /// of health only after the configured number of equal outcomes in a row.
        #[test]
        fn probes_keep_their_pace_and_health_its_inertia(
            fail in 1u32..5, success in 1u32..5, interval in 1u32..60,
            outcomes in prop::collection::vec((any::<bool>(), 0.0f64..=1.0), 1..60),
        ) {
            let check = HealthCheck { interval_sec: interval, fail, success, ..HealthCheck::default() };
            let mut machine = TunnelHealth::default();
            let mut now = Duration::ZERO;
            let mut row = (true, 0);
            for (answered, random) in outcomes {
                let before = now;
                let probe = loop {
                    match machine.handle_time(true, now) {
                        Some(probe) => break probe,
                        None => now += Duration::from_millis(10),
                    }
                };
                let pause = (now - before).as_secs_f64();
                prop_assert!(before.is_zero() || (0.74..=1.26 * f64::from(interval)).contains(&pause), "{pause}");
                prop_assert_eq!(machine.handle_time(true, now + Duration::from_secs(999)), None);
                row = if row.0 == answered { (answered, row.1 + 1) } else { (answered, 1) };
                let was = machine.health();
                machine.handle_outcome(probe, answered.then_some(Duration::ZERO), &check, now, random);
                now += Duration::from_millis(1);
                let expected = match (was, answered) {
                    (Health::Unknown, true) => Health::Healthy,
                    (Health::Unhealthy, true) if row.1 >= success => Health::Healthy,
                    (_, false) if row.1 >= fail => Health::Unhealthy,
                    (was, _) => was,
                };
                prop_assert_eq!(machine.health(), expected);
            }
        }
    }
}
