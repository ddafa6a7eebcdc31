//! `dns_blocked`, `dns_cached`, `dns_mix`, `dns_once`: three results for each resolver:
//!
//! * the processor time of a query at a rate that all resolvers sustain
//! * the queries per second of one core
//! * the 99th percentile of the latency at a rate without congestion
//!
//! The processor time is the utilisation of the resolver's core, so it includes the kernel's share; see
//! [`super::testbed`]. It also includes other activity of the machine, so the bench prints the utilisation of the core
//! before each load. Queries per second refer to a whole core: if dnsperf cannot saturate it, the bench divides the
//! number of answers by the utilisation.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gateway_tests::cores;

use super::load::{ask, slowest};
use super::names::{Kind, Phase, Questions};
use super::server::{Server, Whose};
use super::testbed::{ANSWER, Cores, NULL};
use super::{LISTED, best, less, more, publisher};
use crate::row::{Measured, Row, Target, median};

const ROUNDS: usize = 5;
/// Queries per second that all resolvers sustain.
const FIXED: u32 = 40_000;
/// Queries per second without congestion.
const CALM: u32 = 10_000;
/// Duration of a load in seconds.
const LENGTH: u32 = 2;
const WARM: u32 = 1;
const BEFORE: Duration = Duration::from_millis(300);
/// Utilisation of the core without load that a quiet machine may have, in per cent.
const QUIET: f64 = 3.0;
/// Number of names of each kind that are checked before each load.
const LOOKED_AT: usize = 20;

/// Results of one resolver in one round.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Processor time of each answer in microseconds.
    cost: f64,
    /// Share of the program itself in the processor time.
    own: f64,
    /// Answers per second at the maximum rate of one client.
    fast: f64,
    /// The same extrapolated to a fully used core.
    rate: f64,
    /// 99th percentile of the latency in microseconds.
    slowest: f64,
    /// Utilisation of the core without a load.
    beside: f64,
    /// Share of the answers at the fixed rate that came from the dataplane's packet cache. Peers have none.
    by_kernel: f64,
}

pub(crate) fn run(wanted: &[&str]) -> Result<Vec<Row>> {
    let cores = Cores::split()?;
    let questions = Questions::write(LISTED)?;
    let servers: Vec<Server> =
        Whose::all().map(|whose| start(whose, &cores, &questions)).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| wanted.contains(&kind.bench())) {
        let mut all = vec![Vec::new(); servers.len()];
        for _ in 0..ROUNDS {
            for (server, figures) in servers.iter().zip(&mut all) {
                let measured = measure(server, &cores, &questions, kind);
                figures
                    .push(measured.with_context(|| format!("{} of {}", kind.bench(), server.whose.name()))?);
            }
        }
        rows.extend(compare(kind, &all)?);
    }
    Ok(rows)
}

/// Starts a resolver with the list, fills its cache with all names of the load, and suspends it.
fn start(whose: Whose, cores: &Cores, questions: &Questions) -> Result<Server> {
    let mut server = Server::prepare(whose, cores, true)?;
    let taken = match whose {
        Whose::Ours => {
            publisher::start(&server.testbed.gateway, cores.load.clone(), &[LISTED])?;
            server.start(0)?;
            server.subscribe(LISTED)?
        }
        Whose::Peer(_) => server.start(LISTED)?,
    };
    println!("  {:14} has {LISTED} domains after {:.1} s", whose.name(), taken.as_secs_f64());
    server.warm(&questions.blocked, &questions.passing)?;
    server.hold_still(true)?;
    Ok(server)
}

