//! In-kernel DNS filter: the dataplane answers queries for blocked names, also the first one of a client.
//!
//! The kernel has the names whose block is certain, the answer of each kind of block, and the clients that may get it.
//! A client is added when the resolver serves it, for the interface and the server address of that query, so the kernel
//! answers only where the resolver does. Any change of an input of answers invalidates all clients at once; the table
//! of names follows shortly after. Each hit is decided again here, for its log record.
//!
//! Decision 0123 says why.

mod answers;
mod hits;
pub mod table;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use gateway_common::wire::{Address, FilterAnswer, FilterClient, FilterClientKey, Mac};
use gateway_core::dns::filter::CertainBlocks;
use gateway_outbound::causes::with_causes;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};

use super::kernel_cache::{Dataplane, monotonic};
use super::settings::{Blocking, Mode};
use super::{KernelCache, Now, State};
use crate::hooks::{Client, Host};

/// Lifetime of a client in the kernel after the resolver served it, in nanoseconds.
const LEASE_NS: u64 = 60_000_000_000;
/// Minimum interval between two renewals of a client, in milliseconds.
const RENEWAL_MS: u64 = 4_000;

pub struct KernelFilter {
    dataplane: Option<Arc<dyn Dataplane>>,
    active: ArcSwapOption<ActiveTable>,
    loaded: Mutex<LoadedTable>,
    /// A UDP socket takes queries to any local address, for IPv4 and for IPv6.
    any_address: [AtomicBool; 2],
    hits: AtomicU64,
    unexplained: AtomicU64,
}

/// Table in the kernel, with the inputs that it was made of.
struct ActiveTable {
    epoch: u64,
    state: Arc<State>,
    /// 0: the kernel has no table for these inputs.
    serial: u64,
    blocks: Arc<CertainBlocks>,
}

#[derive(Default)]
struct LoadedTable {
    serial: u64,
    inputs: Option<(Arc<CertainBlocks>, (Mode, u32))>,
    /// Answers by their index in the map: those of this table and of the one before.
    answers: HashMap<u32, FilterAnswer>,
}

impl KernelFilter {
    pub fn new(dataplane: Option<Arc<dyn Dataplane>>) -> KernelFilter {
        let (active, loaded, any_address) = Default::default();
        let (hits, unexplained) = Default::default();
        KernelFilter { dataplane, active, loaded, any_address, hits, unexplained }
    }

    /// Returns the number of answers since the start.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Returns the number of those that the resolver would not have given at the time of its check, because an input
    /// changed in between.
    pub fn unexplained(&self) -> u64 {
        self.unexplained.load(Ordering::Relaxed)
    }

    /// Sets whether a UDP socket takes queries to any address of a family. Only then do redirected queries arrive.
    pub fn set_any_address(&self, [ipv4, ipv6]: [bool; 2]) {
        self.any_address[0].store(ipv4, Ordering::Release);
        self.any_address[1].store(ipv6, Ordering::Release);
    }

    /// Reports whether the kernel answers from a table of these inputs.
    pub fn is_active(&self, state: &Arc<State>, epoch: u64) -> bool {
        let active = self.active.load();
        active.as_ref().is_some_and(|active| {
            active.serial != 0 && active.epoch == epoch && Arc::ptr_eq(&active.state, state)
        })
    }

    /// Adds a client that the resolver has just served.
    pub fn offer(&self, offer: &ServedClient<'_>, state: &Arc<State>, epoch: u64, now: Now) {
        let (Some(dataplane), active) = (&self.dataplane, self.active.load()) else { return };
        let Some(active) = &*active else { return };
        if active.serial == 0 || active.epoch != epoch || !Arc::ptr_eq(&active.state, state) {
            return;
        }
        let ServedClient { host, server, interface, client } = *offer;
        if !client.near || !client.filtered || !state.settings.blocking.holds(now.wall) {
            return;
        }
        let kinds = active.blocks.kinds(&client.asker);
        if kinds == 0 {
            return;
        }
        let value = FilterClient {
            epoch,
            until: monotonic().saturating_add(LEASE_NS),
            serial: active.serial,
            kinds,
            budget: budget(state.settings.client_rate.per_second),
        };
        let (from, mac) = (host.address, Mac::new(host.mac().unwrap_or_default()));
        let (client, server) = (from.into(), server.into());
        let key = FilterClientKey { client, server, interface, host: mac, _pad: 0 };
        dataplane.put_client(&key, &value);
        if self.any_address[usize::from(from.is_ipv6())].load(Ordering::Acquire) {
            dataplane.put_client(&FilterClientKey { server: Address([0; 4]), ..key }, &value);
        }
    }

