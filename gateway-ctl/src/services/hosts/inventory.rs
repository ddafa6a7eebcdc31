//! The known hosts, in memory and on disk, as the service, the API and the verdict share them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use gateway_core::gateway_verdict::PresentHost;
use gateway_core::state_machines::hosts::{Host, Hosts, Observation, Retention};
use gateway_model::settings::groups::WipeLevel;
use gateway_model::{Id, MacAddr};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::dns_clients::DnsClients;
use super::rates::HostRates;
use crate::handles::Handle;
use crate::os::json_file;
use crate::services::encrypted_storage::{EncryptedStorage, StorageContent, StoredFile};
use crate::world::Worlds;

/// File of the state folder, or of the encrypted storage.
const FILE: &str = "hosts.json";

/// Inventory that the service fills and the API reads. Clones are the same inventory.
#[derive(Clone, Debug)]
pub struct HostInventory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    known: Mutex<InventoryState>,
    dns_clients: DnsClients,
    rates: HostRates,
}

#[derive(Debug)]
struct InventoryState {
    hosts: Hosts,
    file: StoredFile,
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

impl Handle for HostInventory {
    fn open(state_dir: &Path, _: Timestamp) -> HostInventory {
        let file = StoredFile::new(state_dir, StorageContent::ObservedHosts, FILE);
        let stored: Stored = file.path().map(|path| json_file::read(&path)).unwrap_or_default();
        let hosts = Hosts::restore(stored.hosts);
        let known = InventoryState { hosts, file, snapshot: None, is_unsaved: false, is_silent: false };
        HostInventory(Arc::new(Inner {
            known: Mutex::new(known),
            dns_clients: DnsClients::default(),
            rates: HostRates::default(),
        }))
    }
}

impl HostInventory {
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

    /// Forgets a host. Returns `false` if there is none.
    pub fn forget(&self, id: Id) -> bool {
        self.change(|hosts| hosts.forget(id))
    }

    /// Erases all hosts, in memory and on disk.
    pub fn erase(&self) -> io::Result<()> {
        self.change(Hosts::clear);
        self.0.rates.clear();
        let known = self.lock();
        // Under the lock: a save in between would write the file again.
        let erased = known.file.path().map_or(Ok(()), |path| json_file::erase(&path));
        drop(known);
        erased
    }

    /// Erases all hosts. At [`WipeLevel::Hard`], nothing is stored any more.
    pub(super) fn wipe(&self, level: WipeLevel) -> io::Result<()> {
        self.lock().is_silent = level == WipeLevel::Hard;
        self.erase()
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

    pub(super) fn expire(&self, now: Timestamp, retention: Retention<'_>) {
        self.change(|hosts| hosts.expire(now, retention));
    }

    /// Returns the hosts that the verdict counts.
    fn present(&self, now: Timestamp) -> Vec<PresentHost> {
        let list = self.list();
        let present = list.hosts.iter().filter(|host| host.is_present(now));
        let present = present.map(|host| {
            let mut ips: Vec<_> = host.ips().collect();
            ips.sort_unstable();
            PresentHost { interface: host.interface.clone(), mac: host.mac, ips }
        });
        present.collect()
    }

    /// Publishes the hosts that the verdict counts, if they are others than before.
    pub fn publish(&self, worlds: &Worlds, now: Timestamp) {
        let present = self.present(now);
        if *worlds.last().reports.hosts != present {
            worlds.report(|reports| reports.hosts = Arc::new(present));
        }
    }

    /// Follows the file into the encrypted storage and out of it. Hosts that are stored there join those in memory.
    pub(super) fn follow(&self, storage: &EncryptedStorage) {
        let mut known = self.lock();
        let Some(next) = known.file.follow(storage) else { return };
        if let Err(error) = known.save() {
            tracing::warn!(%error, "failed to store the hosts of the LAN before their file moves");
        }
        known.file = next;
        let Some(path) = known.file.path() else { return };
        let stored: Stored = json_file::read(&path);
        known.hosts.join(stored.hosts);
        known.snapshot = None;
        known.is_unsaved = true;
    }

    /// Writes the file if something has changed.
    pub fn save(&self) -> io::Result<()> {
        self.lock().save()
    }

    fn lock(&self) -> MutexGuard<'_, InventoryState> {
        self.0.known.lock()
    }
}

impl InventoryState {
    /// Writes the file if something has changed. Without a folder, the hosts stay in memory only.
    fn save(&mut self) -> io::Result<()> {
        let Some(path) = self.file.path().filter(|_| self.is_unsaved && !self.is_silent) else {
            return Ok(());
        };
        let stored = Stored { hosts: self.hosts.iter().cloned().collect() };
        // Under the lock: an erasure in between would be undone.
        json_file::write(&path, &stored)?;
        self.is_unsaved = false;
        Ok(())
    }
}

/// Stores the hosts at the end of the daemon.
pub(super) fn store_at_end(inventory: &HostInventory) {
    if let Err(error) = inventory.save() {
        tracing::warn!(%error, "failed to store the hosts of the LAN");
    }
}

#[cfg(test)]
mod tests;