fn measure(server: &Server, cores: &Cores, questions: &Questions, kind: Kind) -> Result<Figures> {
    server.hold_still(false)?;
    let some =
        |names: &'_ [String]| names.iter().step_by(names.len() / LOOKED_AT).cloned().collect::<Vec<_>>();
    for (names, wanted) in [(&questions.blocked, NULL), (&questions.passing, ANSWER)] {
        server.testbed.check(some(names).iter().map(String::as_str), wanted)?;
    }
    let (lan, pid) = (&server.testbed.lan, server.pid()?);
    let file = |phase| questions.file(kind, phase);
    // At full speed the load would run out of names that were not queried before.
    let warmly = (kind == Kind::Once).then_some(FIXED);
    ask(lan, cores, &file(Phase::Warm), warmly, WARM)?;
    let watch = Watch::start(cores)?;
    std::thread::sleep(BEFORE);
    let beside = watch.busy()?.1;
    let by_kernel = server.answered_by_kernel()?;
    let (watch, used) = (Watch::start(cores)?, cores::used_by(pid)?);
    let fixed = ask(lan, cores, &file(Phase::Fixed), Some(FIXED), LENGTH)?;
    let (busy, used) = (watch.busy()?.0, cores::used_by(pid)?.saturating_sub(used));
    let by_kernel = (server.answered_by_kernel()? - by_kernel) as f64 / fixed.answered as f64;
    let watch = Watch::start(cores)?;
    let fast = ask(lan, cores, &file(Phase::Fast), None, LENGTH)?;
    let full = watch.busy()?.1;
    let slowest = slowest(lan, cores, &file(Phase::Calm), CALM, LENGTH)?;
    server.hold_still(true)?;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / fixed.answered as f64;
    let (fast, rate) = (fast.per_second, fast.per_second / full);
    Ok(Figures { cost: each(busy), own: each(used), fast, rate, slowest, beside, by_kernel })
}

/// Utilisation of the resolver's core from the start of the measurement.
struct Watch {
    core: usize,
    since: Instant,
    idle: Duration,
}

impl Watch {
    fn start(cores: &Cores) -> Result<Self> {
        Ok(Self { core: cores.resolver, since: Instant::now(), idle: cores::idle(cores.resolver)? })
    }

    /// Returns the elapsed time and the utilisation as a share.
    fn busy(&self) -> Result<(Duration, f64)> {
        let (passed, idle) = (self.since.elapsed(), cores::idle(self.core)?.saturating_sub(self.idle));
        let busy = passed.saturating_sub(idle);
        Ok((busy, busy.as_secs_f64() / passed.as_secs_f64()))
    }
}

fn compare(kind: Kind, all: &[Vec<Figures>]) -> Result<Vec<Row>> {
    let of = |figure: fn(&Figures) -> f64| -> Vec<Measured> {
        let values = all.iter().map(|rounds| rounds.iter().map(figure).collect::<Vec<f64>>());
        values.map(|values| Measured { median: median(&values), values }).collect()
    };
    let (cost, rate, slowest) = (of(|one| one.cost), of(|one| one.rate), of(|one| one.slowest));
    let (own, fast, beside) = (of(|one| one.own), of(|one| one.fast), of(|one| one.beside));
    let by_kernel = of(|one| one.by_kernel);
    let names: Vec<&str> = Whose::all().map(Whose::name).collect();
    println!("{}: median (rounds)", kind.bench());
    for (index, name) in names.iter().enumerate() {
        println!("  {name}");
        println!("    {}  µs of its core a question at {FIXED}/s", cost[index]);
        println!("    {}  of them in the program's own time", own[index]);
        println!("    {}  questions/s of a whole core", rate[index]);
        println!("    {}  questions/s to one who asks as fast as answers come", fast[index]);
        println!("    {}  µs for 99 in 100 at {CALM}/s", slowest[index]);
        if index == 0 {
            println!("    {}  of its answers were given by the dataplane", by_kernel[index]);
        }
    }
    let beside = median(&beside.iter().map(|measured| measured.median).collect::<Vec<f64>>()) * 100.0;
    println!("  the core was busy with other things for {beside:.1} % of the time before the loads");
    if beside > QUIET {
        println!("  which is too much: all of it is in the figures");
    }
    let row = |measured: &[Measured], better, unit, target| -> Result<Row> {
        let peer = best(measured, better).context("no peers")?;
        Ok(Row {
            bench: kind.bench(),
            ours: measured[0].median,
            peer: measured[peer].median,
            peer_name: names[peer].to_owned(),
            unit,
            target,
        })
    };
    let (most, least) = match kind {
        Kind::Blocked => (0.32, 1.5),
        Kind::Cached => (0.26, 1.5),
        Kind::Mix => (0.6, 1.5),
        Kind::Once => (0.6, 3.0),
    };
    Ok(vec![
        row(&cost, less, "µs of CPU a question", Target::RatioAtMost(most))?,
        row(&rate, more, "questions/s of a core", Target::RatioAtLeast(least))?,
        row(&slowest, less, "µs for 99 in 100 at 10 000/s", Target::RatioAtMost(1.0))?,
    ])
}
