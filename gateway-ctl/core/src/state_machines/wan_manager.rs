//! Selection of the active uplink: failover at once, fail-back after a delay, and pins for uplinks that flap.
//!
//! Decision 0107 says why.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gateway_model::settings::uplink::UplinkState;

use crate::indexes::LegId;

/// Time between two changes of the active uplink, unless it stops working.
pub const HOLD_DOWN: Duration = Duration::from_secs(60);
/// Time for which a better uplink must work before traffic goes back to it.
pub const FAILBACK_DELAY: Duration = Duration::from_secs(120);
/// An uplink that stops working so often within this time is pinned to standby.
const FLAPS: usize = 3;
const FLAP_WINDOW: Duration = Duration::from_secs(600);
/// Time of the first pin. Each further one takes twice as long as the one before.
const FIRST_PIN: Duration = Duration::from_secs(900);
const LONGEST_PIN: Duration = Duration::from_secs(4 * 3600);

/// Time for which the first decision waits for the first outcome of an uplink that comes before.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// An uplink that can be active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Number of its leg.
    pub number: LegId,
    /// Lower comes first.
    pub priority: u32,
    pub state: UplinkState,
    /// Time since which the state is the same.
    pub since: Duration,
}

/// Change of the active uplink, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub from: Option<LegId>,
    pub to: Option<LegId>,
    pub reason: Reason,
    /// The change was made. Otherwise the reason holds it back.
    pub made: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The first uplink that works.
    First,
    /// The active one does not work.
    Failed(UplinkState),
    /// The active one has more loss or latency than its limits.
    Degraded,
    /// One that comes before works again.
    Restored,
    /// A change would come too soon after the last one.
    HoldDown,
    /// The one that comes before does not work for long enough yet.
    FailbackDelay,
    /// No uplink works.
    NoneUsable,
    /// The active one is no uplink any more.
    Removed,
}

/// Pin of an uplink that flaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlapPin {
    /// Pins so far, of which each takes longer.
    pub count: u32,
    pub until: Duration,
}

/// Pure state of the manager. Times are those since boot.
#[derive(Clone, Debug, Default)]
pub struct WanManager {
    active: Option<LegId>,
    switched_at: Option<Duration>,
    /// Times at which an uplink stopped working, in the last [`FLAP_WINDOW`].
    failures: BTreeMap<LegId, VecDeque<Duration>>,
    pins: BTreeMap<LegId, FlapPin>,
    usable: BTreeMap<LegId, bool>,
    /// The last decision that held a change back, so that it is reported once.
    held: Option<Decision>,
}

impl WanManager {
    pub const fn active(&self) -> Option<LegId> {
        self.active
    }

    /// Returns the pins in force at a time.
    pub fn pins(&self, now: Duration) -> impl Iterator<Item = (LegId, FlapPin)> {
        self.pins.iter().filter(move |(_, pin)| now < pin.until).map(|(number, pin)| (*number, *pin))
    }

