//! `dns_load`: time from the start, or from the subscription, until the last of a million domains is blocked.
//! `dns_memory`: memory that the domains take.

use std::time::Duration;

use anyhow::{Context, Result};

use super::server::{Server, Whose};
use super::testbed::Cores;
use super::{LISTED, best, less, publisher};
use crate::row::{Measured, Row, Target, median};

const ROUNDS: usize = 3;
const MANY: usize = 3_000_000;
const MIB: f64 = 1024.0 * 1024.0;
/// Wait in which temporary memory is freed.
const SETTLED: Duration = Duration::from_secs(2);

/// Results of one resolver in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Seconds from the start of the process.
    start: f64,
    /// Seconds from the subscription, or from a start where there is no subscription.
    order: f64,
    /// Additional bytes compared with no list.
    growth: f64,
}

pub(crate) fn run(wanted: &[&str]) -> Result<Vec<Row>> {
    let cores = Cores::split()?;
    let mut servers: Vec<Server> =
        Whose::all().map(|whose| Server::prepare(whose, &cores, false)).collect::<Result<_>>()?;
    publisher::start(&servers[0].testbed.gateway, cores.load, &[LISTED, MANY])?;
    let mut all = vec![Vec::new(); servers.len()];
    for _ in 0..ROUNDS {
        for (server, figures) in servers.iter_mut().zip(&mut all) {
            let measured = measure(server, LISTED);
            figures.push(measured.with_context(|| format!("the list of {}", server.whose.name()))?);
        }
    }
    let of = |figure: fn(&Figures) -> f64| -> Vec<Measured> {
        let values = all.iter().map(|rounds| rounds.iter().map(figure).collect::<Vec<f64>>());
        values.map(|values| Measured { median: median(&values), values }).collect()
    };
    let (start, order) = (of(|one| one.start), of(|one| one.order));
    let growth = of(|one| one.growth / LISTED as f64);
    println!("{LISTED} domains: median (rounds)");
    for (index, server) in servers.iter().enumerate() {
        println!("  {}", server.whose.name());
        println!("    {}  s from the start", start[index]);
        if server.whose == Whose::Ours {
            println!("    {}  s from the order", order[index]);
        }
        println!("    {}  bytes a domain", growth[index]);
    }
    let row = |bench, ours: &Measured, measured: &[Measured], how, unit, target| -> Result<Row> {
        let peer = best(measured, less).context("no peers")?;
        let peer_name = format!("{}{how}", servers[peer].whose.name());
        Ok(Row { bench, ours: ours.median, peer: measured[peer].median, peer_name, unit, target })
    };
    let (second, least) = (Target::OursBelow(1.0), Target::OursBelow(24.0));
    let mut rows = vec![
        row("dns_load", &order[0], &start, " at its start, ours from the request to subscribe", "s", second)?,
        row("dns_load", &start[0], &start, " at its start, as ours", "s", second)?,
        row("dns_memory", &growth[0], &growth, "", "bytes a domain", least)?,
    ];
    if wanted.contains(&"dns_memory") {
        let thrifty = best(&growth, less).context("no peers")?;
        let ours = measure(&mut servers[0], MANY)?;
        let peer = measure(&mut servers[thrifty], MANY)?;
        println!("{MANY} domains: ours {ours:.1?}, {} {peer:.1?}", servers[thrifty].whose.name());
        rows.push(Row {
            bench: "dns_memory",
            ours: ours.growth / MIB,
            peer: peer.growth / MIB,
            peer_name: servers[thrifty].whose.name().to_owned(),
            unit: "MiB for 3 000 000 domains",
            target: Target::OursBelow(96.0),
        });
    }
    Ok(rows)
}

/// Measures from an empty list to `blocked` domains and back.
fn measure(server: &mut Server, blocked: usize) -> Result<Figures> {
    server.start(0)?;
    let without = settled(server)?;
    let mut figures = Figures::default();
    let mut with = 0;
    if server.whose == Whose::Ours {
        figures.order = server.subscribe(blocked)?.as_secs_f64();
        with = settled(server)?;
    }
    server.stop()?;
    figures.start = server.start(blocked)?.as_secs_f64();
    // A list that was loaded at run time may retain memory that was used to read it.
    with = with.max(settled(server)?);
    server.unsubscribe()?;
    server.stop()?;
    figures.growth = with as f64 - without as f64;
    Ok(figures)
}

fn settled(server: &Server) -> Result<u64> {
    std::thread::sleep(SETTLED);
    server.resident()
}
