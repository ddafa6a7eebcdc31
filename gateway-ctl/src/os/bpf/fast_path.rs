//! Fast path of established flows: its switch, its epoch and its statistics.
//!
//! The epoch is the only way to invalidate entries: one write ends all of them, and each flow is evaluated again with
//! its next packet. Its maps end with the daemon, so a new daemon begins with an empty table that is off.
//!
//! Decision 0125 says why the epoch has a lease, decision 0121 which flows get entries, decision 0132 how they are
//! stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use aya::Ebpf;
use gateway_common::fast_path::{LEASE, ticks};
use gateway_common::maps::{self as spec, MapSpec as _};
use gateway_common::wire::{
    FAST_OFF, FAST_PLACES, FastCounter, FastEnd, FastLink, FastState, XdpCounter, fast_words,
};
use parking_lot::Mutex;

use super::Error;
use super::flow_clock::monotonic;
use super::maps::{ArrayMap, CounterArray, Entries as _, HashTable, open};
use super::packet_counts::{Counters, sum};
use super::table_use::TableUse;

/// Change after which no entry of the fast path is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EpochChange {
    /// The fast path was turned on, or may use other interfaces.
    Setting,
    /// A plan went live, or default deny.
    Plan,
    /// The flow table was flushed.
    Flows,
    Link,
    Address,
    Route,
    Rule,
    /// The MAC address of a neighbour.
    Neighbour,
    /// A rule set of nftables.
    Nftables,
    /// Entries of conntrack were deleted.
    Conntrack,
    /// Messages of the kernel were lost.
    Unknown,
}

impl FastPathStats {
    fn packets(&self, counter: FastCounter) -> u64 {
        self.counters.get(&counter).map_or(0, |counters| counters.packets)
    }

    /// Returns the share of the packets from the LAN that passed the IP stack by while the fast path was on, in percent.
    pub fn share_pct(&self) -> f64 {
        let (fast, slow) = (self.packets(FastCounter::Forwarded), self.packets(FastCounter::Evaluated));
        if fast == 0 { 0.0 } else { 100.0 * fast as f64 / (fast + slow) as f64 }
    }
}

impl EpochChange {
    /// Returns the name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            EpochChange::Setting => "setting",
            EpochChange::Plan => "plan",
            EpochChange::Flows => "flows",
            EpochChange::Link => "link",
            EpochChange::Address => "address",
            EpochChange::Route => "route",
            EpochChange::Rule => "rule",
            EpochChange::Neighbour => "neighbour",
            EpochChange::Nftables => "nftables",
            EpochChange::Conntrack => "conntrack",
            EpochChange::Unknown => "unknown",
        }
    }
}

/// Statistics of the fast path since the start of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastPathStats {
    pub on: bool,
    /// Cause for which it is off in spite of its setting.
    pub problem: Option<String>,
    pub counters: BTreeMap<FastCounter, Counters>,
    /// Entries at the last [`FastPath::count_entries`], two for each flow.
    pub entries: u64,
    /// Changes of the epoch by their cause.
    pub changes: BTreeMap<EpochChange, u64>,
}

/// Handle of the fast path. Its users do not wait for a plan that is being written.
#[derive(Clone)]
pub struct FastPath(Arc<Mutex<Inner>>);

struct Inner {
    epoch: ArrayMap<spec::FastEpoch>,
    links: HashTable<spec::FastLinks>,
    counts: CounterArray<spec::FastCounts>,
    /// Packets that XDP forwarded are counted here only.
    xdp_counts: CounterArray<spec::XdpCounts>,
    flows4: ArrayMap<spec::FastFlows4>,
    flows6: ArrayMap<spec::FastFlows6>,
    /// Last epoch. An epoch never returns, so an old entry never becomes valid again.
    last: u32,
    on: bool,
    /// The daemon ends, so nothing turns the fast path on.
    ended: bool,
    problem: Option<String>,
    /// Of IPv4, and of all others.
    entries: [u64; 2],
    changes: BTreeMap<EpochChange, u64>,
}

impl FastPath {
    pub(super) fn take(
        ebpf: &mut Ebpf,
        xdp_counts: CounterArray<spec::XdpCounts>,
    ) -> Result<FastPath, Error> {
        let inner = Inner {
            epoch: ArrayMap(open::<spec::FastEpoch, _>(ebpf)?),
            links: HashTable(open::<spec::FastLinks, _>(ebpf)?),
            counts: CounterArray(open::<spec::FastCounts, _>(ebpf)?),
            xdp_counts,
            flows4: ArrayMap(open::<spec::FastFlows4, _>(ebpf)?),
            flows6: ArrayMap(open::<spec::FastFlows6, _>(ebpf)?),
            last: FAST_OFF,
            on: false,
            ended: false,
            problem: None,
            entries: [0; 2],
            changes: BTreeMap::new(),
        };
        Ok(FastPath(Arc::new(Mutex::new(inner))))
    }

    /// Turns the fast path on for these interfaces, or off. Does nothing if nothing changes.
    pub fn set(&self, links: Option<&BTreeMap<u32, FastLink>>) -> Result<(), Error> {
        self.0.lock().set(links)
    }

