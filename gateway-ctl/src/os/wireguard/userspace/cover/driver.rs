//! Keeps the timers of one peer's machines: tells them what happened, and carries out what they ask for when it is due and
//! the budget has room. It knows no sockets, and no clock but the times it is told.

use std::time::{Duration, Instant};

use maybenot::action::Action;
use maybenot::{Framework, Machine, Timer, TriggerAction, TriggerEvent};
use rand::{Rng, RngCore};

use super::budget::Budget;

/// Events of one kind told at once. Machines need to know that traffic flows, not how much of it: the budget does.
const TOLD_AT_ONCE: u64 = 32;
/// A machine may answer the begin of its timer with another; one that never ends it goes on next time.
const ROUNDS: usize = 4;
/// Cover that waited for a sign of the peer goes out at any time up to this after it, while that sign is still fresh.
const SPREAD: Duration = Duration::from_millis(3000);
/// Bounds of the wait for the budget, which may also be filled by traffic.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// What became of a packet of cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// So many bytes went out.
    Sent(usize),
    /// The budget has less room than these bytes, the fewest possible.
    TooDear(usize),
    /// There is no session, the peer was not heard just now, or nothing can be imitated yet.
    NoWay,
}

/// What passed since the driver was told last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passed {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    /// Something authentic came in.
    pub(super) heard: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
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

/// Of one machine.
#[derive(Debug, Clone, Copy, Default)]
struct Timers {
    /// When a packet of cover is due.
    padding: Option<Instant>,
    /// It is due, and waits for a sign of the peer.
    unheard: bool,
    /// It waits for the budget, and was counted.
    late: bool,
    internal: Option<Instant>,
}

impl<R: RngCore + Clone> Driver<R> {
    /// The machines draw from `rngs[0]`, everything else from the other.
    pub(super) fn new(
        machines: Vec<Machine>,
        budget_pct: u64,
        now: Instant,
        rngs: [R; 2],
    ) -> Result<Self, Refused> {
        let blocks = |machine: &Machine| {
            machine.states.iter().any(|state| matches!(state.action, Some(Action::BlockOutgoing { .. })))
        };
        // Holding packets back would cost every flow its latency and need a queue that can overflow.
        if machines.iter().any(blocks) {
            return Err(Refused::Blocks);
        }
        let timers = vec![Timers::default(); machines.len()];
        let [of_machines, rng] = rngs;
        let framework = Framework::new(machines, 0.0, 0.0, now, of_machines)?;
        Ok(Self { framework, rng, timers, budget: Budget::new(budget_pct, now), throttled: 0 })
    }

    /// When it has to be called again if nothing happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        let all = self.timers.iter();
        all.flat_map(|timers| [timers.padding.filter(|_| !timers.unheard), timers.internal]).flatten().min()
    }

    /// Tells the machines what passed and lets due packets go. `send` gets the bytes there is room for.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        passed: Passed,
        mut send: impl FnMut(usize, &mut R) -> Outcome,
    ) {
        self.budget.earn(now, passed.sent_bytes);
        self.tell_of_traffic(now, passed);
        if passed.heard {
            for timers in self.timers.iter_mut().filter(|timers| timers.unheard) {
                timers.unheard = false;
                timers.padding = Some(now + self.rng.random_range(Duration::ZERO..SPREAD));
            }
        }
        for index in 0..self.timers.len() {
            if self.timers[index].internal.is_some_and(|at| at <= now) {
                self.timers[index].internal = None;
                let machine = maybenot::MachineId::from_raw(index);
                self.tell(now, &[TriggerEvent::TimerEnd { machine }]);
            }
            let Timers { padding, unheard, .. } = self.timers[index];
            if !unheard && padding.is_some_and(|at| at <= now) {
                self.pad(now, index, &mut send);
            }
        }
    }

    /// Packets that the budget held back since this was asked last.
    pub(super) fn take_throttled(&mut self) -> u64 {
        std::mem::take(&mut self.throttled)
    }

    fn tell_of_traffic(&mut self, now: Instant, passed: Passed) {
        let received = (0..passed.received.min(TOLD_AT_ONCE))
            .flat_map(|_| [TriggerEvent::TunnelRecv, TriggerEvent::NormalRecv]);
        let sent = (0..passed.sent.min(TOLD_AT_ONCE))
            .flat_map(|_| [TriggerEvent::NormalSent, TriggerEvent::TunnelSent]);
        let events: Vec<TriggerEvent> = received.chain(sent).collect();
        if !events.is_empty() {
            self.tell(now, &events);
        }
    }

    fn pad(&mut self, now: Instant, index: usize, send: &mut impl FnMut(usize, &mut R) -> Outcome) {
        match send(self.budget.left(), &mut self.rng) {
            Outcome::Sent(bytes) => {
                self.budget.spend(bytes);
                self.timers[index] = Timers { internal: self.timers[index].internal, ..Timers::default() };
                let machine = maybenot::MachineId::from_raw(index);
                self.tell(now, &[TriggerEvent::PaddingSent { machine }, TriggerEvent::TunnelSent]);
            }
            Outcome::TooDear(bytes) => {
                let (least, most) = PATIENCE;
                let wait = self.budget.wait(bytes).clamp(least, most);
                // Not at the very moment when there is room, which could be computed.
                let wait = wait + self.rng.random_range(Duration::ZERO..wait);
                let timers = &mut self.timers[index];
                self.throttled += u64::from(!timers.late);
                (timers.padding, timers.late) = (Some(now + wait), true);
            }
            Outcome::NoWay => self.timers[index].unheard = true,
        }
    }

    fn tell(&mut self, now: Instant, events: &[TriggerEvent]) {
        let mut begun = self.obey(now, events);
        for _ in 0..ROUNDS {
            if begun.is_empty() {
                return;
            }
            begun = self.obey(now, &begun);
        }
    }

    /// Sets the timers as the machines wish; gives the events that this is to them.
    fn obey(&mut self, now: Instant, events: &[TriggerEvent]) -> Vec<TriggerEvent> {
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
