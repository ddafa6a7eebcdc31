//! `verdict_flow_flat`, `verdict_new_flat`: cost of one packet in the ingress program, by BPF_PROG_TEST_RUN, with few
//! and with many policies.
//!
//! Every packet is a separate run with its own bytes, so that nothing repeats that real traffic would not repeat. The
//! bench subtracts the result of an empty program, which is two clock reads.
//!
//! `privacy_flow` and `privacy_new` compare plans without blocks and with those that stop none of the packets, which
//! are UDP at port 443 in both families: all but QUIC and IPv6. Each one of a new flow is looked up among the public
//! resolvers.
//!
//! `verdict_flow_flat` measures the effect of the number of policies on an established flow, so only that number
//! differs. The table holds 100 000 flows for any number of policies, and packets hit them in random order. Few flows
//! are cheaper because they stay in the processor's caches. The bench also prints the cost of an established flow with
//! one flow for each policy.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use gateway_common::wire::{FLOW_BUDGET, Mark, NewFlows, block_flags, budget_index};
use gateway_core::doh_servers;
use gateway_ctl::os::bpf::Programs;
use gateway_tests::bpf_run::{Arrival, measure, run as run_once};
use gateway_tests::netns::{Prefix, remove_pins};

use crate::bpf::instruction::{exit, set};
use crate::bpf::{Kind, Program};
use crate::generator::pin;
use crate::policies::{Random, Spread};
use crate::row::{Row, Target, alternate};

const SIZES: [usize; 4] = [10, 1_000, 10_000, 100_000];
const ROUNDS: usize = 5;
/// Packets of one size in one round.
const RUNS: usize = 50_000;
/// Packets between two refills of the budgets of new flows, so that measured flows have records.
const PART: usize = FLOW_BUDGET as usize / 2;
/// Number of established flows, for any number of policies.
const KNOWN: usize = 100_000;

/// The programs with one plan. Other sizes have their own instance.
struct Subject {
    programs: Programs,
    spread: Spread,
    /// One flow for each policy in order.
    flows: Vec<Vec<u8>>,
    policies: usize,
    random: Random,
    next_port: u16,
    pins: PathBuf,
}

impl Drop for Subject {
    fn drop(&mut self) {
        remove_pins(&self.pins);
    }
}

pub(crate) fn run() -> Result<Vec<Row>> {
    pin()?;
    let mut subjects = Vec::new();
    for size in SIZES {
        subjects.push(Subject::new(size, 0).with_context(|| format!("{size} policies"))?);
    }
    let constant = empty_program()?;
    println!(
        "an empty program takes {constant:.1} ns by the same measure; it is subtracted from all figures"
    );
    let known = alternate(&mut subjects, ROUNDS, |subject| Ok(subject.known_flows(KNOWN)? - constant))?;
    let each = |subject: &mut Subject| Ok(subject.known_flows(subject.policies)? - constant);
    let one_each = alternate(&mut subjects, ROUNDS, each)?;
    let new = alternate(&mut subjects, ROUNDS, |subject| Ok(subject.new_flows()? - constant))?;
    println!("one known flow for each policy, ns per packet: median (rounds)");
    for (size, measured) in SIZES.iter().zip(&one_each) {
        println!("  {size:>7} policies {measured}");
    }
    let mut rows = Vec::new();
    for (bench, measured, most) in [("verdict_flow_flat", &known, 1.3), ("verdict_new_flat", &new, 3.0)] {
        println!("{bench}, ns per packet: median (rounds)");
        for (size, measured) in SIZES.iter().zip(measured) {
            println!("  {size:>7} policies {measured}");
        }
        let (ours, peer) = (measured[SIZES.len() - 1].median, measured[0].median);
        println!("  without the subtraction the ratio would be {:.2}", (ours + constant) / (peer + constant));
        rows.push(Row {
            bench,
            ours,
            peer,
            peer_name: "the same with 10 policies instead of 100 000".to_owned(),
            unit: "ns/packet",
            target: Target::RatioAtMost(most),
        });
    }
    Ok(rows)
}

/// Policies of the plans with and without blocks.
const BLOCKED_SIZE: usize = 1_000;
const BLOCKED_ROUNDS: usize = 10;

pub(crate) fn run_blocks() -> Result<Vec<Row>> {
    pin()?;
    let blocks = block_flags::ALL & !(block_flags::QUIC | block_flags::IPV6);
    let mut subjects = [Subject::new(BLOCKED_SIZE, 0)?, Subject::new(BLOCKED_SIZE, blocks)?];
    let constant = empty_program()?;
    let known =
        alternate(&mut subjects, BLOCKED_ROUNDS, |subject| Ok(subject.known_flows(KNOWN)? - constant))?;
    let new = alternate(&mut subjects, BLOCKED_ROUNDS, |subject| Ok(subject.new_flows()? - constant))?;
    let rows = [("privacy_flow", &known, 1.15), ("privacy_new", &new, 1.3)];
    Ok(rows
        .into_iter()
        .map(|(bench, measured, most)| Row {
            bench,
            ours: measured[1].median,
            peer: measured[0].median,
            peer_name: "the same plan without blocks".to_owned(),
            unit: "ns/packet",
            target: Target::RatioAtMost(most),
        })
        .collect())
}

