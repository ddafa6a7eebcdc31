//! `dhcp_dora`, `dhcp_perfdhcp` and `dhcp_memory`: exchanges of four messages with new clients, by a load of the bench and by
//! perfdhcp, and the memory that their leases take.
//! The peer is Kea with a lease file, in the version of Debian.
//!
//! Each server has a network of its own with a relay on its LAN, which sends the messages of all clients. The servers
//! have one core, the load has the others. The gateway acknowledges a lease when it is on the disk; Kea writes its file
//! without synchronisation. Probes of addresses are off: Kea has none.

mod load;
mod perfdhcp;
mod server;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::cores;

use self::load::CLIENTS_AT_ONCE;
use self::server::{Make, Server};
use crate::row::{Row, Target, alternate};

/// New clients of a round.
const CLIENTS: u32 = 20_000;
/// The last round makes 100 000 leases.
const ROUNDS: usize = 5;
const MIB: f64 = (1 << 20) as f64;

/// A server with the results of its rounds.
struct Subject {
    server: Server,
    resident_before: u64,
    /// Addresses of all clients.
    given: BTreeSet<Ipv4Addr>,
    repeated: u64,
    processor_time: Duration,
}

pub(crate) fn run() -> Result<Vec<Row>> {
    let cores = cores::number()?;
    ensure!(cores >= 2, "a server and its load need a core each, and this machine has one");
    let start = |make| {
        let server = Server::start(make, cores - 1)?;
        let resident_before = server.resident()?;
        let (given, repeated, processor_time) = (BTreeSet::new(), 0, Duration::ZERO);
        Ok(Subject { server, resident_before, given, repeated, processor_time })
    };
    let mut subjects = [Make::Ours, Make::Kea].into_iter().map(start).collect::<Result<Vec<_>>>()?;
    cores::keep_to(&(0..cores - 1).collect::<Vec<_>>()).context("the core of the load")?;
    let measured = alternate(&mut subjects, ROUNDS, Subject::measure)?;
    println!("exchanges/s, {CLIENTS_AT_ONCE} clients at once: median (rounds)");
    for (subject, measured) in subjects.iter().zip(&measured) {
        println!("  {measured}  {}", subject.describe()?);
    }
    let [ours, kea] = &subjects[..] else { unreachable!("two servers") };
    let growth = [ours.growth()?, kea.growth()?];
    drop(subjects);
    // New servers: the leases of the rounds above would fill the gateway's table, which is limited.
    let sustained = |make| Server::start(make, cores - 1)?.sustained_by_perfdhcp();
    let sustained = [sustained(Make::Ours)?, sustained(Make::Kea)?];
    Ok(vec![
        Row {
            bench: "dhcp_dora",
            ours: measured[0].median,
            peer: measured[1].median,
            peer_name: format!("{}, not synchronised", Make::Kea.name()),
            unit: "exchanges/s",
            target: Target::BothAtLeast { ours: 5000.0, ratio: 1.0 },
        },
        Row {
            bench: "dhcp_perfdhcp",
            ours: sustained[0],
            peer: sustained[1],
            peer_name: format!("{}, not synchronised", Make::Kea.name()),
            unit: "exchanges/s",
            target: Target::BothAtLeast { ours: 5000.0, ratio: 1.0 },
        },
        Row {
            bench: "dhcp_memory",
            ours: growth[0],
            peer: growth[1],
            peer_name: Make::Kea.name().to_owned(),
            unit: "MiB for 100 000 leases",
            target: Target::OursBelow(40.0),
        },
    ])
}

impl Subject {
    /// Gets an address for each of the next clients. Returns the exchanges per second.
    fn measure(&mut self) -> Result<f64> {
        let first = u32::try_from(self.given.len())?;
        let used_before = self.server.processor_time()?;
        let load = load::exchange(&self.server.relay, first..first + CLIENTS, &mut self.given)?;
        self.processor_time += self.server.processor_time()?.saturating_sub(used_before);
        self.repeated += load.repeated;
        Ok(load.per_second)
    }

    /// Returns the memory of the leases in MiB.
    fn growth(&self) -> Result<f64> {
        Ok(self.server.resident()?.saturating_sub(self.resident_before) as f64 / MIB)
    }

    fn describe(&self) -> Result<String> {
        let exchanges = self.given.len();
        let microseconds = self.processor_time.as_secs_f64() * 1e6 / exchanges as f64;
        Ok(format!(
            "{}: {microseconds:.1} µs of a core each, {} messages repeated, {:.1} MiB for {exchanges} leases",
            self.server.make.name(),
            self.repeated,
            self.growth()?
        ))
    }
}
