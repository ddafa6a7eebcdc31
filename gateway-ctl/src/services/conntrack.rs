//! Fair use of the conntrack table.
//!
//! A host with a server that cooperates fills the table in seconds, with entries that the kernel keeps for hours. Then no
//! other host can connect, nor can this host. So when the table fills, the LAN hosts are cut to their fair shares of a part
//! of it ([`gateway_core::fair_share`]): the largest holders lose the entries that would end first. Decision 0132 says
//! why.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use gateway_core::fair_share::shares;
use gateway_core::host_paths::{HostPath, HostPaths};
use gateway_model::kinds::alert_rule::AlertKind;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::os::bpf::EpochChange;
use crate::os::bridge_ports;
use crate::os::conntrack::usage::{self, HeldEntry, Level};
use crate::service::Context;
use crate::supervise::blocking;
use crate::world::World;

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Share of the limit, in percent, at which LAN hosts are cut. A host adds some 20 000 entries a second, so with the default
/// limit there are seconds left.
const HIGH_PERCENT: usize = 70;
/// Share of the limit that the entries of all LAN hosts keep then. The rest is for this host and for newcomers.
const LAN_PERCENT: usize = 50;
/// Time without a cut after which the alert ends.
const CALM: Duration = Duration::from_secs(60);
/// Pause after a failure to read or to cut.
const RETRY: Duration = Duration::from_secs(2);
const ALERT: AlertKind = AlertKind::ConntrackFull;
const SUBJECT: &str = "conntrack";

/// Runs until it is aborted.
pub(crate) async fn run(context: Context) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // An alert of the last run ends when this one has been calm.
    let mut last_cut: Option<Instant> = Some(Instant::now());
    loop {
        ticks.tick().await;
        let configured = context.worlds.in_force().config.dataplane.conntrack_max;
        // Without conntrack in the kernel, there is no table to watch. The health of the level says so.
        let Ok(level) = level(configured) else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        if level.entries >= level.maximum / 100 * HIGH_PERCENT {
            let world = context.worlds.last();
            match blocking(move || cut(&world, level)).await {
                Ok(None) => {}
                Ok(Some(cut)) => {
                    publish(&context, cut);
                    last_cut = Some(Instant::now());
                }
                Err(error) => {
                    tracing::error!(%error, "failed to end conntrack entries of LAN hosts");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        if last_cut.is_some_and(|last| last.elapsed() >= CALM) {
            last_cut = None;
            context.active_alerts.clear(ALERT, SUBJECT);
        }
    }
}

fn publish(context: &Context, Cut { ended, message }: Cut) {
    if let Err(error) = context.dataplane.fast_path().invalidate(EpochChange::Conntrack) {
        tracing::error!(%error, "failed to invalidate the fast path");
    }
    tracing::warn!(ended, "ended conntrack entries beyond the fair shares of LAN hosts");
    context.active_alerts.raise(ALERT, SUBJECT, message);
}

/// Reads the level, with the limit as its maximum. Raises the maximum of the kernel to the configured one.
fn level(configured: usize) -> io::Result<Level> {
    let mut level = usage::level()?;
    if level.maximum < configured && usage::raise_maximum(configured).is_ok() {
        level = usage::level()?;
    }
    Ok(Level { maximum: level.maximum.min(configured), ..level })
}

#[derive(Debug, PartialEq, Eq)]
struct Cut {
    ended: usize,
    message: String,
}

/// Ends the entries beyond the fair shares of LAN hosts. `None` if no host has more.
fn cut(world: &World, level: Level) -> io::Result<Option<Cut>> {
    let entries = usage::list()?;
    // A host that is seen behind no port has none.
    let ports = bridge_ports::by_mac().unwrap_or_default();
    let paths = HostPaths::new(&world.input(), &world.live().plan.dataplane, ports);
    let (excess, message) = excess(&paths, entries, level.maximum / 100 * LAN_PERCENT);
    if excess.is_empty() {
        return Ok(None);
    }
    usage::delete_all(&excess)?;
    Ok(Some(Cut { ended: excess.len(), message }))
}

/// Returns the entries beyond the fair shares of `capacity`, with a sentence about the host that loses most.
fn excess(paths: &HostPaths, entries: Vec<HeldEntry>, capacity: usize) -> (Vec<HeldEntry>, String) {
    let mut by_host: BTreeMap<HostPath, Vec<HeldEntry>> = BTreeMap::new();
    let mut known = BTreeMap::new();
    for entry in entries {
        let path = *known.entry(entry.source).or_insert_with(|| paths.of_address(entry.source));
        if let Some(path) = path {
            by_host.entry(path).or_default().push(entry);
        }
    }
    let held = by_host.iter().map(|(path, entries)| (*path, entries.len())).collect();
    let shares = shares(&held, capacity);
    let mut largest = (0, String::new());
    let mut excess = Vec::new();
    for (path, mut entries) in by_host {
        let beyond = entries.len() - shares[&path];
        if beyond > largest.0 {
            let interface = paths.interface_name(&path).unwrap_or("a LAN");
            let (host, held) = (entries[0].source, entries.len());
            largest =
                (beyond, format!("{host} on {interface} held {held} conntrack entries, and lost {beyond}."));
        }
        if beyond > 0 {
            entries.sort_by_key(|entry| entry.seconds_left);
            entries.truncate(beyond);
            excess.append(&mut entries);
        }
    }
    (excess, largest.1)
}

#[cfg(test)]
mod tests;
