//! Fast path, long test: two daemons in two equal networks, one with `dataplane.fast_path`, one without it. Both get the
//! same generated packets and the same faults. Other hosts claim the addresses and ports of a part of the packets. The same
//! packets arrive at each end, the same traffic is counted, and nothing leaks.
//!
//! Packets are compared while both gateways are settled. Two daemons notice a dead tunnel at different times, so what is
//! sent meanwhile, the load, is only checked for leaks.
//!
//! `GATEWAY_SOAK_SECONDS` sets the duration (60), `GATEWAY_SOAK_SEED` repeats a run, `GATEWAY_SOAK_FAULT` chooses one
//! fault.

mod arrivals;
mod changes;
mod faults;
mod gateway;
mod hosts;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use arrivals::Record;
use faults::Fault;
use gateway::{Gateway, PlanState};
use gateway_tests::wait::wait_ok;
use nix::poll::{PollFd, PollFlags, poll};
use traffic::{Planned, Traffic};

use crate::soak::faults::Random;
use crate::soak::number;

/// Rounds of packets in each state: with a fault, and after its repair.
const ROUNDS: usize = 6;
/// Time in which both gateways deliver what one of them has delivered.
const DELIVERED: Duration = Duration::from_secs(10);
/// Time without an arrival after which missing packets were dropped.
const SILENCE: Duration = Duration::from_millis(60);

/// Both gateways: with the fast path, and without.
struct Pair {
    gateways: [Gateway; 2],
    seed: u64,
    /// States so far.
    history: Vec<String>,
    /// Packets of the present state.
    sent: Vec<Planned>,
    /// Packets of the compared rounds.
    compared: u64,
    /// Packets there and back that passed the IP stack by, and those of the present run of the daemon.
    fast: [u64; 2],
    fast_now: [u64; 2],
    /// States whose packets were not compared, because a plan changed by itself.
    skipped: usize,
}

impl Pair {
    fn build(seed: u64) -> Pair {
        let gateways = [true, false].map(Gateway::build);
        Pair {
            gateways,
            seed,
            history: Vec::new(),
            sent: Vec::new(),
            compared: 0,
            fast: [0; 2],
            fast_now: [0; 2],
            skipped: 0,
        }
    }

    /// Does the same to both gateways at the same time.
    fn both(&mut self, work: impl Fn(&mut Gateway) + Sync) {
        std::thread::scope(|scope| {
            for gateway in &mut self.gateways {
                scope.spawn(|| work(gateway));
            }
        });
    }

    /// Changes the state of both gateways, after which `tunnels` work, and compares what they do in it.
    fn compare_state(
        &mut self,
        state: String,
        tunnels: [bool; 2],
        traffic: &mut Traffic,
        work: impl Fn(&mut Gateway) + Sync,
    ) {
        self.history.push(state);
        self.both(work);
        self.both(|gateway| gateway.arrivals.begin_state());
        self.sent.clear();
        traffic.reopen(3);
        let before = self.settle(tunnels);
        let compared = (0..ROUNDS).try_for_each(|_| self.exchange(traffic));
        let compared = compared.and_then(|()| self.compare_counters());
        self.count_fast_packets();
        let after = self.plan_states();
        if after == before {
            compared
                .unwrap_or_else(|error| panic!("{}{error}\n{}", self.context(), self.descriptions(traffic)));
        } else {
            // A health check failed in one network, because the machine was busy.
            self.skipped += 1;
            println!("skipped {:?}: before {before:?}, after {after:?}", self.history.last());
            self.make_equal(traffic, tunnels);
        }
    }

    fn count_fast_packets(&mut self) {
        let [on, off] = &self.gateways;
        if on.testbed.daemon.pid().is_none() {
            // The next daemon counts from zero.
            self.fast_now = [0; 2];
            return;
        }
        let now = on.fast_packets();
        for ((sum, now), before) in self.fast.iter_mut().zip(now).zip(self.fast_now) {
            *sum += now - before;
        }
        self.fast_now = now;
        assert_eq!(off.fast_packets(), [0; 2], "the other gateway has no fast path");
    }

    /// Waits until the tunnels of both gateways are as expected, and returns the plans in force.
    fn settle(&mut self, tunnels: [bool; 2]) -> [Option<PlanState>; 2] {
        loop {
            let states = self.plan_states();
            if states.iter().flatten().all(|state| state.tunnels == tunnels) {
                return states;
            }
            self.both(|gateway| gateway.settle(tunnels));
        }
    }

