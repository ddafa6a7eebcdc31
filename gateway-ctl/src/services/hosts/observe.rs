//! Observation of hosts: rounds over the neighbour table, leases and sampled flows, and announcements as they arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::link_protocol::LinkProtocol;
use gateway_core::announcements;
use gateway_core::state_machines::dhcp::LeaseStatus;
use gateway_core::state_machines::hosts::{Evidence, Host, Observation, Retention};
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::{Id, MacAddr, State};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::inventory::{HostInventory, HostList};
use super::lans::{Lan, Lans};
use crate::os::multicast_groups::MulticastGroups;
use crate::os::neighbour::{self, TableEntry};
use crate::service::Context;
use crate::services::dhcp::{DhcpServer, ShownLease};
use crate::services::encrypted_storage::EncryptedStorage;
use crate::services::events::Recent;
use crate::services::link_frames::LinkFrames;
use crate::supervise::blocking;
use crate::world::World;

/// Longest time between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between two rounds.
const QUIET_PERIOD: Duration = Duration::from_secs(1);
/// Time between two writes of the file. The last is at the end.
const SAVE_INTERVAL: Duration = Duration::from_secs(300);
/// Time between two complete readings of the leases, of which some end without a message.
const LEASES_INTERVAL: Duration = Duration::from_secs(60);
/// Pause after announcements were read. A flood of them costs little, and the rest is lost in the queue.
const ANNOUNCEMENTS_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of neighbours that are probed in a round.
const MAX_PROBES: usize = 64;
/// Time without an answer after which a host that is online is asked.
const ASK_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// Time between two probes of a host.
const PROBE_INTERVAL: Duration = Duration::from_secs(20);
/// Time for which a host that never answered is asked.
const ASK_NEW_FOR: SignedDuration = SignedDuration::from_mins(2);
/// Maximum number of alerts of new hosts at a time.
const MAX_ALERTS: usize = 64;
const ALERT: AlertKind = AlertKind::NewDevice;

/// State of the rounds.
struct Rounds {
    context: Context,
    inventory: HostInventory,
    storage: EncryptedStorage,
    /// Boot-time clock of the newest event that was read.
    read_until: u64,
    probed: BTreeMap<Id, Instant>,
    leases_read: Option<Instant>,
    saved: Instant,
    /// Groups of announcements. Without them, hosts have no announced names.
    groups: Option<MulticastGroups>,
    joined: BTreeSet<u32>,
}

/// Runs until it is aborted.
pub(super) async fn run(context: Context) {
    let mut neighbours = context.kernel_changes.clone();
    let mut published = context.worlds.watch();
    let mut names = published.borrow_and_update().reports.leased_names.clone();
    let mut rounds = Rounds {
        inventory: context.handles.get::<HostInventory>(),
        storage: context.handles.get::<EncryptedStorage>(),
        context,
        read_until: 0,
        probed: BTreeMap::new(),
        leases_read: None,
        saved: Instant::now(),
        groups: MulticastGroups::open()
            .inspect_err(|error| tracing::warn!(%error, "failed to listen for announcements of hosts"))
            .ok(),
        joined: BTreeSet::new(),
    };
    let frames = rounds.context.handles.get::<LinkFrames>();
    let mut folders = rounds.storage.watch();
    let mut ticks = interval(ROUND_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let begun = Instant::now();
        rounds.round().await;
        let earliest = begun + QUIET_PERIOD;
        loop {
            tokio::select! {
                _ = ticks.tick() => break,
                Ok(()) = neighbours.changed() => break,
                Ok(()) = folders.changed() => break,
                Ok(()) = published.changed() => {
                    let leased = published.borrow_and_update().reports.leased_names.clone();
                    if !Arc::ptr_eq(&names, &leased) {
                        names = leased;
                        rounds.leases_read = None;
                        break;
                    }
                }
                () = frames.arrived(LinkProtocol::Announcement) => {
                    rounds.read_announcements(&frames);
                    sleep(ANNOUNCEMENTS_PAUSE).await;
                }
            }
        }
        sleep_until(earliest).await;
        neighbours.borrow_and_update();
    }
}

