//! Timers of one peer's machines. The driver reports events to the machines and runs their actions when they are due
//! and within the budget. It has no sockets, and no clock other than the times that callers pass.

use std::time::{Duration, Instant};

use maybenot::action::Action;
use maybenot::{Framework, Machine, Timer, TriggerAction, TriggerEvent};
use rand::{Rng, RngCore};

use super::budget::Budget;

/// Most events of one kind per report. Machines need to know that traffic flows, not its amount: the budget does.
const REPORTED_AT_ONCE: u64 = 32;
/// Most rounds per call. A machine may react to the start of its timer with another timer. An endless loop continues
/// in the next call.
const ROUNDS: usize = 4;
/// Random delay of cover that waited for a packet from the peer. It is short enough that this packet is still recent.
const START_SPREAD: Duration = Duration::from_millis(3000);
/// Bounds of the wait for the budget, which traffic may also refill.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Result for a cover packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Number of bytes sent.
    Sent(usize),
    /// The budget is smaller than these bytes, the smallest possible packet.
    TooDear(usize),
    /// There is no session, no recent packet from the peer, or no length to imitate yet.
    NoWay,
}

/// Traffic since the previous report to the driver.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TrafficDelta {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    /// True if an authentic message arrived.
    pub(super) heard: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CoverRejection {
    #[error(transparent)]
    Machine(#[from] maybenot::Error),
    #[error("a machine holds traffic back")]
    Blocks,
}

pub(super) struct Driver<R: RngCore> {
    framework: Framework<Vec<Machine>, R>,
    rng: R,
    timers: Vec<Timers>,
    budget: Budget,
    throttled: u64,
}

/// Timers of one machine.
#[derive(Debug, Clone, Copy, Default)]
struct Timers {
    /// Time at which a cover packet is due.
    padding: Option<Instant>,
    /// True if the packet is due and waits for a packet from the peer.
    unheard: bool,
    /// True if the packet waits for the budget and was counted.
    late: bool,
    internal: Option<Instant>,
}

impl<R: RngCore + Clone> Driver<R> {
    /// Creates a driver. The machines draw from `rngs[0]`, everything else from the other.
    pub(super) fn new(
        machines: Vec<Machine>,
        budget_pct: u64,
        now: Instant,
        rngs: [R; 2],
    ) -> Result<Self, CoverRejection> {
        let blocks = |machine: &Machine| {
            machine.states.iter().any(|state| matches!(state.action, Some(Action::BlockOutgoing { .. })))
        };
        // Blocking packets would cost every flow its latency and need a queue that can overflow.
        if machines.iter().any(blocks) {
            return Err(CoverRejection::Blocks);
        }
        let timers = vec![Timers::default(); machines.len()];
        let [of_machines, rng] = rngs;
        let framework = Framework::new(machines, 0.0, 0.0, now, of_machines)?;
        Ok(Self { framework, rng, timers, budget: Budget::new(budget_pct, now), throttled: 0 })
    }

    /// Returns the time of the next call if no event happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        let all = self.timers.iter();
        all.flat_map(|timers| [timers.padding.filter(|_| !timers.unheard), timers.internal]).flatten().min()
    }

    /// Reports the traffic to the machines and sends due packets. `send` gets the number of bytes in the budget.
    pub(super) fn step(
        &mut self,
        now: Instant,
        passed: TrafficDelta,
        mut send: impl FnMut(usize, &mut R) -> Outcome,
    ) {
        self.budget.credit(now, passed.sent_bytes);
        self.tell_of_traffic(now, passed);
        if passed.heard {
            for timers in self.timers.iter_mut().filter(|timers| timers.unheard) {
                timers.unheard = false;
                timers.padding = Some(now + self.rng.random_range(Duration::ZERO..START_SPREAD));
            }
        }
        for index in 0..self.timers.len() {
            if self.timers[index].internal.is_some_and(|at| at <= now) {
                self.timers[index].internal = None;
                let machine = maybenot::MachineId::from_raw(index);
                self.feed(now, &[TriggerEvent::TimerEnd { machine }]);
            }
            let Timers { padding, unheard, .. } = self.timers[index];
            if !unheard && padding.is_some_and(|at| at <= now) {
                self.pad(now, index, &mut send);
            }
        }
    }

    /// Returns the number of packets that the budget held back since the last call.
    pub(super) fn take_throttled(&mut self) -> u64 {
        std::mem::take(&mut self.throttled)
    }

    fn tell_of_traffic(&mut self, now: Instant, passed: TrafficDelta) {
        let received = (0..passed.received.min(REPORTED_AT_ONCE))
            .flat_map(|_| [TriggerEvent::TunnelRecv, TriggerEvent::NormalRecv]);
        let sent = (0..passed.sent.min(REPORTED_AT_ONCE))
            .flat_map(|_| [TriggerEvent::NormalSent, TriggerEvent::TunnelSent]);
        let events: Vec<TriggerEvent> = received.chain(sent).collect();
        if !events.is_empty() {
            self.feed(now, &events);
        }
    }

    fn pad(&mut self, now: Instant, index: usize, send: &mut impl FnMut(usize, &mut R) -> Outcome) {
        match send(self.budget.left(), &mut self.rng) {
            Outcome::Sent(bytes) => {
                self.budget.spend(bytes);
                self.timers[index] = Timers { internal: self.timers[index].internal, ..Timers::default() };
                let machine = maybenot::MachineId::from_raw(index);
                self.feed(now, &[TriggerEvent::PaddingSent { machine }, TriggerEvent::TunnelSent]);
            }
            Outcome::TooDear(bytes) => {
                let (least, most) = TIMEOUT;
                let wait = self.budget.wait(bytes).clamp(least, most);
                // Random, because the exact time at which the budget suffices could be computed.
                let wait = wait + self.rng.random_range(Duration::ZERO..wait);
                let timers = &mut self.timers[index];
                self.throttled += u64::from(!timers.late);
                (timers.padding, timers.late) = (Some(now + wait), true);
            }
            Outcome::NoWay => self.timers[index].unheard = true,
        }
    }

    fn feed(&mut self, now: Instant, events: &[TriggerEvent]) {
        let mut begun = self.apply_actions(now, events);
        for _ in 0..ROUNDS {
            if begun.is_empty() {
                return;
            }
            begun = self.apply_actions(now, &begun);
        }
    }

    /// Sets the timers for the actions of the machines. Returns the resulting events.
    fn apply_actions(&mut self, now: Instant, events: &[TriggerEvent]) -> Vec<TriggerEvent> {
        let mut begun = Vec::new();
        for action in self.framework.trigger_events(events, now) {
            match *action {
                TriggerAction::SendPadding { timeout, machine, .. } => {
                    let timers = &mut self.timers[machine.into_raw()];
                    (timers.padding, timers.unheard) = (Some(now + timeout), false);
                }
                TriggerAction::UpdateTimer { duration, replace, machine } => {
                    let timers = &mut self.timers[machine.into_raw()];
                    let wanted = now + duration;
                    timers.internal =
                        Some(timers.internal.filter(|at| !replace && *at > wanted).unwrap_or(wanted));
                    begun.push(TriggerEvent::TimerBegin { machine });
                }
                TriggerAction::Cancel { machine, timer } => {
                    let timers = &mut self.timers[machine.into_raw()];
                    if timer != Timer::Internal {
                        (timers.padding, timers.unheard) = (None, false);
                    }
                    if timer != Timer::Action {
                        timers.internal = None;
                    }
                }
                // No machine here has such a state.
                TriggerAction::BlockOutgoing { .. } => {}
            }
        }
        begun
    }
}

#[cfg(test)]
mod tests;
