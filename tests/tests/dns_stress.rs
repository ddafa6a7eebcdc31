//! Stress test of the resolver: random and mutated messages over UDP and TCP while clients send valid queries. Nothing
//! panics, resource use is bounded, valid queries are answered, and each query uses the egress of its policy only.
//!
//! `GATEWAY_DNS_STRESS_SECONDS` sets the duration (default 60), `GATEWAY_DNS_STRESS_SEED` reproduces the messages. Needs
//! root.

mod attack;
mod clear;
mod process;

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gateway_tests::dns::{A, Client, Reply, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, LAN_V4, LAN_V6, server};
use gateway_tests::wait::{wait_for, wait_ok, wait_until};
use serde_json::json;

use crate::dns_stress::attack::Attack;
use crate::dns_stress::clear::Clear;
use crate::dns_stress::process::Size;

const SOON: Duration = Duration::from_secs(60);
/// Time in which a client that repeats its query has its answer.
const ANSWERED: Duration = Duration::from_secs(30);
/// Limit of the memory: the cache (32 MiB), the newest log records and allocator overhead.
const MEMORY: u64 = 320 << 20;
/// Limit of the memory growth after the warm-up.
const GROWTH: u64 = 96 << 20;
/// Limit of the descriptors: client connections (1024), pending queries (2048), and the rest.
const DESCRIPTORS: usize = 3500;
/// Limit of additional open descriptors at the end compared with the start.
const LEFT: usize = 24;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Builds a network in which each of the two hosts is bound to a tunnel, so none of their queries may be on the uplink
/// in clear.
fn build() -> (Testbed, Upstream) {
    let mut testbed = Testbed::prepare().expect("scene");
    let upstream = Upstream::start(&testbed.network.internet).expect("upstream");
    // The attack comes from the hosts that send valid queries meanwhile.
    let dns = json!({"upstream_servers": [name_server::ADDRESS], "rate_limit_per_client": 0});
    testbed.daemon.configure(&json!({"dns": dns, "log": {"level": "info"}})).expect("configured");
    testbed.daemon.start().expect("daemon");
    let network = &testbed.network;
    // The counter must see clear queries; without this check the test would prove nothing.
    let clear = Clear::start(&network.internet).expect("a counter");
    let mut asks = Client::of(&network.tv, LAN_V4.into()).expect("a client");
    asks.ask("clear.example", A).expect("an answer");
    assert!(clear.count().expect("a count") > 0);
    for (name, host, exit) in [("a", &network.laptop, &network.exit_a), ("b", &network.tv, &network.exit_b)] {
        testbed.tunnel(name, exit).expect("tunnel");
        let device = testbed.device(host).expect("device");
        testbed.store_policy(&policy(host.name, 10, ("device", &device), &[name])).expect("policy");
    }
    testbed.apply().expect("applied");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    (testbed, upstream)
}

/// A host that sends valid queries.
struct Honest<'a> {
    host: &'a Host,
    exit: IpAddr,
    client: Client,
    asked: u64,
    /// Number of retried queries.
    repeated: u64,
}

