//! Table of hosts, bounded for each interface.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gateway_model::{Id, MacAddr};
use jiff::{SignedDuration, Timestamp};

use super::host::{Host, NameSource};

/// Maximum number of hosts at an interface.
const MAX_HOSTS: usize = 4096;
/// Time without an observation after which a confirmed host may give way to a new one if the table is full.
const REPLACEABLE_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// Time without an observation after which a host that never answered is forgotten.
const FORGET_UNCONFIRMED_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Time without an observation after which a confirmed host without a device record is forgotten.
const FORGET_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// One observation of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation<'a> {
    pub interface: &'a str,
    pub mac: MacAddr,
    /// VLAN of the interface.
    pub vlan: Option<u16>,
    pub at: Timestamp,
    pub evidence: Evidence,
}

/// Observed property of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Entry of the kernel's neighbour table. `is_confirmed`: the host has answered the gateway at that time.
    Neighbour { address: IpAddr, is_confirmed: bool },
    /// Lease of the DHCP server.
    Lease { address: IpAddr, hostname: Option<String>, vendor_class: Option<String> },
    /// Packet from this address: a flow, a DNS query.
    Traffic { address: IpAddr },
    /// Name that it announces.
    Name { name: String, from: NameSource },
}

/// Hosts that the table keeps.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'a> {
    /// LAN interfaces. Hosts of others are forgotten.
    pub interfaces: &'a [String],
    /// MAC addresses of devices. Their hosts are never forgotten.
    pub devices: &'a BTreeSet<MacAddr>,
}

/// Hosts by interface and MAC address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    interfaces: BTreeMap<String, BTreeMap<MacAddr, Host>>,
    /// Hosts that were not kept because the table of their interface was full.
    refused: u64,
}

impl Hosts {
    /// Restores hosts of an earlier run.
    pub fn restore(hosts: Vec<Host>) -> Hosts {
        let mut restored = Hosts::default();
        restored.join(hosts);
        restored
    }

    /// Adds hosts of an earlier run to those that were observed since.
    pub fn join(&mut self, earlier: Vec<Host>) {
        for host in earlier {
            let table = self.interfaces.entry(host.interface.clone()).or_default();
            let is_full = table.len() >= MAX_HOSTS;
            match table.entry(host.mac) {
                Entry::Occupied(mut known) => known.get_mut().join(host),
                Entry::Vacant(free) if !is_full => drop(free.insert(host)),
                Entry::Vacant(_) => {}
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.interfaces.values().flat_map(BTreeMap::values)
    }

    pub fn len(&self) -> usize {
        self.interfaces.values().map(BTreeMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of hosts that were not kept because the table of their interface was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    pub fn get(&self, interface: &str, mac: MacAddr) -> Option<&Host> {
        self.interfaces.get(interface)?.get(&mac)
    }

    pub fn find(&self, id: Id) -> Option<&Host> {
        self.iter().find(|host| host.id() == id)
    }

    /// Forgets a host. Returns `false` if there is none.
    pub fn forget(&mut self, id: Id) -> bool {
        let Some((interface, mac)) = self.find(id).map(|host| (host.interface.clone(), host.mac)) else {
            return false;
        };
        self.interfaces.get_mut(&interface).is_some_and(|table| table.remove(&mac).is_some())
    }

    /// Takes an observation. Returns `true` if the host is new.
    pub fn observe(&mut self, observation: Observation<'_>, devices: &BTreeSet<MacAddr>) -> bool {
        let Observation { interface, mac, vlan, at, evidence } = observation;
        if mac.is_multicast() || mac.octets() == [0; 6] {
            return false;
        }
        let is_confirmed = matches!(evidence, Evidence::Neighbour { is_confirmed: true, .. });
        let table = match self.interfaces.get_mut(interface) {
            Some(table) => table,
            None => self.interfaces.entry(interface.to_owned()).or_default(),
        };
        let is_new = !table.contains_key(&mac);
        if is_new && table.len() >= MAX_HOSTS {
            self.refused += 1;
            let Some(victim) = victim(table, is_confirmed || devices.contains(&mac), at, devices) else {
                return false;
            };
            table.remove(&victim);
        }
        let host = table.entry(mac).or_insert_with(|| Host::new(interface, mac, vlan, at));
        host.vlan = vlan;
        apply(host, evidence, at);
        is_new
    }

    /// Forgets hosts that were not observed for long, and those of interfaces that are not of the LAN any more.
    pub fn expire(&mut self, now: Timestamp, retention: Retention<'_>) {
        self.interfaces.retain(|name, _| retention.interfaces.contains(name));
        for table in self.interfaces.values_mut() {
            table.retain(|mac, host| {
                let limit = if host.is_confirmed() { FORGET_AFTER } else { FORGET_UNCONFIRMED_AFTER };
                let is_device = retention.devices.contains(mac) && host.is_confirmed();
                is_device || now.duration_since(host.last_seen) <= limit
            });
        }
    }

    /// Forgets all hosts.
    pub fn clear(&mut self) {
        *self = Hosts::default();
    }
}

fn apply(host: &mut Host, evidence: Evidence, at: Timestamp) {
    // The kernel gives a new neighbour entry an age, as if the host had been there before.
    let is_older = !matches!(evidence, Evidence::Neighbour { .. });
    match evidence {
        Evidence::Neighbour { address, is_confirmed } => {
            host.add_address(address, at);
            if is_confirmed {
                host.confirmed_at = host.confirmed_at.max(Some(at));
            }
        }
        Evidence::Lease { address, hostname, vendor_class } => {
            host.add_address(address, at);
            if let Some(hostname) = hostname {
                host.add_name(&hostname, NameSource::Dhcp);
            }
            if let Some(class) = vendor_class {
                host.set_vendor_class(&class);
            }
        }
        Evidence::Traffic { address } => host.add_address(address, at),
        Evidence::Name { name, from } => {
            host.add_name(&name, from);
        }
    }
    host.see(at, is_older);
}

/// Returns the host of a full table that gives way to a new one: of those that never answered the newest; for a host
/// that answers, also the one that was silent longest, for a day at least. Hosts of devices never give way.
fn victim(
    table: &BTreeMap<MacAddr, Host>,
    is_trusted: bool,
    now: Timestamp,
    devices: &BTreeSet<MacAddr>,
) -> Option<MacAddr> {
    let others = || table.values().filter(|host| !devices.contains(&host.mac));
    let unconfirmed = others().filter(|host| !host.is_confirmed());
    let newest = unconfirmed.max_by_key(|host| (host.first_seen, host.mac));
    let silent = || {
        let silent = others().filter(|host| now.duration_since(host.last_seen) > REPLACEABLE_AFTER);
        silent.min_by_key(|host| (host.last_seen, host.mac))
    };
    newest.or_else(|| silent().filter(|_| is_trusted)).map(|host| host.mac)
}
