//! Machines under simulated time that covers hours.

use enum_map::enum_map;
use gateway_model::settings::groups::CoverMachine;
use maybenot::dist::{Dist, DistType};
use maybenot::event::Event;
use maybenot::state::{State, Trans};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::super::budget::{BASE_BYTES_PER_SECOND, MAX_SAVED_BYTES};
use super::super::machines::machine;
use super::*;

/// Length of a cover datagram.
const LEN: usize = 128;

fn driver(machines: Vec<Machine>, pct: u64, start: Instant) -> Driver<StdRng> {
    let rngs = [7, 8].map(StdRng::seed_from_u64);
    Driver::new(machines, pct, start, rngs).unwrap_or_else(|error| panic!("{error}"))
}

fn built(names: &[CoverMachine]) -> Vec<Machine> {
    names.iter().map(|name| machine(*name).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

/// Returns one packet each way, with this many bytes sent.
fn traffic(sent_bytes: u64) -> TrafficDelta {
    TrafficDelta { sent: 1, sent_bytes, received: 1, heard: true }
}

/// A driver under simulated time.
struct World {
    driver: Driver<StdRng>,
    now: Instant,
    /// True if the remote end was heard recently.
    listens: bool,
    sent: Vec<Instant>,
}

impl World {
    fn new(names: &[CoverMachine], pct: u64) -> Self {
        let now = Instant::now();
        Self { driver: driver(built(names), pct, now), now, listens: true, sent: Vec::new() }
    }

    fn happens(&mut self, passed: TrafficDelta) {
        let Self { driver, now, listens, sent } = self;
        driver.step(*now, passed, |left, _| match left {
            _ if !*listens => Outcome::NoWay,
            left if left < LEN => Outcome::TooDear(LEN),
            _ => {
                sent.push(*now);
                Outcome::Sent(LEN)
            }
        });
    }

    /// Advances the time without traffic.
    fn passes(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.driver.due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.happens(TrafficDelta::default());
        }
        self.now = end;
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// Real bytes that earn enough budget at ten percent for many cover packets.
const PLENTY: u64 = 100_000;

#[test]
fn without_traffic_nothing_is_ever_due() {
    let mut world = World::new(CoverMachine::ALL, 10);
    world.passes(SECOND * 3600);
    assert_eq!((world.sent.len(), world.driver.due()), (0, None));
}

#[test]
fn the_front_comes_once_within_seconds_and_again_after_a_silence() {
    let mut world = World::new(&[CoverMachine::Front], 10);
    world.happens(traffic(PLENTY));
    world.passes(SECOND * 20);
    let first = world.sent.len();
    assert!((3..=9).contains(&first), "{first}");
    let took = world.sent[first - 1] - world.sent[0];
    assert!(took < SECOND * 16, "{took:?}");
    // Continuous traffic has none.
    for _ in 0..200 {
        world.happens(traffic(PLENTY));
        world.passes(Duration::from_millis(500));
    }
    let second = world.sent.len() - first;
    assert!(second <= 9, "{second}");
    world.passes(SECOND * 20);
    let rested = world.sent.len();
    world.happens(traffic(PLENTY));
    world.passes(SECOND * 20);
    assert!(world.sent.len() > rested);
}

#[test]
fn the_tail_fills_gaps_and_ends_soon() {
    let mut world = World::new(&[CoverMachine::Tail], 10);
    for _ in 0..1000 {
        world.happens(traffic(PLENTY));
        world.passes(Duration::from_millis(1));
    }
    let dense = world.sent.len();
    world.sent.clear();
    for _ in 0..1000 {
        world.happens(traffic(PLENTY));
        world.passes(SECOND);
    }
    assert!(dense < 20, "{dense} among packets that follow each other closely");
    assert!((1000..4000).contains(&world.sent.len()), "{} behind a thousand", world.sent.len());
    world.sent.clear();
    world.passes(SECOND * 3600);
    assert!(world.sent.len() < 20, "{}", world.sent.len());
}

#[test]
fn the_idle_machine_goes_on_as_far_as_the_floor_allows() {
    let mut world = World::new(&[CoverMachine::Idle], 10);
    world.happens(traffic(0));
    world.passes(SECOND * 3600);
    let bytes = (world.sent.len() * LEN) as u64;
    assert!(world.sent.len() > 300, "{}", world.sent.len());
    assert!(bytes <= BASE_BYTES_PER_SECOND * 3600, "{bytes}");
}

#[test]
fn cover_that_the_budget_holds_back_comes_later_and_is_counted_once() {
    let mut world = World::new(&[CoverMachine::Tail], 10);
    world.happens(traffic(0));
    // The floor earns 128 bytes in two seconds; the tail is due within 400 milliseconds.
    world.passes(Duration::from_millis(1900));
    assert_eq!((world.sent.len(), world.driver.take_throttled()), (0, 1));
    world.passes(SECOND * 10);
    assert!(!world.sent.is_empty());
    world.driver.take_throttled();
    assert_eq!(world.driver.take_throttled(), 0);
}

#[test]
fn a_silent_peer_gets_none_until_it_is_heard() {
    let mut world = World::new(CoverMachine::ALL, 10);
    world.listens = false;
    world.happens(traffic(PLENTY));
    world.passes(SECOND * 3600);
    assert_eq!(world.sent.len(), 0);
    world.listens = true;
    world.passes(SECOND * 3600);
    assert_eq!(world.sent.len(), 0, "without a sign of the peer");
    world.happens(TrafficDelta { heard: true, ..TrafficDelta::default() });
    assert_eq!(world.sent.len(), 0, "not at the same moment");
    world.passes(START_SPREAD);
    assert!(!world.sent.is_empty());
}

#[test]
fn a_machine_that_holds_traffic_back_is_refused() {
    let always = Dist::new(DistType::Uniform { low: 1.0, high: 1.0 }, 0.0, 0.0);
    let mut state = State::new(enum_map! {
        Event::NormalSent => vec![Trans(0, 1.0)],
        _ => vec![],
    });
    state.action = Some(Action::BlockOutgoing {
        bypass: false,
        replace: false,
        timeout: always,
        duration: always,
        limit: None,
    });
    let machine = Machine::new(0, 0.0, 0, 0.0, vec![state]).expect("a valid machine");
    let rngs = [1, 2].map(StdRng::seed_from_u64);
    let refused = Driver::new(vec![machine], 10, Instant::now(), rngs);
    assert!(matches!(refused, Err(CoverRejection::Blocks)));
}

#[test]
fn a_machine_that_never_ends_its_begin_does_not_end_the_program() {
    let always = Dist::new(DistType::Uniform { low: 1.0, high: 1.0 }, 0.0, 0.0);
    let mut state = State::new(enum_map! {
        Event::NormalSent => vec![Trans(0, 1.0)],
        Event::TimerBegin => vec![Trans(0, 1.0)],
        _ => vec![],
    });
    state.action = Some(Action::UpdateTimer { replace: true, duration: always, limit: None });
    let machine = Machine::new(0, 0.0, 0, 0.0, vec![state]).expect("a valid machine");
    let start = Instant::now();
    let mut driver = driver(vec![machine], 10, start);
    driver.step(start, traffic(100), |_, _| Outcome::NoWay);
    assert_eq!(driver.due(), Some(start + Duration::from_micros(1)));
}

#[test]
fn a_timer_is_replaced_prolonged_and_cancelled_as_the_machine_says() {
    let at = |micros: f64| Dist::new(DistType::Uniform { low: micros, high: micros }, 0.0, 0.0);
    let timer = |micros, replace, next: Event, to| {
        let mut state =
            State::new(enum_map! { event => if event == next { vec![Trans(to, 1.0)] } else { vec![] } });
        state.action = Some(Action::UpdateTimer { replace, duration: at(micros), limit: None });
        state
    };
    let start = State::new(enum_map! { Event::NormalSent => vec![Trans(1, 1.0)], _ => vec![] });
    let mut cancel = State::new(enum_map! { _ => vec![] });
    cancel.action = Some(Action::Cancel { timer: Timer::All });
    let states = vec![
        start,
        timer(50.0, false, Event::NormalRecv, 2),
        timer(20.0, false, Event::TunnelSent, 3),
        timer(20.0, true, Event::NormalRecv, 4),
        cancel,
    ];
    let machine = Machine::new(0, 0.0, 0, 0.0, states).expect("a valid machine");
    let now = Instant::now();
    let mut driver = driver(vec![machine], 10, now);
    let due = |driver: &Driver<StdRng>| driver.due().map(|due| (due - now).as_micros());
    driver.feed(now, &[TriggerEvent::NormalSent]);
    assert_eq!(due(&driver), Some(50));
    driver.feed(now, &[TriggerEvent::NormalRecv]);
    assert_eq!(due(&driver), Some(50), "the longer one stays");
    driver.feed(now, &[TriggerEvent::TunnelSent]);
    assert_eq!(due(&driver), Some(20), "replaced");
    driver.feed(now, &[TriggerEvent::NormalRecv]);
    assert_eq!(due(&driver), None);
}

proptest! {
    /// All machines together stay within share, floor and saved budget under any traffic.
    #[test]
    fn the_budget_holds_under_any_traffic(
        pct in 1_u64..=50,
        steps in prop::collection::vec((0_u64..3_000, 1_u64..40, 60_u64..1_500), 1..80),
    ) {
        let mut world = World::new(CoverMachine::ALL, pct);
        let start = world.now;
        let mut normal = 0;
        for (millis, packets, len) in steps {
            let bytes = packets * len;
            normal += bytes;
            world.happens(TrafficDelta { sent: packets, sent_bytes: bytes, received: packets, heard: true });
            world.passes(Duration::from_millis(millis));
        }
        let cover = (world.sent.len() * LEN) as u64;
        let seconds = (world.now - start).as_secs() + 1;
        prop_assert!(cover <= normal * pct / 100 + BASE_BYTES_PER_SECOND * seconds + MAX_SAVED_BYTES, "{cover} among {normal}");
    }
}
