//! Health of an uplink by its probes: the time of the next round of probes, and the state of the uplink.
//!
//! A round asks all targets at once. It fails only if fewer targets answer than `reliability` demands, so that one dead target
//! moves no traffic. Rounds count in a row, and quality has a limit to get worse and another to get better.

use std::collections::VecDeque;
use std::time::Duration;

use gateway_model::settings::uplink::{Probe, UplinkState};

/// Loss and latency are those of so many rounds.
const WINDOW_ROUNDS: usize = 20;
/// Rounds before which quality is unknown.
const MIN_ROUNDS: usize = 5;
/// A doubtful uplink is probed so many times as often.
const HASTE: u32 = 4;
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Outcome of a probe of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered after this time.
    Answered(Duration),
    Lost,
    /// Answered by a captive portal in place of the target.
    Captive,
}

/// Number of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round(u64);

/// Measurements of the last rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Of the target that answers best.
    pub loss_pct: f64,
    pub latency: Option<Duration>,
    pub jitter: Option<Duration>,
}

/// The probes of one uplink.
#[derive(Clone, Debug)]
pub struct UplinkHealth {
    state: UplinkState,
    since: Duration,
    /// Rounds in a row that speak against the state.
    against: u32,
    is_poor: bool,
    next: Option<Duration>,
    last: Round,
    /// The newest round whose outcome is known.
    known: Round,
    /// Outcomes of the last rounds by target; a target that is new has fewer.
    windows: Vec<VecDeque<Outcome>>,
}

impl UplinkHealth {
    pub fn new(now: Duration) -> UplinkHealth {
        UplinkHealth {
            state: UplinkState::Connecting,
            since: now,
            against: 0,
            is_poor: false,
            next: None,
            last: Round::default(),
            known: Round::default(),
            windows: Vec::new(),
        }
    }

    pub const fn state(&self) -> UplinkState {
        self.state
    }

    /// Returns the time since which the state is the same.
    pub const fn since(&self) -> Duration {
        self.since
    }

    /// Returns the time of the next round. `None`: at once.
    pub const fn next(&self) -> Option<Duration> {
        self.next
    }

    /// Handles a tick. `is_up`: the link is up and has a route, so probes can leave. Returns a round to send now.
    pub fn handle_time(&mut self, is_up: bool, probe: &Probe, now: Duration) -> Option<Round> {
        if !is_up {
            // Outcomes of the link that is gone say nothing about the next one.
            self.windows.clear();
            self.known = self.last;
            (self.against, self.is_poor, self.next) = (0, false, None);
            self.enter(UplinkState::Offline, now);
            return None;
        }
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.last.0 += 1;
        self.next = Some(now + self.interval(probe));
        Some(self.last)
    }

