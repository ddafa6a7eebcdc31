//! `apply_10k`: from 10 000 stored policies to an active plan in which every one of them is new. It compiles, compares
//! with the active plan, writes and swaps.
//!
//! The peer replaces as many nftables rules, each of which sets a mark by source.
//!
//! `apply_one_10k`: the path of a user, one of 10 000 policies changed and applied through the REST API. The peer is the
//! same with 10 policies.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use gateway_core::compile::{Input, compile};
use gateway_core::facts::{DefaultRoute, Facts, Link};
use gateway_core::network::{Network, UplinkSettings};
use gateway_ctl::os::bpf::Programs;
use gateway_model::State;
use gateway_tests::netns::{Namespace, Prefix, remove_pins};
use jiff::Timestamp;

use crate::policies::create_policies;
use crate::row::{Row, Target, alternate, median};
use crate::topology::{Road, Way};

const POLICIES: usize = 10_000;
const ROUNDS: usize = 7;

pub(crate) fn run(rows: &[&str]) -> Result<Vec<Row>> {
    let mut measured = Vec::new();
    if rows.contains(&"apply_10k") {
        measured.push(all_new()?);
    }
    if rows.contains(&"apply_one_10k") {
        measured.push(through_the_api()?);
    }
    Ok(measured)
}

fn all_new() -> Result<Row> {
    let prefix = Prefix::unique()?;
    let pins = prefix.pin_directory();
    let outcome = measure(&prefix, &pins);
    remove_pins(&pins);
    let (row, [compiling, applying]) = outcome?;
    println!("ms: compile {compiling:.1}, compare + write + swap {applying:.1}; peer {:.1}", row.peer);
    Ok(row)
}

fn measure(prefix: &Prefix, pins: &std::path::Path) -> Result<(Row, [f64; 2])> {
    let namespace = Namespace::create(prefix, "nft")?;
    let mut programs = Programs::load(pins)?;
    let (mut compiling, mut applying, mut ours, mut peer) = (vec![], vec![], vec![], vec![]);
    let (network, facts) = world();
    for round in 0..ROUNDS {
        let now = Timestamp::now();
        let mut state = State::new(now).begin(now);
        create_policies(&mut state, POLICIES, round, "wan0")?;
        state.freeze_applied();

        let started = Instant::now();
        let compiled = compile(&Input { state: &state, network: &network, facts: &facts, now });
        compiling.push(milliseconds(started));
        ensure!(compiled.plan.dataplane.sources.len() == POLICIES, "the plan has not all policies");
        let swapping = Instant::now();
        let swap = programs.apply(&compiled.plan.dataplane)?;
        applying.push(milliseconds(swapping));
        ours.push(milliseconds(started));
        ensure!(swap.changed && swap.puts >= POLICIES, "{swap:?}");

        let rules = rules(round)?;
        let started = Instant::now();
        namespace.nft(&rules)?;
        peer.push(milliseconds(started));
    }
    let row = Row {
        bench: "apply_10k",
        ours: median(&ours),
        peer: median(&peer),
        peer_name: "nft -f of 10 000 rules in place of others".to_owned(),
        unit: "ms",
        target: Target::OursBelow(1000.0),
    };
    Ok((row, [median(&compiling), median(&applying)]))
}

fn through_the_api() -> Result<Row> {
    let many = Road::build(Way::Ours { policies: POLICIES })?;
    let few = Road::build(Way::Ours { policies: 10 })?;
    let (mut round, mut editing) = (0, vec![]);
    let applied = alternate(&mut [(many, true), (few, false)], ROUNDS, |(road, is_many)| {
        let daemon = road.daemon.as_ref().context("a daemon")?;
        let policy = road.policy.as_ref().context("a policy")?;
        round += 1;
        let changed = crate::policies::subnet_policy("host", 900_000, &format!("10.77.{round}.0/24"), "eth0");
        let started = Instant::now();
        daemon.api().put(&format!("/routing/policies/{policy}"), &changed)?;
        if *is_many {
            editing.push(milliseconds(started));
        }
        let started = Instant::now();
        daemon.api().act("/routing/policies/apply")?;
        Ok(milliseconds(started))
    })?;
    println!("one of 10 000 policies changed, ms: PUT {:.1}; apply: median (rounds)", median(&editing));
    println!("  {}  10 000 policies\n  {}  10", applied[0], applied[1]);
    Ok(Row {
        bench: "apply_one_10k",
        ours: applied[0].median,
        peer: applied[1].median,
        peer_name: "the same with 10 policies".to_owned(),
        unit: "ms",
        target: Target::OursBelow(100.0),
    })
}

fn rules(round: usize) -> Result<String> {
    let mut text = String::from("table ip peer {\n}\nflush table ip peer\ntable ip peer {\nchain marks {\n");
    text.push_str("type filter hook prerouting priority mangle\n");
    for number in 0..POLICIES {
        let [_, _, high, low] = u32::try_from(number)?.to_be_bytes();
        writeln!(text, "ip saddr {}.{high}.{low}.0/24 meta mark set {}", 64 + round, number % 16 + 1)?;
    }
    text.push_str("}\n}\n");
    Ok(text)
}

/// Builds a LAN and an uplink that is up.
fn world() -> (Network, Facts) {
    let network = Network {
        lan: vec!["lan0".to_owned()],
        uplinks: vec![UplinkSettings { interface: "wan0".to_owned(), ..UplinkSettings::default() }],
        sample_every: 0,
        fast_path: false,
        xdp: Default::default(),
        ..Network::default()
    };
    let mut facts = Facts::default();
    for (index, name) in (2u32..).zip(["lan0", "wan0"]) {
        facts.links.insert(name.to_owned(), Link { index, up: true, mtu: 1500, ..Link::default() });
    }
    let gateway = std::net::Ipv4Addr::new(203, 0, 113, 1).into();
    let route =
        DefaultRoute { interface: "wan0".to_owned(), gateway: Some(gateway), metric: 100, ipv6: false };
    facts.default_routes.push(route);
    (network, facts)
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}