    /// Returns the uplinks that balance: those that work and are not pinned, and the active one.
    pub fn balanced<'a>(
        &'a self,
        candidates: &'a [Candidate],
        now: Duration,
    ) -> impl Iterator<Item = LegId> + 'a {
        let takes_part = move |one: &&Candidate| {
            Some(one.number) == self.active || one.state.is_usable() && !self.is_pinned(one.number, now)
        };
        candidates.iter().filter(takes_part).map(|one| one.number)
    }

    /// Evaluates the uplinks. Returns a decision if there is a new one.
    pub fn evaluate(&mut self, candidates: &[Candidate], now: Duration) -> Option<Decision> {
        self.count_failures(candidates, now);
        let decision = self.decide(candidates, now)?;
        if decision.made {
            self.active = decision.to;
            self.switched_at = Some(now);
            self.held = None;
            return Some(decision);
        }
        let is_new = self.held != Some(decision);
        self.held = Some(decision);
        is_new.then_some(decision)
    }

    fn decide(&self, candidates: &[Candidate], now: Duration) -> Option<Decision> {
        let decide = |to: Option<LegId>, reason| Some(Decision { from: self.active, to, reason, made: true });
        let hold =
            |to: LegId, reason| Some(Decision { from: self.active, to: Some(to), reason, made: false });
        let best = self.best(candidates, now);
        let Some(active) = self.active else {
            let best = best.filter(|best| !is_unknown_before(best, candidates, now))?;
            return decide(Some(best.number), Reason::First);
        };
        let Some(current) = candidates.iter().find(|one| one.number == active) else {
            return decide(best.map(|best| best.number), Reason::Removed);
        };
        if !current.state.is_usable() {
            return match best {
                Some(best) => decide(Some(best.number), Reason::Failed(current.state)),
                // Traffic stays where it was: nothing else would carry it.
                None => {
                    Some(Decision { from: self.active, to: None, reason: Reason::NoneUsable, made: false })
                }
            };
        }
        let best = best.filter(|best| best.number != active)?;
        let is_worse = current.state == UplinkState::Degraded && best.state == UplinkState::Online;
        let is_before = best.priority < current.priority && best.state == UplinkState::Online;
        if !is_worse && !is_before {
            return None;
        }
        let rests = self.switched_at.is_none_or(|at| now.saturating_sub(at) >= HOLD_DOWN);
        if !rests {
            return hold(best.number, Reason::HoldDown);
        }
        if is_worse {
            return decide(Some(best.number), Reason::Degraded);
        }
        if now.saturating_sub(best.since) < FAILBACK_DELAY {
            return hold(best.number, Reason::FailbackDelay);
        }
        decide(Some(best.number), Reason::Restored)
    }

    /// Returns the uplink that should be active: of those that work, one that is not pinned, then one without too much loss and
    /// latency, then the first by priority.
    fn best<'a>(&self, candidates: &'a [Candidate], now: Duration) -> Option<&'a Candidate> {
        let usable = candidates.iter().filter(|one| one.state.is_usable());
        usable.min_by_key(|one| {
            let rank = match one.state {
                UplinkState::Online => 0,
                UplinkState::Degraded => 1,
                _ => 2,
            };
            (self.is_pinned(one.number, now), rank, one.priority, one.number)
        })
    }

    fn is_pinned(&self, number: LegId, now: Duration) -> bool {
        self.pins.get(&number).is_some_and(|pin| now < pin.until)
    }

    fn count_failures(&mut self, candidates: &[Candidate], now: Duration) {
        for candidate in candidates {
            let number = candidate.number;
            let is_usable = candidate.state.is_usable();
            let was_usable = self.usable.insert(number, is_usable).unwrap_or(false);
            if !was_usable || is_usable {
                continue;
            }
            let failures = self.failures.entry(number).or_default();
            failures.push_back(now);
            while failures.front().is_some_and(|at| now.saturating_sub(*at) > FLAP_WINDOW) {
                failures.pop_front();
            }
            if failures.len() >= FLAPS {
                failures.clear();
                self.pin(number, now);
            }
        }
        let is_there = |number: &LegId| candidates.iter().any(|one| one.number == *number);
        self.usable.retain(|number, _| is_there(number));
        self.failures.retain(|number, _| is_there(number));
        // An uplink that has been stable for as long as the longest pin begins again with a short one.
        self.pins.retain(|number, pin| is_there(number) && now < pin.until + LONGEST_PIN);
    }

    fn pin(&mut self, number: LegId, now: Duration) {
        let count = self.pins.get(&number).map_or(0, |pin| pin.count) + 1;
        let time = FIRST_PIN.saturating_mul(1 << (count - 1).min(16)).min(LONGEST_PIN);
        self.pins.insert(number, FlapPin { count, until: now + time });
    }
}