    /// Handles the outcomes of a round, one for each target in their order.
    pub fn handle_round(&mut self, round: Round, outcomes: &[Outcome], probe: &Probe, now: Duration) {
        // Rounds overlap; one that ends after a later one says nothing new.
        if round <= self.known || outcomes.is_empty() {
            return;
        }
        self.known = round;
        self.windows.resize(outcomes.len(), VecDeque::new());
        for (window, outcome) in self.windows.iter_mut().zip(outcomes) {
            window.push_back(*outcome);
            if window.len() > WINDOW_ROUNDS {
                window.pop_front();
            }
        }
        let answered = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Answered(_))).count();
        let needed = usize::try_from(probe.reliability).unwrap_or(usize::MAX).clamp(1, outcomes.len());
        let is_captive = outcomes.contains(&Outcome::Captive);
        if answered >= needed {
            self.succeed(probe, now);
        } else if is_captive {
            self.against = 0;
            self.enter(UplinkState::Captive, now);
        } else {
            self.fail(probe, now);
        }
    }

    fn succeed(&mut self, probe: &Probe, now: Duration) {
        let was_usable = self.state.is_usable();
        // The first answer shows that an uplink works. One that failed needs several in a row.
        let is_first =
            self.windows.iter().all(|window| window.len() <= 1) && self.state == UplinkState::Connecting;
        if !was_usable && self.against == 0 {
            // Quality is that of the time since it works again.
            self.windows.iter_mut().for_each(|window| drop(window.drain(..window.len() - 1)));
        }
        self.against = if was_usable { 0 } else { self.against + 1 };
        if !was_usable && !is_first && self.against < probe.success {
            self.enter(UplinkState::Connecting, now);
            return;
        }
        self.against = 0;
        self.assess_quality(probe);
        self.enter(if self.is_poor { UplinkState::Degraded } else { UplinkState::Online }, now);
    }

    fn fail(&mut self, probe: &Probe, now: Duration) {
        if !self.state.is_usable() {
            self.against = 0;
            self.enter(UplinkState::Offline, now);
            return;
        }
        self.against += 1;
        if self.against >= probe.fail {
            self.against = 0;
            self.enter(UplinkState::Offline, now);
        } else {
            self.enter(UplinkState::Disconnecting, now);
        }
        if self.interval(probe) < Duration::from_secs(probe.interval_sec.into()) {
            self.next = self.next.map(|next| next.min(now));
        }
    }

    fn assess_quality(&mut self, probe: &Probe) {
        if self.windows.iter().all(|window| window.len() < MIN_ROUNDS) {
            return;
        }
        let Quality { loss_pct, latency, .. } = self.quality();
        let latency = latency.map_or(0, |latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX));
        let (loss_limit, latency_limit) = if self.is_poor {
            (f64::from(probe.loss_ok_pct), u64::from(probe.latency_ok_ms))
        } else {
            (
                f64::from(probe.loss_fail_pct) - f64::EPSILON,
                u64::from(probe.latency_fail_ms).saturating_sub(1),
            )
        };
        self.is_poor = loss_pct > loss_limit || latency > latency_limit;
    }

    /// Returns the quality of the last rounds, by the target that answers best.
    pub fn quality(&self) -> Quality {
        let lost = |window: &&VecDeque<Outcome>| {
            window.iter().filter(|outcome| !matches!(outcome, Outcome::Answered(_))).count()
        };
        let Some(best) = self.windows.iter().filter(|window| !window.is_empty()).min_by_key(lost) else {
            return Quality::default();
        };
        let times: Vec<Duration> = best
            .iter()
            .filter_map(|outcome| match outcome {
                Outcome::Answered(time) => Some(*time),
                Outcome::Lost | Outcome::Captive => None,
            })
            .collect();
        let mean = |times: &[Duration]| {
            let count = u32::try_from(times.len()).ok().filter(|count| *count > 0)?;
            Some(times.iter().sum::<Duration>() / count)
        };
        let steps: Vec<Duration> = times.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
        #[expect(clippy::cast_precision_loss, reason = "at most the length of a window")]
        let loss_pct = 100.0 * lost(&best) as f64 / best.len() as f64;
        Quality { loss_pct, latency: mean(&times), jitter: mean(&steps) }
    }

    /// Returns the interval of rounds: a quarter of the usual one while it is in doubt whether the uplink works.
    fn interval(&self, probe: &Probe) -> Duration {
        let usual = Duration::from_secs(probe.interval_sec.into());
        match self.state {
            UplinkState::Disconnecting => (usual / HASTE).max(MIN_INTERVAL).min(usual),
            _ => usual,
        }
    }

    fn enter(&mut self, state: UplinkState, now: Duration) {
        if self.state != state {
            (self.state, self.since) = (state, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Three failures in a row, and five successes.
    const PROBE: Probe = Probe::DEFAULT;
    const FAST: Outcome = Outcome::Answered(Duration::from_millis(20));

    /// An uplink whose rounds are sent and answered at once.
    struct Line {
        health: UplinkHealth,
        now: Duration,
    }

    impl Line {
        fn new() -> Line {
            Line { health: UplinkHealth::new(Duration::ZERO), now: Duration::ZERO }
        }

        fn round(&mut self, outcomes: &[Outcome]) -> UplinkState {
            self.now = self.health.next().unwrap_or(self.now).max(self.now);
            let round = self.health.handle_time(true, &PROBE, self.now).expect("it is time");
            self.health.handle_round(round, outcomes, &PROBE, self.now);
            self.health.state()
        }
    }

    #[test]
    fn first_answer_shows_that_it_works_and_later_ones_are_counted() {
        use UplinkState::{Connecting, Disconnecting, Offline, Online};
        let mut line = Line::new();
        assert_eq!(line.health.state(), Connecting);
        assert_eq!(line.round(&[FAST]), Online);
        assert_eq!([(); 3].map(|()| line.round(&[Outcome::Lost])), [Disconnecting, Disconnecting, Offline]);
        let back = [(); 5].map(|()| line.round(&[FAST]));
        assert_eq!(back, [Connecting, Connecting, Connecting, Connecting, Online]);
    }

    #[test]
    fn doubt_is_settled_by_faster_rounds() {
        let mut line = Line::new();
        line.round(&[FAST]);
        let begun = line.health.next().expect("a time");
        for _ in 0..3 {
            line.round(&[Outcome::Lost]);
        }
        assert_eq!(line.health.state(), UplinkState::Offline);
        let usual = Duration::from_secs(PROBE.interval_sec.into());
        assert!(line.now - begun <= usual, "{:?}", line.now - begun);
    }

    #[test]
    fn one_dead_target_changes_nothing() {
        let mut line = Line::new();
        for _ in 0..40 {
            assert_eq!(line.round(&[Outcome::Lost, FAST, Outcome::Lost]), UplinkState::Online);
        }
        assert_eq!(line.health.quality().loss_pct, 0.0);
    }

    #[test]
    fn link_that_is_gone_is_offline_at_once() {
        let mut line = Line::new();
        line.round(&[FAST]);
        assert_eq!(line.health.handle_time(false, &PROBE, line.now), None);
        assert_eq!(line.health.state(), UplinkState::Offline);
        let late = Round(1);
        line.health.handle_round(late, &[FAST], &PROBE, line.now);
        assert_eq!(line.health.state(), UplinkState::Offline, "an outcome of the link before");
    }

    #[test]
    fn portal_is_not_offline_and_not_usable() {
        let mut line = Line::new();
        assert_eq!(line.round(&[Outcome::Captive, Outcome::Lost]), UplinkState::Captive);
        assert!(!line.health.state().is_usable());
        assert_eq!(line.round(&[Outcome::Lost]), UplinkState::Offline);
    }

    #[test]
    fn quality_has_a_limit_for_worse_and_one_for_better() {
        let mut line = Line::new();
        let after = |line: &mut Line, outcome: Outcome, rounds: usize| {
            (0..rounds).map(|_| line.round(&[outcome])).last()
        };
        let slow = |milliseconds| Outcome::Answered(Duration::from_millis(milliseconds));
        assert_eq!(after(&mut line, slow(499), 20), Some(UplinkState::Online));
        assert_eq!(after(&mut line, slow(600), 20), Some(UplinkState::Degraded));
        assert_eq!(after(&mut line, slow(300), 20), Some(UplinkState::Degraded), "between the limits");
        assert_eq!(after(&mut line, slow(200), 20), Some(UplinkState::Online));
    }

    proptest! {
        /// Any history: an uplink goes offline only by rounds in a row, and never while each round succeeds.
        #[test]
        fn states_follow_the_rounds(rounds in prop::collection::vec(prop::collection::vec(0u8..3, 1..4), 1..200)) {
            let mut line = Line::new();
            let mut lost = 0;
            for round in rounds {
                let outcomes: Vec<Outcome> = round
                    .iter()
                    .map(|kind| match kind {
                        0 => FAST,
                        1 => Outcome::Lost,
                        _ => Outcome::Captive,
                    })
                    .collect();
                let before = line.health.state();
                let state = line.round(&outcomes);
                let succeeds = outcomes.contains(&FAST);
                lost = if succeeds { 0 } else { lost + 1 };
                prop_assert!(!succeeds || state != UplinkState::Offline);
                let left = before.is_usable() && state == UplinkState::Offline;
                prop_assert!(!left || lost >= PROBE.fail, "{} rounds", lost);
            }
        }
    }
}
