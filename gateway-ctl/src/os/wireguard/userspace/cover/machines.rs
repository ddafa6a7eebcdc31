//! Machines that determine the times of cover. They are built here from the crate's parts and are public: the secret
//! is in their random draws. None of them ever delays traffic. None relies on the remote end, which sends no cover.
//!
//! Times are in microseconds, as in all of the crate.

use enum_map::enum_map;
use gateway_model::settings::groups::CoverMachine;
use maybenot::action::Action;
use maybenot::dist::{Dist, DistType};
use maybenot::event::Event;
use maybenot::state::{State, Trans};
use maybenot::{Error, Machine};

const MILLISECOND: f64 = 1e3;
const SECOND: f64 = 1e6;

/// Returns the machine of this name.
pub(super) fn machine(name: CoverMachine) -> Result<Machine, Error> {
    let states = match name {
        CoverMachine::Front => front(),
        CoverMachine::Tail => tail(),
        CoverMachine::Idle => idle(),
    };
    // The budget counts the bytes of all machines. Packet limits for each machine would only blur that.
    Machine::new(0, 0.0, 0, 0.0, states)
}

/// Covers the first packets after a silence, which reveal most about the request. It adds three to eight cover
/// packets, most within the first second. It then adds none until no packet was sent for five to fifteen seconds.
fn front() -> Vec<State> {
    const SILENT: usize = 0;
    const BEGINNING: usize = 1;
    const UNDER_WAY: usize = 2;
    let silent = State::new(enum_map! {
        Event::NormalSent => vec![Trans(BEGINNING, 1.0)],
        _ => vec![],
    });
    let mut beginning = State::new(enum_map! {
        Event::PaddingSent => vec![Trans(BEGINNING, 1.0)],
        Event::LimitReached => vec![Trans(UNDER_WAY, 1.0)],
        _ => vec![],
    });
    let gap = DistType::Weibull { scale: 250.0 * MILLISECOND, shape: 1.2 };
    beginning.action = Some(padding(Dist::new(gap, 0.0, 2.0 * SECOND), Some(uniform(3.0, 9.0))));
    let mut under_way = State::new(enum_map! {
        Event::NormalSent => vec![Trans(UNDER_WAY, 1.0)],
        Event::TimerEnd => vec![Trans(SILENT, 1.0)],
        _ => vec![],
    });
    let silence = uniform(5.0 * SECOND, 15.0 * SECOND);
    under_way.action = Some(Action::UpdateTimer { replace: true, duration: silence, limit: None });
    vec![silent, beginning, under_way]
}

/// Covers pauses and ends of traffic, which reveal the size of the transfer. It adds one, two or a few cover packets
/// after each packet without a successor within some tens of milliseconds.
fn tail() -> Vec<State> {
    const QUIET: usize = 0;
    const TRAILING: usize = 1;
    let quiet = State::new(enum_map! {
        Event::NormalSent => vec![Trans(TRAILING, 1.0)],
        _ => vec![],
    });
    let mut trailing = State::new(enum_map! {
        // The wait restarts.
        Event::NormalSent => vec![Trans(TRAILING, 1.0)],
        Event::PaddingSent => vec![Trans(TRAILING, 0.6), Trans(QUIET, 0.4)],
        _ => vec![],
    });
    let gap = DistType::LogNormal { mu: (30.0 * MILLISECOND).ln(), sigma: 0.8 };
    trailing.action = Some(padding(Dist::new(gap, 0.0, 400.0 * MILLISECOND), None));
    vec![quiet, trailing]
}

/// Adds a packet every few seconds after traffic has ended.
fn idle() -> Vec<State> {
    const IDLING: usize = 1;
    let fresh = State::new(enum_map! {
        Event::NormalSent => vec![Trans(IDLING, 1.0)],
        _ => vec![],
    });
    let mut idling = State::new(enum_map! {
        Event::NormalSent => vec![Trans(IDLING, 1.0)],
        Event::PaddingSent => vec![Trans(IDLING, 1.0)],
        _ => vec![],
    });
    idling.action = Some(padding(uniform(3.0 * SECOND, 9.0 * SECOND), None));
    vec![fresh, idling]
}

fn padding(timeout: Dist, limit: Option<Dist>) -> Action {
    Action::SendPadding { bypass: false, replace: false, timeout, limit }
}

fn uniform(low: f64, high: f64) -> Dist {
    Dist::new(DistType::Uniform { low, high }, 0.0, 0.0)
}