/// Reports whether the first outcome of an uplink that comes before this one is not known yet.
fn is_unknown_before(one: &Candidate, candidates: &[Candidate], now: Duration) -> bool {
    candidates.iter().any(|other| {
        other.state == UplinkState::Connecting
            && (other.priority, other.number) < (one.priority, one.number)
            && now.saturating_sub(other.since) < FIRST_WAIT
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use UplinkState::{Connecting, Degraded, Offline, Online};

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Two uplinks, the first of which comes before. The states begin at these times.
    fn two(first: (UplinkState, u64), second: (UplinkState, u64)) -> [Candidate; 2] {
        let one = |number, priority, (state, since)| Candidate {
            number: LegId::new(number).expect("a leg"),
            priority,
            state,
            since: at(since),
        };
        [one(1, 10, first), one(2, 20, second)]
    }

    fn made(manager: &mut WanManager, candidates: &[Candidate], now: u64) -> Option<(Option<LegId>, Reason)> {
        manager.evaluate(candidates, at(now)).filter(|one| one.made).map(|one| (one.to, one.reason))
    }

    #[test]
    fn failure_is_left_at_once_and_the_way_back_takes_time() {
        let mut manager = WanManager::default();
        let up = two((Online, 0), (Online, 0));
        assert_eq!(made(&mut manager, &up, 1), Some((LegId::new(1), Reason::First)));
        let down = two((Offline, 2), (Online, 0));
        assert_eq!(made(&mut manager, &down, 2), Some((LegId::new(2), Reason::Failed(Offline))));
        let back = two((Online, 10), (Online, 0));
        let held = manager.evaluate(&back, at(10)).expect("a decision");
        assert_eq!((held.made, held.reason), (false, Reason::HoldDown));
        assert_eq!(manager.evaluate(&back, at(11)), None, "reported once");
        let held = manager.evaluate(&back, at(63)).expect("a decision");
        assert_eq!((held.made, held.reason), (false, Reason::FailbackDelay));
        assert_eq!(made(&mut manager, &back, 129), None);
        assert_eq!(made(&mut manager, &back, 130), Some((LegId::new(1), Reason::Restored)));
    }

    #[test]
    fn first_decision_waits_for_the_first_outcome_of_the_one_before() {
        let mut manager = WanManager::default();
        let probing = two((Connecting, 0), (Online, 1));
        assert_eq!(made(&mut manager, &probing, 1), None);
        assert_eq!(
            made(&mut manager.clone(), &two((Online, 2), (Online, 1)), 2),
            Some((LegId::new(1), Reason::First))
        );
        assert_eq!(
            made(&mut manager.clone(), &two((Offline, 2), (Online, 1)), 2),
            Some((LegId::new(2), Reason::First))
        );
        assert_eq!(
            made(&mut manager.clone(), &two((Online, 1), (Connecting, 0)), 2),
            Some((LegId::new(1), Reason::First))
        );
        assert_eq!(
            made(&mut manager, &probing, 10),
            Some((LegId::new(2), Reason::First)),
            "it never answered"
        );
    }

    #[test]
    fn without_a_working_uplink_traffic_stays() {
        let mut manager = WanManager::default();
        assert_eq!(made(&mut manager, &two((Offline, 0), (Offline, 0)), 1), None);
        assert_eq!(manager.active(), None);
        made(&mut manager, &two((Online, 2), (Offline, 0)), 2);
        let decision = manager.evaluate(&two((Offline, 3), (Offline, 0)), at(3)).expect("a decision");
        assert_eq!((decision.made, decision.reason), (false, Reason::NoneUsable));
        assert_eq!(manager.active(), LegId::new(1));
    }

    #[test]
    fn degraded_uplink_is_left_for_one_that_is_not() {
        let mut manager = WanManager::default();
        made(&mut manager, &two((Online, 0), (Online, 0)), 1);
        let poor = two((Degraded, 100), (Online, 0));
        assert_eq!(made(&mut manager, &poor, 100), Some((LegId::new(2), Reason::Degraded)));
        assert_eq!(made(&mut manager, &two((Degraded, 100), (Degraded, 300)), 300), None, "no better");
    }

    #[test]
    fn uplink_that_flaps_is_pinned_for_longer_each_time() {
        let mut manager = WanManager::default();
        let mut now = 0;
        for expected in [900, 1800, 3600] {
            for _ in 0..3 {
                manager.evaluate(&two((Online, now), (Online, 0)), at(now));
                manager.evaluate(&two((Offline, now + 1), (Online, 0)), at(now + 1));
                now += 2;
            }
            let (number, pin) = manager.pins(at(now)).next().expect("a pin");
            assert_eq!((number.get(), pin.until), (1, at(now - 1 + expected)));
            let up = two((Online, now), (Online, 0));
            assert_eq!(made(&mut manager, &up, now + expected - 10), None, "pinned");
            now += expected;
        }
        assert_eq!(manager.active(), LegId::new(2));
    }

    #[test]
    fn pinned_uplink_is_better_than_none() {
        let mut manager = WanManager::default();
        for now in [0, 2, 4] {
            manager.evaluate(&two((Online, now), (Online, 0)), at(now));
            manager.evaluate(&two((Offline, now + 1), (Online, 0)), at(now + 1));
        }
        let alone = two((Online, 10), (Offline, 10));
        assert_eq!(made(&mut manager, &alone, 10), Some((LegId::new(1), Reason::Failed(Offline))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Any history of states: the active uplink never leaves one that works for one that does not, and the same uplink is
        /// entered by choice at most as often as hold-down and pins allow.
        #[test]
        fn changes_are_for_the_better_and_bounded(
            history in prop::collection::vec((prop::collection::vec(0u8..7, 3), 1u64..90), 1..300),
        ) {
            let states =
                [Online, Degraded, UplinkState::Connecting, UplinkState::Disconnecting, Offline, UplinkState::Disabled, UplinkState::Captive];
            let mut manager = WanManager::default();
            let (mut now, mut since) = (0, [(Offline, 0u64); 3]);
            let mut by_choice: Vec<u64> = Vec::new();
            for (step, pause) in history {
                now += pause;
                for (kept, state) in since.iter_mut().zip(&step) {
                    let state = states[usize::from(*state)];
                    if kept.0 != state {
                        *kept = (state, now);
                    }
                }
                let candidates: Vec<Candidate> = since
                    .iter()
                    .zip([(1, 10), (2, 20), (3, 20)])
                    .map(|((state, since), (number, priority))| Candidate {
                        number: LegId::new(number).expect("a leg"),
                        priority,
                        state: *state,
                        since: at(*since),
                    })
                    .collect();
                let before = manager.active();
                let state_of = |number: Option<LegId>| {
                    candidates.iter().find(|one| Some(one.number) == number).map(|one| one.state)
                };
                let Some(decision) = manager.evaluate(&candidates, at(now)) else { continue };
                if !decision.made {
                    continue;
                }
                prop_assert!(state_of(decision.to).is_some_and(UplinkState::is_usable));
                if state_of(before).is_some_and(UplinkState::is_usable) {
                    by_choice.push(now);
                }
                // Without a pin there is no third failure within the window.
                if let (Some(before), Reason::Failed(_)) = (before, decision.reason) {
                    let pinned = manager.pins(at(now)).any(|(number, _)| number == before);
                    let failures = manager.failures.get(&before).map_or(0, VecDeque::len);
                    prop_assert!(pinned || failures < FLAPS);
                }
            }
            for pair in by_choice.windows(2) {
                prop_assert!(at(pair[1] - pair[0]) >= HOLD_DOWN);
            }
        }
    }
}
