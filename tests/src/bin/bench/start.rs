//! `start_1000_secrets`: from the start of the daemon until `/health` answers, with a thousand sealed secrets in its
//! store. The peer is the same start with none.
//!
//! Forty of them are keys of enabled tunnels, which the first plan needs; the others are passwords of proxies.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::{AuditTicket, Store};
use gateway_model::registry::kind;
use gateway_tests::daemon::Daemon;
use serde_json::{Value, json};

use crate::road::{Road, Way};
use crate::row::{Row, Target, alternate};

const TUNNELS: usize = 20;
const PROXIES: usize = 960;
const ROUNDS: usize = 5;

pub fn run() -> Result<Vec<Row>> {
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
    Ok(vec![Row {
        bench: "start_1000_secrets",
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "the same start without secrets".to_owned(),
        unit: "s",
        target: Target::OursBelow(2.0),
    }])
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
                kind("tunnel").context("tunnels")?.create(draft, tunnel(n))?;
            }
            for n in 0..PROXIES {
                let proxy = json!({"name": format!("proxy {n}"), "address": "192.0.2.9", "username": "u",
                                   "password": format!("password of {n}")});
                kind("proxy").context("proxies")?.create(draft, proxy)?;
            }
            Ok(())
        })
        .context("store the secrets")?;
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

/// Keys of nobody's: 32 bytes of letters.
fn tunnel(n: usize) -> Value {
    json!({
        "name": format!("exit-{n}"), "type": "wireguard", "addresses": [format!("10.9.{n}.2/32")],
        "private_key": "UGUzZkxPUElZVU5XQ0JTQk5WSVdHWEJSS0dCVE5PUVM=",
        "peers": [{
            "public_key": "NkFPQVZWR0lLQVlFSk9TUVhIWFBZS0hITkhDQlBTV08=",
            "preshared_key": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU=",
            "endpoint": "192.0.2.1:51820", "allowed_ips": ["0.0.0.0/0"],
        }],
    })
}
