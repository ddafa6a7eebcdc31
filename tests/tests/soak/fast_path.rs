//! Fast path, long test: two daemons in two equal networks, one with `dataplane.fast_path`, one without it. Both get the
//! same generated packets and the same faults. The same packets arrive at each end, the same traffic is counted, and
//! nothing leaks.
//!
//! `GATEWAY_SOAK_SECONDS` sets the duration (20), `GATEWAY_SOAK_SEED` repeats a run.

mod faults;
mod gateway;
mod hosts;
mod traffic;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use faults::Fault;
use gateway::{Gateway, Record};
use gateway_tests::wait::wait_ok;
use nix::poll::{PollFd, PollFlags, poll};
use traffic::Traffic;

use crate::soak::faults::Random;
use crate::soak::number;

/// Rounds of packets in each state: before a fault, with it, and after its repair.
const ROUNDS: usize = 6;
/// Time in which both gateways deliver what one of them has delivered.
const DELIVERED: Duration = Duration::from_secs(10);
/// Time without an arrival after which missing packets were dropped.
const SILENCE: Duration = Duration::from_millis(60);

/// Both gateways: with the fast path, and without.
struct Pair {
    gateways: [Gateway; 2],
    seed: u64,
    /// Faults so far.
    history: Vec<String>,
}

impl Pair {
    fn build(seed: u64) -> Pair {
        let gateways = ["on", "off"].map(Gateway::build);
        Pair { gateways, seed, history: Vec::new() }
    }

    /// Does the same to both gateways at the same time.
    fn both(&mut self, work: impl Fn(&mut Gateway) + Sync) {
        std::thread::scope(|scope| {
            for gateway in &mut self.gateways {
                scope.spawn(|| work(gateway));
            }
        });
    }

    fn state(&mut self, state: String, work: impl Fn(&mut Gateway) + Sync) {
        self.history.push(state);
        self.both(work);
    }

    /// Sends packets, a flow at most one in each direction at a time, so that no tunnel merges two of them.
    fn exchange(&mut self, traffic: &mut Traffic, rounds: usize) {
        for _ in 0..rounds {
            for is_reply in [false, true] {
                let packets = traffic.round(is_reply);
                let sent = packets.len();
                for gateway in &mut self.gateways {
                    gateway.send(&packets);
                }
                let mut last = (Instant::now(), 0);
                while last.0.elapsed() < SILENCE {
                    self.wait_for_packet();
                    let mut seen = [0; 2];
                    for (gateway, seen) in self.gateways.iter_mut().zip(&mut seen) {
                        gateway.receive();
                        *seen = gateway.seen();
                    }
                    if seen.iter().sum::<usize>() != last.1 {
                        last = (Instant::now(), seen.iter().sum());
                    }
                    if seen == [sent; 2] {
                        break;
                    }
                }
                self.compare();
            }
        }
    }

    /// Waits until the same packets have arrived at each end of both networks.
    fn compare(&mut self) {
        let started = Instant::now();
        loop {
            self.gateways.iter_mut().for_each(Gateway::receive);
            let [on, off] = &self.gateways;
            if on.records == off.records {
                let leaks = [&on.leaks, &off.leaks].map(|leaks| leaks.join("\n"));
                assert!(leaks.iter().all(String::is_empty), "{}leaked: {leaks:#?}", self.context());
                self.gateways.iter_mut().for_each(|gateway| gateway.records.clear());
                return;
            }
            if started.elapsed() > DELIVERED {
                let (with, without) =
                    (only_in(&on.records, &off.records), only_in(&off.records, &on.records));
                let context = self.context();
                panic!("{context}only with the fast path:\n{with}\nonly without:\n{without}");
            }
            self.wait_for_packet();
        }
    }

    fn compare_counters(&mut self) {
        // A fault may have ended the daemons.
        if self.gateways.iter().any(|gateway| gateway.testbed.daemon.pid().is_none()) {
            return;
        }
        let compared = wait_ok(DELIVERED, "the same counters", || {
            let [on, off] = self.gateways.each_ref().map(Gateway::counters);
            anyhow::ensure!(on == off, "with {on:?}, without {off:?}");
            Ok(())
        });
        compared.unwrap_or_else(|error| panic!("{}{error:#}", self.context()));
    }

    /// Waits briefly until a packet arrives at any end.
    fn wait_for_packet(&self) {
        let ends = self.gateways.iter().flat_map(Gateway::ends);
        let mut waiting: Vec<_> = ends.map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
        // A failed wait only makes the next look early.
        let _ = poll(&mut waiting, 2_u16);
    }

    fn context(&self) -> String {
        let from = self.history.len().saturating_sub(12);
        format!("seed {}, states: {:#?}\n", self.seed, &self.history[from..])
    }
}

fn only_in(records: &BTreeMap<Record, usize>, other: &BTreeMap<Record, usize>) -> String {
    let differing = records.iter().filter(|(record, count)| other.get(*record) != Some(*count));
    differing.map(|(record, count)| format!("{count} x {record}\n")).collect()
}

#[test]
fn faults_leave_the_same_packets_with_and_without_it() {
    let length = Duration::from_secs(number("GATEWAY_SOAK_SECONDS", 20));
    let seed = number("GATEWAY_SOAK_SEED", std::process::id().into());
    println!("GATEWAY_SOAK_SEED={seed}");
    let only = std::env::var("GATEWAY_SOAK_FAULT").ok();
    let chosen: Vec<Fault> = Fault::ALL
        .into_iter()
        .filter(|fault| only.as_ref().is_none_or(|only| format!("{fault:?}") == *only))
        .collect();
    assert!(!chosen.is_empty(), "no such fault: {only:?}");
    let mut random = Random::new(seed);
    let mut pair = Pair::build(seed);
    let mut traffic = Traffic::new(seed);
    pair.exchange(&mut traffic, ROUNDS);
    pair.both(Gateway::start_counting);
    let (started, mut done, mut order) = (Instant::now(), 0, Vec::new());
    while started.elapsed() < length {
        // Each fault once, in another order each time.
        if order.is_empty() {
            order.clone_from(&chosen);
        }
        let fault = order.swap_remove(random.below(order.len()));
        traffic.reopen_some();
        pair.state(format!("{fault:?}"), |gateway| fault.inject(gateway));
        pair.exchange(&mut traffic, ROUNDS);
        pair.compare_counters();
        pair.state(format!("after {fault:?}"), |gateway| fault.repair(gateway));
        traffic.reopen_some();
        pair.exchange(&mut traffic, ROUNDS);
        pair.compare_counters();
        done += 1;
    }
    let [on, off] = &pair.gateways;
    let (fast, none) = (on.fast_packets(), off.fast_packets());
    println!(
        "{done} faults, {} packets compared, {fast} of them passed the IP stack by in the last run of the daemon, {} of the load",
        traffic.sent(),
        on.load_packets() + off.load_packets(),
    );
    assert!(done > 0 && fast > 100, "{fast}");
    assert_eq!(none, 0, "the other gateway has no fast path");
}