    /// Sets the cause for which it is off in spite of its setting.
    pub fn set_problem(&self, problem: Option<String>) {
        self.0.lock().problem = problem;
    }

    /// Turns the fast path off for good.
    pub fn end(&self) -> Result<(), Error> {
        let mut inner = self.0.lock();
        inner.ended = true;
        inner.set(None)
    }

    /// Ends all entries.
    pub fn invalidate(&self, change: EpochChange) -> Result<(), Error> {
        self.0.lock().invalidate(change)
    }

    /// Renews the lease of the daemon, without which the programs use no entry.
    pub fn renew(&self) -> Result<(), Error> {
        self.0.lock().renew()
    }

    pub fn stats(&self) -> Result<FastPathStats, Error> {
        let inner = self.0.lock();
        let mut counters = BTreeMap::new();
        for counter in FastCounter::ALL {
            let mut values = inner.counts.get(counter as u32)?;
            let of_xdp = match counter {
                FastCounter::Forwarded => Some(XdpCounter::Forwarded),
                FastCounter::Replied => Some(XdpCounter::Replied),
                _ => None,
            };
            if let Some(counter) = of_xdp {
                values.extend(inner.xdp_counts.get(counter as u32)?);
            }
            counters.insert(counter, sum(&values));
        }
        let Inner { on, entries, changes, problem, .. } = &*inner;
        let (changes, problem) = (changes.clone(), problem.clone());
        Ok(FastPathStats { on: *on, problem, counters, entries: entries.iter().sum(), changes })
    }

    /// Returns the tables of entries, with descriptors of their own.
    pub(super) fn tables(&self) -> Result<(ArrayMap<spec::FastFlows4>, ArrayMap<spec::FastFlows6>), Error> {
        let inner = self.0.lock();
        Ok((inner.flows4.try_clone()?, inner.flows6.try_clone()?))
    }

    pub fn is_on(&self) -> bool {
        self.0.lock().on
    }

    /// Returns the use of the tables at the last [`FastPath::count_entries`]: that of IPv4, and that of all others. `None`
    /// while it is off.
    pub fn table_use(&self) -> Option<[TableUse; 2]> {
        let inner = self.0.lock();
        let [four, six] = inner.entries;
        let table =
            |entries, buckets| TableUse { entries, capacity: u64::from(buckets) * FAST_PLACES as u64 };
        inner.on.then(|| [table(four, spec::FastFlows4::CAPACITY), table(six, spec::FastFlows6::CAPACITY)])
    }

    /// Counts the entries of the present epoch. Reads the whole table, so it is called once a minute.
    pub fn count_entries(&self) -> Result<u64, Error> {
        let (flows4, flows6, epoch) = {
            let inner = self.0.lock();
            (inner.flows4.try_clone()?, inner.flows6.try_clone()?, inner.epoch.get(fast_words::EPOCH)?)
        };
        let mut entries = [0; 2];
        let count = |state: &FastState| {
            let is_present = state.confirmed != 0 && state.epoch == epoch as u16;
            u64::from(is_present && state.end == FastEnd::None as u8)
        };
        if epoch != FAST_OFF {
            flows4.for_each(|bucket| {
                entries[0] += bucket.iter().map(|entry| count(&entry.state)).sum::<u64>()
            })?;
            flows6.for_each(|bucket| {
                entries[1] += bucket.iter().map(|entry| count(&entry.state)).sum::<u64>()
            })?;
        }
        self.0.lock().entries = entries;
        Ok(entries.iter().sum())
    }
}

impl Inner {
    fn set(&mut self, links: Option<&BTreeMap<u32, FastLink>>) -> Result<(), Error> {
        let Some(links) = links.filter(|_| !self.ended) else {
            if self.on {
                self.epoch.set(fast_words::EPOCH, FAST_OFF)?;
                self.on = false;
                self.entries = [0; 2];
            }
            return Ok(());
        };
        let have = self.links.read()?;
        if self.on && have == *links {
            return Ok(());
        }
        // Without an epoch, no packet uses the interfaces while they change.
        self.epoch.set(fast_words::EPOCH, FAST_OFF)?;
        self.on = false;
        for index in have.keys().filter(|index| !links.contains_key(index)) {
            self.links.remove(index)?;
        }
        for (index, link) in links.iter().filter(|(index, link)| have.get(index) != Some(link)) {
            self.links.put(index, link)?;
        }
        self.on = true;
        self.renew()?;
        self.invalidate(EpochChange::Setting)
    }

    fn renew(&mut self) -> Result<(), Error> {
        if !self.on {
            return Ok(());
        }
        self.epoch.set(fast_words::LEASE, ticks(monotonic()).wrapping_add(LEASE))
    }

    fn invalidate(&mut self, change: EpochChange) -> Result<(), Error> {
        if !self.on {
            return Ok(());
        }
        *self.changes.entry(change).or_default() += 1;
        self.last = match self.last.wrapping_add(1) {
            FAST_OFF => FAST_OFF + 1,
            next => next,
        };
        self.epoch.set(fast_words::EPOCH, self.last)
    }
}