    fn plan_states(&self) -> [Option<PlanState>; 2] {
        self.gateways.each_ref().map(Gateway::plan_state)
    }

    /// Describes both gateways at once and after further packets, which may be lost in turn.
    fn descriptions(&mut self, traffic: &mut Traffic) -> String {
        let describe = |gateways: &[Gateway; 2]| gateways.each_ref().map(Gateway::description).join("\n\n");
        let first = describe(&self.gateways);
        let again = self.round(traffic, false, DELIVERED);
        format!("{first}\nthe next round: {again:?}\n{}", describe(&self.gateways))
    }

    /// Makes the flows equal again after packets that only one of the gateways let through.
    fn make_equal(&mut self, traffic: &mut Traffic, tunnels: [bool; 2]) {
        self.settle(tunnels);
        traffic.reopen(1);
        for is_reply in [false, true, false, true] {
            // The difference is expected.
            let _ = self.round(traffic, is_reply, Duration::ZERO);
        }
        self.both(|gateway| gateway.arrivals.begin_state());
        if self.gateways.iter().all(|gateway| gateway.testbed.daemon.pid().is_some()) {
            self.both(Gateway::start_counting);
        }
    }

    fn exchange(&mut self, traffic: &mut Traffic) -> Result<(), String> {
        [false, true].into_iter().try_for_each(|is_reply| self.round(traffic, is_reply, DELIVERED))
    }

    /// Sends at most one packet of each flow, so that no tunnel merges two of them.
    fn round(&mut self, traffic: &mut Traffic, is_reply: bool, limit: Duration) -> Result<(), String> {
        let mut packets = traffic.round(is_reply);
        packets.retain(|planned| self.gateways.iter().all(|one| !is_reply || one.has_return(&planned.flow)));
        self.send(&packets);
        self.compare(limit)?;
        self.compared += packets.len() as u64;
        Ok(())
    }

    /// Sends packets in both networks, and waits until all have arrived or nothing more arrives.
    fn send(&mut self, packets: &[Planned]) {
        self.sent.extend_from_slice(packets);
        for gateway in &mut self.gateways {
            gateway.arrivals.expect(packets);
            gateway.send(packets);
        }
        let mut last = (Instant::now(), 0);
        while last.0.elapsed() < SILENCE {
            self.wait_for_packet();
            let seen = self.gateways.each_mut().map(|gateway| {
                gateway.arrivals.receive();
                gateway.arrivals.count()
            });
            if seen.iter().sum::<usize>() != last.1 {
                last = (Instant::now(), seen.iter().sum());
            }
            if seen == [packets.len(); 2] {
                break;
            }
        }
    }

    /// Waits until the same packets have arrived at each end of both networks.
    fn compare(&mut self, limit: Duration) -> Result<(), String> {
        let started = Instant::now();
        loop {
            self.gateways.iter_mut().for_each(|gateway| gateway.arrivals.receive());
            let [on, off] = self.gateways.each_ref().map(|gateway| &gateway.arrivals);
            let leaks = [&on.leaks, &off.leaks].map(|leaks| leaks.join("\n"));
            assert!(leaks.iter().all(String::is_empty), "{}leaked: {leaks:#?}", self.context());
            let is_equal = on.records == off.records;
            if is_equal || started.elapsed() > limit {
                let (with, without) =
                    (only_in(&on.records, &off.records), only_in(&off.records, &on.records));
                self.gateways.iter_mut().for_each(|gateway| gateway.arrivals.records.clear());
                let difference = || {
                    format!("only with the fast path:\n{with}\nonly without:\n{without}\n{}", self.trails())
                };
                return if is_equal { Ok(()) } else { Err(difference()) };
            }
            self.wait_for_packet();
        }
    }

    fn compare_counters(&mut self) -> Result<(), String> {
        // A fault may have ended the daemons.
        if self.gateways.iter().any(|gateway| gateway.testbed.daemon.pid().is_none()) {
            return Ok(());
        }
        let compared = wait_ok(DELIVERED, "the same counters", || {
            let [on, off] = self.gateways.each_ref().map(Gateway::counters);
            anyhow::ensure!(on == off, "with {on:?}, without {off:?}");
            Ok(())
        });
        compared.map_err(|error| format!("{error:#}"))
    }

