//! `fastpath_*`: small packets per second of one core with the fast path and 10 000 policies, beside the kernel's own
//! path.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::flows::Flows;
use crate::row::{Row, Target, alternate};
use crate::topology::{Road, Way};

const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_millis(800);
const POLICIES: usize = 10_000;
/// Flows of `fastpath_100k`. Their entries, two each, fit into the table.
const MANY: u32 = 100_000;
const MILLION: f64 = 1e6;
const UNIT: &str = "Mpackets/s on one core";

pub(crate) fn run(rows: &[&str]) -> Result<Vec<Row>> {
    let benches = [
        ("fastpath_1", Flows::One, 1.4),
        ("fastpath_1k", Flows::Thousand, 1.4),
        ("fastpath_100k", Flows::Rotation(MANY), 2.0),
        ("fastpath_v6_1k", Flows::ThousandIpv6, 1.4),
    ];
    let mut measured_rows = Vec::new();
    for (bench, flows, least) in benches.into_iter().filter(|(bench, ..)| rows.contains(bench)) {
        measured_rows.push(measure(bench, flows, least).with_context(|| bench.to_owned())?);
    }
    Ok(measured_rows)
}

fn measure(bench: &'static str, flows: Flows, least: f64) -> Result<Row> {
    let mut ways = vec![Way::FastPath { policies: POLICIES }, Way::Masquerade];
    // Entries of many flows are not used meanwhile, so fewer subjects are better.
    if !flows.has_hosts() {
        ways.extend([Way::Ours { policies: POLICIES }, Way::Plain]);
    }
    let mut roads = Vec::new();
    for way in ways {
        let road = Road::build_for(way, flows)?;
        if flows.has_hosts() {
            road.establish().with_context(|| format!("{way:?}"))?;
        }
        roads.push(road);
    }
    let measured = alternate(&mut roads, ROUNDS, |road| match road.way {
        Way::Plain => Ok(road.measure(TIME)?.arrived / MILLION),
        _ => Ok(road.measure_masked(TIME)? / MILLION),
    })?;
    println!("million packets per second of one core: median (rounds)");
    for (road, measured) in roads.iter().zip(&measured) {
        println!("  {measured}  {:?}", road.way);
    }
    let status = fast_path_status(&roads[0])?;
    let count = |name: &str| status[name].as_f64().with_context(|| format!("{name} in {status}"));
    println!("  {status}");
    let share = count("share_pct")?;
    ensure!(share > 70.0, "only {share} % of the packets passed the IP stack by");
    Ok(Row {
        bench,
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "forwarding with conntrack and masquerade".to_owned(),
        unit: UNIT,
        target: Target::RatioAtLeast(least),
    })
}

/// `fastpath_xdp_*`: the fast path in the driver, with equal ends.
pub(crate) fn run_xdp(rows: &[&str]) -> Result<Vec<Row>> {
    let benches = [("fastpath_xdp_1k", Flows::Thousand), ("fastpath_xdp_100k", Flows::Rotation(MANY))];
    let mut measured_rows = Vec::new();
    for (bench, flows) in benches.into_iter().filter(|(bench, _)| rows.contains(bench)) {
        measured_rows.push(measure_xdp(bench, flows).with_context(|| bench.to_owned())?);
    }
    Ok(measured_rows)
}

fn measure_xdp(bench: &'static str, flows: Flows) -> Result<Row> {
    let mut roads = Vec::new();
    for way in [Way::Xdp { policies: POLICIES }, Way::MasqueradeFromLink] {
        let road = Road::build_for(way, flows)?;
        if flows.has_hosts() {
            road.establish().with_context(|| format!("{way:?}"))?;
        }
        roads.push(road);
    }
    let before = forwarded(&roads[0])?;
    let measured = alternate(&mut roads, ROUNDS, |road| Ok(road.measure_masked(TIME)? / MILLION))?;
    println!("million packets per second of one core: median (rounds)");
    for (road, measured) in roads.iter().zip(&measured) {
        println!("  {measured}  {:?}", road.way);
    }
    println!("  {}", fast_path_status(&roads[0])?);
    let after = forwarded(&roads[0])?;
    let share = (after.in_driver - before.in_driver) / (after.all - before.all);
    ensure!(share > 0.99, "only {share} of the packets left in the driver");
    Ok(Row {
        bench,
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "forwarding with conntrack and masquerade, the same ends".to_owned(),
        unit: UNIT,
        target: Target::RatioAtLeast(2.0),
    })
}

/// Packets that the fast path has forwarded, and those of them that left in the driver.
struct Forwarded {
    all: f64,
    in_driver: f64,
}

fn forwarded(road: &Road) -> Result<Forwarded> {
    let status = fast_path_status(road)?;
    let count = |name: &str| status[name].as_f64().with_context(|| format!("{name} in {status}"));
    Ok(Forwarded { all: count("forwarded_packets")?, in_driver: count("xdp_packets")? })
}

fn fast_path_status(road: &Road) -> Result<Value> {
    let status = road.daemon.as_ref().context("a daemon")?.api().get("/status")?;
    Ok(status["fast_path"].clone())
}
