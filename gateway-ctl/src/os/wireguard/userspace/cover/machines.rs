//! The machines that say when cover is sent. They are made here, of the crate's parts, and are public: what they hide lies
//! in their dice. None of them ever holds traffic back, and none counts on the far end, which sends no cover.
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

/// The machine of this name.
pub(super) fn machine(name: CoverMachine) -> Result<Machine, Error> {
    let states = match name {
        CoverMachine::Front => front(),
        CoverMachine::Tail => tail(),
        CoverMachine::Idle => idle(),
    };
    // The budget counts bytes for all of them, which limits of packets for each could only blur.
    Machine::new(0, 0.0, 0, 0.0, states)
}

/// The first packets after a silence tell most about what is asked for. Three to eight packets of cover come among them,
/// most within the first second; then none until nothing was sent for five to fifteen seconds.
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

/// Where traffic pauses, and where it ends, shows the size of what was asked for. After each packet that no other follows
/// for some tens of milliseconds come one, two or a few of cover.
fn tail() -> Vec<State> {
    const QUIET: usize = 0;
    const TRAILING: usize = 1;
    let quiet = State::new(enum_map! {
        Event::NormalSent => vec![Trans(TRAILING, 1.0)],
        _ => vec![],
    });
    let mut trailing = State::new(enum_map! {
        // The wait begins again.
        Event::NormalSent => vec![Trans(TRAILING, 1.0)],
        Event::PaddingSent => vec![Trans(TRAILING, 0.6), Trans(QUIET, 0.4)],
        _ => vec![],
    });
    let gap = DistType::LogNormal { mu: (30.0 * MILLISECOND).ln(), sigma: 0.8 };
    trailing.action = Some(padding(Dist::new(gap, 0.0, 400.0 * MILLISECOND), None));
    vec![quiet, trailing]
}

/// When traffic has ended, a packet every few seconds.
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