    /// Waits briefly until a packet arrives at any end.
    fn wait_for_packet(&self) {
        let ends = self.gateways.iter().flat_map(|gateway| gateway.arrivals.sockets());
        let mut waiting: Vec<_> = ends.map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
        // A failed wait only makes the next look early.
        let _ = poll(&mut waiting, 2_u16);
    }

    /// Says of the flows whose packets arrived at different ends what was sent in this state, and where it arrived.
    fn trails(&self) -> String {
        let [on, off] = self.gateways.each_ref().map(|gateway| &gateway.arrivals.trail);
        let differs = |planned: &Planned| on.get(&planned.number) != off.get(&planned.number);
        let flows: BTreeSet<_> = self.sent.iter().filter(|one| differs(one)).map(|one| one.flow).collect();
        let of_flows = self.sent.iter().filter(|planned| flows.contains(&planned.flow));
        of_flows
            .map(|planned| {
                let [on, off] = [on, off].map(|trail| trail.get(&planned.number));
                format!("{planned} with {on:?} without {off:?}\n")
            })
            .collect()
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

/// Lets one gateway change one byte of each packet of IPv4. The comparison must find it, otherwise it proves nothing.
fn check_comparison(pair: &mut Pair, traffic: &mut Traffic) {
    let alter = "table inet altered {\n chain out {\n type filter hook postrouting priority 0\n \
                 ip dscp set cs1\n }\n}\n";
    pair.gateways[1].change_kernel("nftables", |kernel| kernel.nft(alter).expect("rules"));
    let difference = pair.round(traffic, false, Duration::from_secs(1)).expect_err("a difference");
    assert!(difference.contains("only without:\n1 x"), "{difference}");
    pair.gateways[1].change_kernel("nftables", |kernel| {
        kernel.run("nft", &["delete", "table", "inet", "altered"]).expect("deleted");
    });
    pair.make_equal(traffic, [true; 2]);
}

#[test]
fn faults_leave_the_same_packets_with_and_without_it() {
    let length = Duration::from_secs(number("GATEWAY_SOAK_SECONDS", 60));
    let seed = number("GATEWAY_SOAK_SEED", std::process::id().into());
    println!("GATEWAY_SOAK_SEED={seed}");
    let only = std::env::var("GATEWAY_SOAK_FAULT").ok();
    let is_chosen = |fault: &Fault| only.as_ref().is_none_or(|only| format!("{fault:?}") == *only);
    let chosen: Vec<Fault> = Fault::ALL.into_iter().filter(is_chosen).collect();
    assert!(!chosen.is_empty(), "no such fault: {only:?}");
    let (mut random, mut traffic) = (Random::new(seed), Traffic::new(seed));
    let mut pair = Pair::build(seed);
    pair.make_equal(&mut traffic, [true; 2]);
    pair.compare_state("the first".to_owned(), [true; 2], &mut traffic, |_| {});
    check_comparison(&mut pair, &mut traffic);
    let (started, mut count, mut order) = (Instant::now(), 0, Vec::new());
    while started.elapsed() < length {
        // Each fault once, in another order each time.
        if order.is_empty() {
            order.clone_from(&chosen);
        }
        let fault = order.swap_remove(random.below(order.len()));
        pair.compare_state(format!("{fault:?}"), fault.tunnels(), &mut traffic, |gateway| {
            fault.inject(gateway)
        });
        pair.compare_state(format!("after {fault:?}"), [true; 2], &mut traffic, |gateway| {
            fault.repair(gateway)
        });
        count += 1;
    }
    let load: u64 = pair.gateways.iter().map(|gateway| gateway.arrivals.load).sum();
    let Pair { compared, skipped, fast: [forwarded, replied], .. } = pair;
    println!(
        "{count} faults, {compared} of {} packets compared, {skipped} states skipped, {forwarded} and {replied} packets passed the IP stack by, {load} of the load arrived",
        traffic.count(),
    );
    assert!(count > 0 && forwarded > 500 && replied > compared / 50, "{forwarded} {replied}");
    assert!(skipped <= 2 + count / 2, "{skipped} of {} states were skipped", 2 * count);
}
