//! `start_empty`: time from the start of the daemon until `/health` answers. `start_1000_secrets`: the same with a
//! thousand sealed secrets in its store. Each is the peer of the other.
//!
//! Forty of them are keys of enabled tunnels, which the first plan needs. The others are passwords of proxies and keys
//! of disabled tunnels with many peers.

use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::{AuditTicket, Store};
use gateway_model::registry::kind;
use gateway_tests::daemon::Daemon;
use serde_json::{Value, json};

use crate::row::{Row, Target, alternate};
use crate::topology::{Road, Way};

const TUNNELS: usize = 20;
const PROXIES: usize = 240;
/// Number of disabled tunnels. Each has its own key and those of its peers.
const DISABLED: usize = 20;
const PEERS: usize = 35;
const ROUNDS: usize = 5;

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut with = Road::build(Way::Ours { policies: 1 })?;
    let mut without = Road::build(Way::Ours { policies: 1 })?;
    for road in [&mut with, &mut without] {
        daemon(road)?.terminate()?;
    }
    fill(daemon(&mut with)?)?;
    let measured = alternate(&mut [with, without], ROUNDS, |road| {
        let daemon = daemon(road)?;
        let started = Instant::now();
        daemon.start()?;
        let taken = started.elapsed();
        daemon.terminate()?;
        Ok(taken.as_secs_f64())
    })?;
    println!("start, s: median (rounds)\n  {}  1 000 secrets\n  {}  none", measured[0], measured[1]);
    let row = |bench, ours, peer, peer_name: &str, below| Row {
        bench,
        ours,
        peer,
        peer_name: peer_name.to_owned(),
        unit: "s",
        target: Target::OursBelow(below),
    };
    let [with, without] = [measured[0].median, measured[1].median];
    Ok(vec![
        row("start_empty", without, with, "the same start with 1 000 secrets", 0.3),
        row("start_1000_secrets", with, without, "the same start without secrets", 0.6),
    ])
}

fn daemon(road: &mut Road) -> Result<&mut Daemon> {
    road.daemon.as_mut().context("a daemon")
}

fn fill(daemon: &Daemon) -> Result<()> {
    let path = daemon.state_directory().join("store.redb");
    let store = Store::open(&path, SystemClock::shared()).context("the store")?;
    let started = Instant::now();
    let ticket = AuditTicket::system("create_tunnels", "tunnel");
    store
        .commit(ticket, |draft| -> Result<()> {
            for n in 0..TUNNELS {
                kind("tunnel").context("tunnels")?.create(draft, tunnel(n, true, 1))?;
            }
            for n in TUNNELS..TUNNELS + DISABLED {
                kind("tunnel").context("tunnels")?.create(draft, tunnel(n, false, PEERS))?;
            }
            for n in 0..PROXIES {
                let proxy = json!({"name": format!("proxy-{n}"), "address": "192.0.2.9", "username": "u",
                                   "password": format!("password of {n}")});
                kind("proxy").context("proxies")?.create(draft, proxy)?;
            }
            Ok(())
        })
        .map_err(|error| anyhow!("store the secrets: {error:?}"))?;
    let status = store.secrets_status();
    ensure!(
        (status.total, status.sealed) == (1000, 1000),
        "{} of {} are sealed",
        status.sealed,
        status.total
    );
    println!("  1 000 secrets were sealed in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Returns a tunnel with test keys: 32 bytes of letters and digits.
fn tunnel(n: usize, enabled: bool, peers: usize) -> Value {
    let key = |kind: char, peer: usize| BASE64_STANDARD.encode(format!("{kind}{n:0>15}{peer:0>16}"));
    let peer = |peer: usize| {
        json!({
            "public_key": key('P', peer), "preshared_key": key('S', peer),
            "endpoint": "192.0.2.1:51820", "allowed_ips": [format!("10.8.{peer}.0/24")],
        })
    };
    json!({
        "name": format!("exit-{n}"), "type": "wireguard", "addresses": [format!("10.9.{n}.2/32")],
        "enabled": enabled, "private_key": key('K', 0), "peers": (0..peers).map(peer).collect::<Vec<_>>(),
    })
}
