//! Measurement of the traffic of hosts, by a tap on each LAN interface.
//!
//! The tap runs beside the programs of the dataplane, which do nothing for it. It counts only hosts that are entered, so what
//! it costs depends on packets, not on hosts; with many packets it pauses for most of the time.
//!
//! Decision 0140 says why.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gateway_common::wire::{HostKey, HostTraffic, Mac};
use gateway_model::MacAddr;
use tokio::time::{Instant, sleep};

use super::inventory::HostInventory;
use super::lans::Lans;
use super::rates::{Traffic, between};
use crate::os::bpf::{Error, InterfaceTap};
use crate::os::link_counters;
use crate::reconcile::KernelDataplane;
use crate::service::Context;
use crate::services::tap_observation::{self, Observed};
use crate::supervise::blocking;

/// Duration of an observation. A burst ends it.
const OBSERVATION: Duration = Duration::from_secs(1);
/// The same while the interfaces carry more than [`MAX_RATE`], and the pause behind it.
const SAMPLE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(900);
/// Packets per second that are observed without a pause. A tap takes some 0.3 microseconds for each: at this rate 0.6 % of a
/// processor.
const MAX_RATE: u64 = 20_000;
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(10);
/// Maximum number of hosts whose traffic is counted, below the capacity of the map.
const MAX_COUNTED: usize = 8192;

/// Runs until it is aborted.
pub(super) async fn run(context: Context) {
    let inventory = context.handles.get::<HostInventory>();
    let mut open = OpenTap::default();
    loop {
        let lans = measured(&context);
        if lans.is_empty() {
            inventory.rates().clear();
        }
        let hosts = counted(&context, &inventory, &lans);
        let duration = if open.is_sampling { SAMPLE } else { OBSERVATION };
        match observe(&context.dataplane, &mut open, lans, hosts, duration).await {
            Ok(traffic) => inventory.rates().note(traffic),
            Err(error) => {
                tracing::warn!(%error, "failed to measure the traffic of hosts");
                inventory.rates().clear();
                open.close().await;
                sleep(RETRY).await;
            }
        }
        if open.is_sampling {
            open.close().await;
            sleep(PAUSE).await;
        }
    }
}

/// Tap on all measured interfaces.
#[derive(Default)]
struct OpenTap {
    /// Names by index.
    lans: BTreeMap<u32, String>,
    sockets: Vec<InterfaceTap>,
    /// There are many packets, so only a part of the time is observed.
    is_sampling: bool,
}

impl OpenTap {
    async fn close(&mut self) {
        self.lans.clear();
        let sockets = std::mem::take(&mut self.sockets);
        // The kernel waits for packets in progress.
        blocking(move || drop(sockets)).await;
    }
}

/// Returns the LAN interfaces whose traffic a tap sees, by index. With XDP, drivers send packets on that no tap sees.
fn measured(context: &Context) -> BTreeMap<u32, String> {
    let lans = Lans::of(&context.worlds.last()).interfaces;
    let Ok(xdp) = context.dataplane.xdp().stats() else { return BTreeMap::new() };
    let has_xdp = |name: &str| xdp.interfaces.get(name).is_some_and(|state| state.attached || state.sends);
    let lans = lans.into_iter().filter(|(_, lan)| !has_xdp(&lan.name));
    lans.map(|(index, lan)| (index, lan.name)).collect()
}

/// Returns the hosts to count: those that have answered and are online. Forged ones have not.
fn counted(context: &Context, inventory: &HostInventory, lans: &BTreeMap<u32, String>) -> BTreeSet<HostKey> {
    let now = context.store.clock().now();
    let list = inventory.list();
    let present = list.hosts.iter().filter(|host| host.is_confirmed() && host.is_online(now));
    let key = |(interface, mac): (&String, MacAddr)| {
        let (index, _) = lans.iter().find(|(_, name)| *name == interface)?;
        Some(HostKey::new(*index, Mac::new(mac.octets())))
    };
    present.filter_map(|host| key((&host.interface, host.mac))).take(MAX_COUNTED).collect()
}

/// Counts the traffic of the hosts for some time, with the tap that is open, or with a new one if the interfaces have changed.
async fn observe(
    dataplane: &KernelDataplane,
    open: &mut OpenTap,
    lans: BTreeMap<u32, String>,
    hosts: BTreeSet<HostKey>,
    duration: Duration,
) -> Result<Traffic, Error> {
    if open.lans != lans {
        open.close().await;
        let (programs, indexes) = (dataplane.clone(), Vec::from_iter(lans.keys().copied()));
        open.sockets = blocking(move || tap(&programs, indexes)).await?;
        open.lans = lans;
    }
    let programs = dataplane.clone();
    let (begun, before) = blocking(move || {
        programs.with(|programs| programs.set_counted_hosts(&hosts))?;
        read(&programs)
    })
    .await?;
    let Observed { packets, .. } = tap_observation::observe(duration, limit(duration), packets).await;
    let programs = dataplane.clone();
    let (ended, after) = blocking(move || read(&programs)).await?;
    let observed = ended.duration_since(begun);
    open.is_sampling = packets > limit(observed);
    let name = |(host, traffic): (HostKey, HostTraffic)| {
        let interface = open.lans.get(&host.interface)?;
        Some(((interface.clone(), MacAddr(host.mac.octets())), traffic))
    };
    Ok(Traffic { observed, hosts: between(&before, after).into_iter().filter_map(name).collect() })
}

fn tap(dataplane: &KernelDataplane, interfaces: Vec<u32>) -> Result<Vec<InterfaceTap>, Error> {
    interfaces.into_iter().map(|index| dataplane.with(|programs| programs.tap_hosts(index))).collect()
}

/// Reads the counters, with the time of the reading.
fn read(dataplane: &KernelDataplane) -> Result<(Instant, BTreeMap<HostKey, HostTraffic>), Error> {
    dataplane.with(|programs| programs.host_traffic().map(|traffic| (Instant::now(), traffic)))
}

/// Returns the number of packets that all interfaces have received and sent. Some drivers do not count what the dataplane
/// redirects, but one of the two interfaces does.
fn packets() -> u64 {
    match link_counters::packets() {
        Ok(packets) => packets.values().sum(),
        Err(error) => {
            tracing::warn!(%error, "failed to read the counters of interfaces");
            0
        }
    }
}

/// Returns the number of packets in a time at [`MAX_RATE`].
fn limit(observed: Duration) -> u64 {
    let milliseconds = u64::try_from(observed.as_millis()).unwrap_or(u64::MAX);
    milliseconds.saturating_mul(MAX_RATE) / 1000
}