impl Rounds {
    async fn round(&mut self) {
        let (inventory, storage) = (self.inventory.clone(), self.storage.clone());
        blocking(move || inventory.follow(&storage)).await;
        let (world, now) = (self.context.worlds.last(), self.context.store.clock().now());
        let lans = Lans::of(&world);
        self.join(&lans);
        let state = self.context.store.current();
        let devices = macs_of_devices(&state);
        let entries = match blocking(neighbour::table).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(%error, "failed to read the neighbour table");
                Vec::new()
            }
        };
        let seen = entries.iter().filter_map(|entry| of_neighbour(&lans, entry, now));
        self.inventory.observe(seen, &devices);
        if self.leases_read.is_none_or(|read| read.elapsed() >= LEASES_INTERVAL) {
            self.leases_read = Some(Instant::now());
            let dhcp = self.context.handles.get::<DhcpServer>();
            let leases = blocking(move || dhcp.leases(now)).await;
            let seen = leases.iter().filter_map(|lease| of_lease(&world, &lans, lease, now));
            self.inventory.observe(seen, &devices);
        }
        self.read_dns_clients(&lans, &devices, now);
        self.read_flows(&lans, &devices, now);
        self.inventory.expire(now, Retention { interfaces: &world.network.lan, devices: &devices });
        self.inventory.publish(&self.context.worlds, now);
        let list = self.inventory.list();
        self.report(&list, &state, now);
        self.probe(&list, &lans, now).await;
        if self.saved.elapsed() >= SAVE_INTERVAL {
            self.saved = Instant::now();
            let inventory = self.inventory.clone();
            if let Err(error) = blocking(move || inventory.save()).await {
                tracing::warn!(%error, "failed to store the hosts of the LAN");
            }
        }
    }

    /// Joins the groups on LAN interfaces that are new.
    fn join(&mut self, lans: &Lans) {
        let Some(groups) = &self.groups else { return };
        for index in lans.interfaces.keys() {
            if self.joined.insert(*index)
                && let Err(error) = groups.join(*index)
            {
                tracing::warn!(%error, interface = index, "failed to receive announcements of hosts");
            }
        }
        self.joined.retain(|index| lans.interfaces.contains_key(index));
    }

    fn read_announcements(&mut self, frames: &LinkFrames) {
        let (world, now) = (self.context.worlds.last(), self.context.store.clock().now());
        let lans = Lans::of(&world);
        let devices = macs_of_devices(&self.context.store.current());
        let seen = frames.take(LinkProtocol::Announcement).into_iter().filter_map(|arrival| {
            let announcement = announcements::parse(&arrival.packet)?;
            let evidence = Evidence::Name { name: announcement.name, from: announcement.from };
            lans.observation(arrival.interface, MacAddr(arrival.mac), now, evidence)
        });
        self.inventory.observe(seen, &devices);
    }

    /// Reads the hosts that have asked the resolver since the last round.
    fn read_dns_clients(&mut self, lans: &Lans, devices: &BTreeSet<MacAddr>, now: Timestamp) {
        let asked = self.inventory.dns_clients().take();
        let is_in = |lan: &Lan, vlan: u16| vlan == 0 || lan.vlan == Some(vlan);
        let seen = asked.into_iter().filter_map(|client| {
            lans.interfaces.get(&client.interface).filter(|lan| is_in(lan, client.vlan))?;
            lans.observation(client.interface, client.mac, now, Evidence::Traffic { address: client.address })
        });
        self.inventory.observe(seen, devices);
    }

    /// Reads the sampled flows since the last round. They name an address, whose host is known from elsewhere.
    fn read_flows(&mut self, lans: &Lans, devices: &BTreeSet<MacAddr>, now: Timestamp) {
        let events = self.context.handles.get::<Recent>().list();
        let since = self.read_until;
        self.read_until = events.iter().map(|event| event.boot_ns).max().unwrap_or(since).max(since);
        let list = self.inventory.list();
        let host_at = |index: u32, address: IpAddr| {
            let lan = lans.interfaces.get(&index)?;
            let mut hosts = list.hosts.iter().filter(|host| host.interface == lan.name);
            hosts.find(|host| host.ips().any(|own| own == address)).map(|host| host.mac)
        };
        let new = events.iter().filter(|event| event.boot_ns > since && !event.guard);
        let seen = new.filter_map(|event| {
            let address = event.source?;
            let mac = host_at(event.interface, address)?;
            lans.observation(event.interface, mac, now, Evidence::Traffic { address })
        });
        self.inventory.observe(seen, devices);
    }

    /// Raises an alert for each host on the LAN that is no device, and ends the others.
    fn report(&self, list: &HostList, state: &State, now: Timestamp) {
        let is_new = |host: &&Host| host.is_present(now) && state.device_by_mac(host.mac).is_none();
        let new: BTreeMap<String, &Host> =
            list.hosts.iter().filter(is_new).take(MAX_ALERTS).map(|host| (subject(host), host)).collect();
        for (subject, host) in &new {
            let name = host.best_name().map(|name| format!(" ({name})")).unwrap_or_default();
            let message = format!("{}{name} on {} is no device of the gateway", host.mac, host.interface);
            self.context.active_alerts.raise(ALERT, subject, message);
        }
        self.context.active_alerts.keep(ALERT, |known| new.contains_key(known));
    }

    /// Makes the kernel ask hosts whose last answer is old, so that those that are there are known to be online.
    async fn probe(&mut self, list: &HostList, lans: &Lans, now: Timestamp) {
        self.probed.retain(|_, at| at.elapsed() < PROBE_INTERVAL);
        let due = |host: &&Host| {
            let is_due = match host.confirmed_at {
                Some(at) => host.is_online(now) && now.duration_since(at) >= ASK_AFTER,
                None => now.duration_since(host.first_seen) <= ASK_NEW_FOR,
            };
            is_due && !self.probed.contains_key(&host.id())
        };
        let due: Vec<&Host> = list.hosts.iter().filter(due).take(MAX_PROBES).collect();
        let mut probes = Vec::new();
        for host in due {
            self.probed.insert(host.id(), Instant::now());
            let address = host.addresses.last().map(|(address, _)| *address);
            probes.extend(address.zip(lans.index_of(&host.interface)));
        }
        if probes.is_empty() {
            return;
        }
        blocking(move || {
            for (address, index) in probes {
                if let Err(error) = neighbour::probe(address, index) {
                    tracing::debug!(%error, %address, "failed to probe a neighbour");
                }
            }
        })
        .await;
    }
}