/// Returns the constant overhead of the measurement in nanoseconds.
fn empty_program() -> Result<f64> {
    let program = Program::load(Kind::Classifier, &[set(0, 0), exit()]).context("an empty program")?;
    let mut total = 0.0;
    for _ in 0..RUNS {
        total += f64::from(program.time(&[0; 64])?);
    }
    Ok(total / RUNS as f64)
}

impl Subject {
    /// Loads a plan of this many policies, with these blocks for all hosts.
    fn new(size: usize, blocks: u32) -> Result<Self> {
        let pins = Prefix::unique()?.pin_directory();
        let mut programs = Programs::load(&pins)?;
        let mut spread = Spread::new(size)?;
        spread.plan.header.flags |= blocks;
        if blocks & block_flags::DOH != 0 {
            spread.plan.doh_servers = doh_servers::networks().map(|network| (network, 1)).collect();
        }
        programs.apply(&spread.plan)?;
        let mut random = Random(7);
        let flows = (0..KNOWN).map(|flow| spread.packet(&mut random, flow, 40_000)).collect::<Result<_>>()?;
        let mut subject = Self { programs, spread, flows, policies: size, random, next_port: 0, pins };
        subject.check()?;
        Ok(subject)
    }

    /// Checks the subject of the measurement: each packet matches a policy and gets its leg.
    fn check(&mut self) -> Result<()> {
        let program = self.programs.program("gw_ingress")?;
        for packet in self.flows.iter().take(1000) {
            let run = run_once(program, packet, Arrival::default())?;
            ensure!(run.mark == Mark::leg(1).0, "a packet got the mark {:#x}: {packet:02x?}", run.mark);
        }
        Ok(())
    }

    /// Measures the first `count` flows.
    fn known_flows(&mut self, count: usize) -> Result<f64> {
        let flows = &self.flows[..count];
        // Restores flows that were evicted from the table meanwhile.
        for packets in flows.chunks(PART) {
            renew_budgets(&mut self.programs)?;
            let program = self.programs.program("gw_ingress")?;
            for packet in packets {
                run_once(program, packet, Arrival::default())?;
            }
        }
        let mut order: Vec<usize> = (0..RUNS.max(count)).map(|n| n % count).collect();
        self.random.shuffle(&mut order);
        order.truncate(RUNS);
        renew_budgets(&mut self.programs)?;
        let program = self.programs.program("gw_ingress")?;
        let times = order.iter().map(|flow| time(program, &flows[*flow])).collect::<Result<Vec<_>>>()?;
        self.assert_recorded()?;
        mean(&times)
    }

    /// Measures flows without an entry: other hosts, other ports.
    fn new_flows(&mut self) -> Result<f64> {
        self.programs.delete_flows()?;
        let packets = (0..RUNS)
            .map(|_| {
                let policy = self.random.below(self.policies);
                self.next_port = self.next_port.wrapping_add(1);
                self.spread.packet(&mut self.random, policy, self.next_port)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut times = Vec::with_capacity(RUNS);
        for packets in packets.chunks(PART) {
            renew_budgets(&mut self.programs)?;
            let program = self.programs.program("gw_ingress")?;
            for packet in packets {
                times.push(time(program, packet)?);
            }
        }
        self.assert_recorded()?;
        mean(&times)
    }

    /// Checks that every flow so far has a record.
    fn assert_recorded(&self) -> Result<()> {
        let unrecorded = self.programs.unrecorded()?.packets;
        ensure!(unrecorded == 0, "{unrecorded} packets of flows beyond their budget were measured");
        Ok(())
    }
}

/// Empties the budgets that the packets would exceed: that of the unknown hosts, and those of the devices of a small
/// plan, each of which has many flows.
fn renew_budgets(programs: &mut Programs) -> Result<()> {
    let unknown = budget_index(0, Arrival::default().interface);
    for index in (1..=16).chain([unknown]) {
        programs.maps.new_flows.set(index, NewFlows::default())?;
    }
    Ok(())
}

fn time(program: &aya::programs::SchedClassifier, packet: &[u8]) -> Result<f64> {
    Ok(measure(program, packet, Arrival::default(), 1)?.as_nanos() as f64)
}

fn mean(times: &[f64]) -> Result<f64> {
    ensure!(!times.is_empty(), "nothing was measured");
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}
