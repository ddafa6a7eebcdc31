//! `new_flows_10k`: new flows per second of one core with 10 000 policies. `flood`: what a flood of random flows from one
//! host leaves of the established flows of other hosts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::conntrack;
use crate::flows::Flows;
use crate::generator::Extent;
use crate::row::{Row, Target, alternate};
use crate::topology::{Road, Way};

const ROUNDS: usize = 5;
const POLICIES: usize = 10_000;
/// New flows of a round. With those before it, they fit into the table of conntrack, and all rounds into the budgets of
/// the devices.
const NEW: u32 = 65_536;
const MILLION: f64 = 1e6;

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut roads = Vec::new();
    for way in [Way::FastPath { policies: POLICIES }, Way::Masquerade, Way::Ours { policies: POLICIES }] {
        roads.push(Road::build_for(way, Flows::New)?);
    }
    conntrack::require_entries(&roads[0].gateway, 2 * NEW)?;
    let measured = alternate(&mut roads, ROUNDS, |road| {
        conntrack::flush(&road.gateway)?;
        Ok(road.measure_masked_for(Extent::Packets(NEW))? / MILLION)
    })?;
    println!("million new flows per second of one core: median (rounds)");
    for (road, measured) in roads.iter().zip(&measured) {
        println!("  {measured}  {:?}", road.way);
    }
    Ok(vec![Row {
        bench: "new_flows_10k",
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "forwarding with conntrack and masquerade".to_owned(),
        unit: "million new flows/s on one core",
        target: Target::RatioAtLeast(0.8),
    }])
}

/// Established flows of the hosts.
const ESTABLISHED: u32 = 1_000;
/// Packets of these flows per second. The flood has as many.
const PACKETS_PER_SECOND: u32 = 100_000;
/// Time in which the flood has a million flows.
const FLOOD_TIME: Duration = Duration::from_secs(10);
const FLOOD_ROUNDS: usize = 2;

pub(crate) fn run_flood() -> Result<Vec<Row>> {
    let (calm, flooded) = (Flows::Rotation(ESTABLISHED), Flows::Flooded(ESTABLISHED));
    let mut roads = Vec::new();
    for way in [Way::FastPath { policies: POLICIES }, Way::Masquerade] {
        let road = Road::build_for(way, calm)?;
        road.establish().with_context(|| format!("{way:?}"))?;
        roads.push(road);
    }
    // Each gateway without the flood and with it.
    let mut subjects = [(0, calm), (0, flooded), (1, calm), (1, flooded)];
    let measured = alternate(&mut subjects, FLOOD_ROUNDS, |(road, flows)| {
        let road = &mut roads[*road];
        road.set_flows(*flows)?;
        let packets = if *flows == flooded { 2 * PACKETS_PER_SECOND } else { PACKETS_PER_SECOND };
        let (due, counts) = road.measure_at(packets, FLOOD_TIME)?;
        println!("  {due} due, {counts:?}, {flows:?}, {:?}", road.way);
        let masked = counts.masqueraded as f64 > 0.99 * counts.arrived as f64;
        ensure!(masked, "{:?} lets packets out unmasked: {counts:?}", road.way);
        Ok(counts.rotated as f64 / FLOOD_TIME.as_secs_f64())
    })?;
    println!("packets per second of established flows: median (rounds)");
    for ((road, flows), measured) in subjects.iter().zip(&measured) {
        println!("  {measured}  {:?}, {flows:?}", roads[*road].way);
    }
    Ok(vec![Row {
        bench: "flood",
        ours: measured[1].median,
        peer: measured[0].median,
        peer_name: "the gateway without the flood".to_owned(),
        unit: "packets/s of established flows",
        target: Target::RatioAtLeast(0.9),
    }])
}
