//! Inventory of hosts on the LAN: the state machine of `gateway_core` between the neighbour table, DHCP leases, sampled
//! flows and announcements on one side, and the API, the verdict and alerts on the other.

mod dns_clients;
mod lans;
pub mod measure;
mod observe;
mod rates;
mod vendors;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_core::gateway_verdict::PresentHost;
use gateway_core::state_machines::hosts::{Host, Hosts, Observation, Retention};
use gateway_dns::erase::erase_file;
use gateway_model::{Id, MacAddr, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub use dns_clients::DnsClients;
pub use observe::{Sources, run};
pub use rates::{HostRate, HostRates};
pub use vendors::vendor;

use crate::os::json_file;

/// File of the state folder.
const FILE: &str = "hosts.json";

/// Inventory that the service fills and the API reads. Clones are the same inventory.
#[derive(Clone, Debug)]
pub struct HostInventory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    known: Mutex<InventoryState>,
    present: watch::Sender<Arc<Vec<PresentHost>>>,
    dns_clients: DnsClients,
    rates: HostRates,
}

#[derive(Debug, Default)]
struct InventoryState {
    hosts: Hosts,
    /// Copy for readers; `None` after a change.
    snapshot: Option<Arc<HostList>>,
    /// The file differs from the memory.
    is_unsaved: bool,
    /// Nothing is kept any more.
    is_silent: bool,
}

/// All hosts at one instant.
#[derive(Debug, Default)]
pub struct HostList {
    pub hosts: Vec<Host>,
    by_mac: BTreeMap<MacAddr, Vec<usize>>,
    /// Hosts that were not kept because the table of their interface was full.
    pub refused: u64,
}

impl HostList {
    fn new(hosts: &Hosts) -> HostList {
        let refused = hosts.refused();
        let hosts: Vec<Host> = hosts.iter().cloned().collect();
        let mut by_mac: BTreeMap<MacAddr, Vec<usize>> = BTreeMap::new();
        for (index, host) in hosts.iter().enumerate() {
            by_mac.entry(host.mac).or_default().push(index);
        }
        HostList { hosts, by_mac, refused }
    }

    /// Returns the hosts with a MAC address, at any interface.
    pub fn of(&self, mac: MacAddr) -> impl Iterator<Item = &Host> {
        self.by_mac.get(&mac).into_iter().flatten().filter_map(|index| self.hosts.get(*index))
    }

    pub fn find(&self, id: Id) -> Option<&Host> {
        self.hosts.iter().find(|host| host.id() == id)
    }
}

/// Content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    hosts: Vec<Host>,
}

impl HostInventory {
    /// Returns the inventory with the hosts that the last run has stored.
    pub fn stored(state_dir: &std::path::Path) -> HostInventory {
        let path = state_dir.join(FILE);
        let stored: Stored = json_file::read(&path);
        let known = InventoryState { hosts: Hosts::restore(stored.hosts), ..InventoryState::default() };
        HostInventory(Arc::new(Inner {
            path,
            known: Mutex::new(known),
            present: watch::channel(Arc::default()).0,
            dns_clients: DnsClients::default(),
            rates: HostRates::default(),
        }))
    }

    /// Returns the notes in which the resolver writes its clients.
    pub fn dns_clients(&self) -> &DnsClients {
        &self.0.dns_clients
    }

    /// Returns the rates of the hosts.
    pub fn rates(&self) -> &HostRates {
        &self.0.rates
    }

    /// Returns all hosts.
    pub fn list(&self) -> Arc<HostList> {
        let mut known = self.lock();
        let InventoryState { hosts, snapshot, .. } = &mut *known;
        snapshot.get_or_insert_with(|| Arc::new(HostList::new(hosts))).clone()
    }

    /// Returns the hosts that the verdict counts, whenever they change.
    pub fn present(&self) -> watch::Receiver<Arc<Vec<PresentHost>>> {
        self.0.present.subscribe()
    }

    /// Forgets a host. Returns `false` if there is none.
    pub fn forget(&self, id: Id, now: Timestamp) -> bool {
        let is_forgotten = self.change(|hosts| hosts.forget(id));
        self.publish(now);
        is_forgotten
    }

    /// Erases all hosts, in memory and on disk.
    pub fn erase(&self) -> io::Result<()> {
        self.change(Hosts::clear);
        self.0.rates.clear();
        self.0.present.send_replace(Arc::default());
        let known = self.lock();
        // Under the lock: a save in between would write the file again.
        let erased = erase_file(&self.0.path).and(erase_file(&self.0.path.with_extension("new")));
        drop(known);
        erased
    }

    /// Stores nothing any more, because the state folder is destroyed.
    pub fn silence(&self) {
        self.lock().is_silent = true;
    }

    fn change<T>(&self, change: impl FnOnce(&mut Hosts) -> T) -> T {
        let mut known = self.lock();
        known.snapshot = None;
        known.is_unsaved = true;
        change(&mut known.hosts)
    }

    /// Takes observations. Returns the number of hosts that are new.
    pub fn observe<'a>(
        &self,
        observations: impl Iterator<Item = Observation<'a>>,
        devices: &BTreeSet<MacAddr>,
    ) -> usize {
        self.change(|hosts| observations.map(|one| usize::from(hosts.observe(one, devices))).sum())
    }

    fn expire(&self, now: Timestamp, retention: Retention<'_>) {
        self.change(|hosts| hosts.expire(now, retention));
    }

    /// Publishes the hosts that the verdict counts, if they are others than before.
    fn publish(&self, now: Timestamp) {
        let list = self.list();
        let present = list.hosts.iter().filter(|host| host.is_present(now));
        let present = present.map(|host| {
            let mut ips: Vec<_> = host.ips().collect();
            ips.sort_unstable();
            PresentHost { interface: host.interface.clone(), mac: host.mac, ips }
        });
        let present: Vec<PresentHost> = present.collect();
        self.0.present.send_if_modified(|last| {
            let is_changed = **last != present;
            if is_changed {
                *last = Arc::new(present);
            }
            is_changed
        });
    }

    /// Writes the file if something has changed.
    pub fn save(&self) -> io::Result<()> {
        let mut known = self.lock();
        if known.is_silent || !known.is_unsaved {
            return Ok(());
        }
        known.is_unsaved = false;
        let stored = Stored { hosts: known.hosts.iter().cloned().collect() };
        // Under the lock: an erasure in between would be undone.
        let written = json_file::write(&self.0.path, &stored);
        if written.is_err() {
            known.is_unsaved = true;
        }
        written
    }

    /// Locks the hosts; a panic between two statements leaves them consistent.
    fn lock(&self) -> MutexGuard<'_, InventoryState> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores the hosts at the end of the daemon.
pub fn store_at_end(inventory: &HostInventory) {
    if let Err(error) = inventory.save() {
        tracing::warn!(%error, "failed to store the hosts of the LAN");
    }
}

/// Returns the MAC addresses of all devices.
fn macs_of_devices(state: &State) -> BTreeSet<MacAddr> {
    state.devices.iter().flat_map(|device| device.all_macs()).collect()
}

#[cfg(test)]
mod tests;