impl<'a> Honest<'a> {
    fn new(host: &'a Host, exit: IpAddr, resolver: IpAddr) -> Honest<'a> {
        let client = Client::of(host, resolver).expect("a client");
        Honest { host, exit, client, asked: 0, repeated: 0 }
    }

    /// Queries a new name and checks the answer. The upstream must have seen the query from the egress of the policy
    /// only.
    fn ask(&mut self, upstream: &Upstream) -> Result<()> {
        self.asked += 1;
        let name = format!("h{}.{}.example", self.asked, self.host.name);
        // A failure is cached for a few seconds, and an overloaded machine loses packets of the upstream: clients repeat.
        let mut attempts = 0;
        let answer = wait_until(ANSWERED, &name, || {
            attempts += 1;
            self.client.ask(&name, A).ok().filter(|reply| reply.rcode == 0)
        })?;
        self.repeated += attempts - 1;
        let reply = Reply { rcode: 0, addresses: vec![server(false)] };
        ensure!(answer == reply, "{name}: {answer:?}");
        let askers = upstream.askers(&name);
        ensure!(!askers.is_empty() && askers.iter().all(|asker| *asker == self.exit), "{name}: {askers:?}");
        Ok(())
    }
}

/// Checks that at most `clear` queries left in clear, and returns the size of the daemon.
fn check(testbed: &mut Testbed, clear: u64) -> Result<Size> {
    if let Some(status) = testbed.daemon.ended() {
        anyhow::bail!("the daemon ended: {status}");
    }
    let size = Size::of(testbed.daemon.pid().context("no daemon")?)?;
    ensure!(size.memory < MEMORY, "{size}");
    ensure!(size.descriptors < DESCRIPTORS, "{size}");
    let now = Clear::of(&testbed.network.internet).count()?;
    ensure!(now == clear, "{} questions left in clear", now - clear);
    let counts = testbed.network.tap.counts();
    ensure!(counts.leaked.total() == 0, "{counts}");
    Ok(size)
}

#[test]
fn random_messages_do_no_harm() {
    let length = Duration::from_secs(number("GATEWAY_DNS_STRESS_SECONDS", 60));
    let seed = number("GATEWAY_DNS_STRESS_SEED", std::process::id().into());
    println!("GATEWAY_DNS_STRESS_SEED={seed}");
    let (mut testbed, upstream) = build();
    let network = &testbed.network;
    let (a, b) = (network.exit_a.address(false), network.exit_b.address(false));
    // Names that were cached before the policy existed are not queried again.
    let mut names = 1 << 32;
    wait_ok(SOON, "the policies to have the questions", || {
        names += 1;
        let mut laptop = Honest::new(&network.laptop, a, LAN_V4.into());
        let mut tv = Honest::new(&network.tv, b, LAN_V4.into());
        (laptop.asked, tv.asked) = (names, names);
        laptop.ask(&upstream).and_then(|()| tv.ask(&upstream))
    })
    .expect("by their ways");
    network.settle().expect("silence");
    network.tap.reset();
    let clear = Clear::of(&network.internet).count().expect("a count");
    let before = check(&mut testbed, clear).expect("well");

    let network = &testbed.network;
    let attacks = [
        Attack::udp(&network.laptop, LAN_V4.into(), seed),
        Attack::udp(&network.tv, LAN_V6.into(), seed + 1),
        Attack::tcp(&network.tv, LAN_V4.into(), seed + 2),
        Attack::tcp(&network.laptop, LAN_V6.into(), seed + 3),
    ];
    let started = Instant::now();
    let (mut warm, mut most) = (before, before);
    let mut honest = (0, 0);
    let mut round = 0;
    while started.elapsed() < length {
        let network = &testbed.network;
        let mut hosts = [
            Honest::new(&network.laptop, a, if round % 2 == 0 { LAN_V4.into() } else { LAN_V6.into() }),
            Honest::new(&network.tv, b, LAN_V4.into()),
        ];
        for host in &mut hosts {
            host.asked = round * 10;
            for _ in 0..10 {
                host.ask(&upstream).unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
            }
            honest = (honest.0 + 10, honest.1 + host.repeated);
        }
        drop(hosts);
        round += 1;
        let now = check(&mut testbed, clear).unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        most = most.max(now);
        if started.elapsed() < length / 2 {
            warm = most;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    let sent: Vec<u64> = attacks.iter().map(|attack| attack.sent.load(Ordering::Relaxed)).collect();
    drop(attacks);
    println!(
        "{sent:?} messages and connections, {} questions answered, {} repeated; before {before}; most {most}",
        honest.0, honest.1
    );
    assert!(sent.iter().all(|sent| *sent > 100), "{sent:?}");
    assert!(most.memory < warm.memory + GROWTH, "warm {warm}, most {most}");
    wait_for(SOON, "what was opened to be closed", || {
        check(&mut testbed, clear).is_ok_and(|now| now.descriptors <= before.descriptors + LEFT)
    })
    .unwrap_or_else(|error| panic!("{error}: {:?}", check(&mut testbed, clear)));
    let log = std::fs::read_to_string(testbed.daemon.log_file()).expect("its log");
    assert!(!log.contains("panicked"), "{}", testbed.daemon.last_words());
    let status = testbed.api().get("/dns/status").expect("status");
    println!("{status}");
    assert_eq!(status["running"], true);
    testbed.network.settle().expect("silence");
    check(&mut testbed, clear).expect("nothing in clear to the end");
}
