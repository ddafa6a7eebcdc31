//! Userspace WireGuard: a tunnel with the same implementation at both ends, on all cores.
//!
//! `wireguard_vs_wireguard_go` is one TCP stream, `wireguard_small` a flood of small datagrams, counted on arrival; the
//! peer is Debian's wireguard-go. `wireguard_newest_*` compare with a newer one, in both directions.

mod newest;
mod pair;

use anyhow::Result;

use self::newest::Program;
use self::pair::{Direction, Load, Make, Pair};
use crate::row::{Measured, Row, Target, alternate};

const ROUNDS: usize = 3;

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut pairs = [Pair::build(Make::Ours)?, Pair::build(Make::WireguardGo("wireguard-go".into()))?];
    let loads = [(Load::Streams(1), 3.0), (Load::Datagrams, 1.0)];
    let mut rows = Vec::new();
    for ((load, least), bench) in loads.into_iter().zip(["wireguard_vs_wireguard_go", "wireguard_small"]) {
        let measured = measure(&mut pairs, load, Direction::Up)?;
        rows.push(row(bench, load, &measured, "Debian's wireguard-go", least));
    }
    Ok(rows)
}

/// The rows against the newer wireguard-go, in the order of [`NEWEST`].
pub(crate) const NEWEST_ROWS: &[&str] = &[
    "wireguard_newest_tcp_1_up",
    "wireguard_newest_tcp_1_down",
    "wireguard_newest_tcp_4_up",
    "wireguard_newest_tcp_4_down",
    "wireguard_newest_small_up",
    "wireguard_newest_small_down",
];
const NEWEST: [(Load, Direction); 6] = [
    (Load::Streams(1), Direction::Up),
    (Load::Streams(1), Direction::Down),
    (Load::Streams(4), Direction::Up),
    (Load::Streams(4), Direction::Down),
    (Load::Datagrams, Direction::Up),
    (Load::Datagrams, Direction::Down),
];

/// Measures the selected rows. Without a newer wireguard-go it says so and returns none.
pub(crate) fn run_newest(wanted: &[&str]) -> Result<Vec<Row>> {
    let Some(Program { path, version }) = newest::find()? else { return Ok(Vec::new()) };
    println!("the peer is {}, wireguard-go {version}", path.display());
    let mut pairs = [Pair::build(Make::Ours)?, Pair::build(Make::WireguardGo(path))?];
    let mut rows = Vec::new();
    for (bench, (load, direction)) in NEWEST_ROWS.iter().copied().zip(NEWEST) {
        if wanted.contains(&bench) {
            let measured = measure(&mut pairs, load, direction)?;
            rows.push(row(bench, load, &measured, &format!("wireguard-go {version}"), 1.1));
        }
    }
    Ok(rows)
}

fn measure(pairs: &mut [Pair], load: Load, direction: Direction) -> Result<Vec<Measured>> {
    let measured = alternate(pairs, ROUNDS, |pair| pair.rate(load, direction))?;
    println!("{load}, {direction}, {}: median (rounds)", load.unit());
    for (pair, measured) in pairs.iter().zip(&measured) {
        println!("  {measured}  {}", pair.make());
    }
    Ok(measured)
}

fn row(bench: &'static str, load: Load, measured: &[Measured], peer: &str, least: f64) -> Row {
    Row {
        bench,
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: peer.to_owned(),
        unit: load.unit(),
        target: Target::RatioAtLeast(least),
    }
}