    /// Brings the table in the kernel to the inputs of the resolver.
    pub fn sync(&self, kernel_cache: &KernelCache, state: &ArcSwap<State>) {
        let Some(dataplane) = &self.dataplane else { return };
        // Read before the state, so that a table of an old state is never used in a newer epoch.
        let epoch = kernel_cache.epoch();
        if self.active.load().as_ref().is_some_and(|active| active.epoch == epoch) {
            return;
        }
        let state = state.load_full();
        let Some(filter) = state.local_answers.filter() else { return };
        let blocks = Arc::new(filter.certain_blocks());
        let serial = self.load(&**dataplane, &blocks, &state);
        self.active.store(Some(Arc::new(ActiveTable { epoch, state, serial, blocks })));
    }

    /// Loads names and answers unless the kernel has them already. Returns the serial number, or 0 after a failure.
    // Only one thread calls it. The lock is not held while a table is built, because hits are explained meanwhile.
    fn load(&self, dataplane: &dyn Dataplane, blocks: &Arc<CertainBlocks>, state: &State) -> u64 {
        let Blocking { mode, ttl, .. } = state.settings.blocking;
        let serial = {
            let mut loaded = self.lock();
            if let Some((known, answers)) = &loaded.inputs
                && known.has_same_names(blocks)
                && *answers == (mode, ttl)
            {
                return loaded.serial;
            }
            loaded.inputs = None;
            loaded.serial += 1;
            loaded.serial
        };
        let answers = answers::of(state, serial);
        let table = table::build(|| blocks.names(), blocks.key(), serial);
        if let Err(error) = dataplane.put_table(&table, &answers) {
            let error = with_causes(&error);
            tracing::warn!(
                error,
                "failed to load the DNS filter into the kernel: the resolver answers all queries"
            );
            return 0;
        }
        let mut loaded = self.lock();
        loaded.answers.extend(answers);
        loaded.inputs = Some((blocks.clone(), (mode, ttl)));
        serial
    }

    fn lock(&self) -> MutexGuard<'_, LoadedTable> {
        self.loaded.lock()
    }
}

/// Client of a query that the resolver received.
#[derive(Clone, Copy)]
pub struct ServedClient<'a> {
    pub host: &'a Host,
    pub server: IpAddr,
    pub interface: u32,
    pub client: &'a Client,
}

/// Returns the number of answers of the kernel until the next renewal. Hits take tokens of the rate limit, too, but
/// only when they are collected.
fn budget(per_second: u32) -> u32 {
    match per_second {
        0 => u32::MAX,
        per_second => per_second.saturating_mul(u32::try_from(RENEWAL_MS / 1000).unwrap_or(1)),
    }
}

/// Clients that a worker has added.
#[derive(Default)]
pub struct AddedClients {
    added: HashMap<(Host, IpAddr, u32), u64, rapidhash::fast::RandomState>,
    epoch: u64,
}

/// Maximum number of clients that a worker remembers.
const MAX_ADDED: usize = 8192;

impl AddedClients {
    /// Reports whether the client is to be added or renewed now.
    pub fn is_due(&mut self, host: Host, server: IpAddr, interface: u32, epoch: u64, now: Now) -> bool {
        if self.epoch != epoch || self.added.len() >= MAX_ADDED {
            self.added.clear();
            self.epoch = epoch;
        }
        let due = now.ms + RENEWAL_MS;
        match self.added.entry((host, server, interface)) {
            hashbrown::hash_map::Entry::Occupied(entry) if now.ms < *entry.get() => false,
            entry => {
                entry.insert(due);
                true
            }
        }
    }
}