fn of_neighbour<'a>(lans: &'a Lans, entry: &TableEntry, now: Timestamp) -> Option<Observation<'a>> {
    let at = now.checked_sub(entry.age).unwrap_or(now);
    let evidence = Evidence::Neighbour { address: entry.address, is_confirmed: entry.is_reachable };
    lans.observation(entry.interface, MacAddr(entry.mac), at, evidence)
}

fn of_lease<'a>(
    world: &World,
    lans: &'a Lans,
    shown: &ShownLease,
    now: Timestamp,
) -> Option<Observation<'a>> {
    if shown.status != LeaseStatus::Active {
        return None;
    }
    let lease = &shown.lease;
    let address = IpAddr::V4(lease.address);
    let is_at = |lan: &Lan| {
        let nets = world.facts.addresses.get(&lan.name);
        nets.is_some_and(|nets| nets.iter().any(|net| net.contains(&address)))
    };
    let (index, _) = lans.interfaces.iter().find(|(_, lan)| is_at(lan))?;
    let at = Timestamp::from_second(lease.starts).unwrap_or(now).min(now);
    let evidence = Evidence::Lease {
        address,
        hostname: lease.hostname.as_deref().map(str::to_owned),
        vendor_class: lease.vendor_class.as_deref().map(str::to_owned),
    };
    lans.observation(*index, lease.mac, at, evidence)
}

fn subject(host: &Host) -> String {
    format!("{}%{}", host.mac, host.interface)
}

/// Returns the MAC addresses of all devices.
fn macs_of_devices(state: &State) -> BTreeSet<MacAddr> {
    state.devices.iter().flat_map(|device| device.all_macs()).collect()
}
