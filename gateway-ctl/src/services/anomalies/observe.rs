//! Observations for the engine: bytes of devices, queries, and hosts since the last time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use gateway_core::anomalies::{AnomalyEngine, Missed, ObservationSource, QuerySeen};
use gateway_core::doh_servers;
use gateway_dns::query_log::Filter;
use gateway_model::Id;
use jiff::{SignedDuration, Timestamp};

use super::flows::FlowPosition;
use super::sources::AnomalySources;
use crate::services::countries::CountryDatabase;
use crate::services::dns::DnsService;
use crate::services::hosts::HostInventory;
use crate::world::World;

/// Maximum number of queries that are read at once. There are no more than so many in memory.
const MAX_QUERIES: usize = 20_000;
/// Time by which the queries that are read overlap with those before.
const OVERLAP: SignedDuration = SignedDuration::from_secs(2);
/// Code of an answer that the name does not exist (RFC 1035).
const NXDOMAIN: u16 = 3;

/// Positions in the sources up to which observations were taken.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// Bytes that a device had sent. Devices have other counters after they got another slot.
    sent: BTreeMap<Id, (u32, u64)>,
    /// ID and time of the last query. `None` before the first observation.
    query: Option<(u64, Timestamp)>,
    flows: FlowPosition,
    /// Queries that were not observed, because there were too many.
    missed_queries: u64,
}

impl Positions {
    /// Returns the numbers of what was not observed.
    pub(super) fn missed(&self) -> Missed {
        Missed { queries: self.missed_queries, flows: self.flows.missed }
    }

    /// Takes observations. Returns the sources that could be read.
    pub(super) fn observe(
        &mut self,
        from: &AnomalySources,
        world: &World,
        engine: &mut AnomalyEngine,
    ) -> BTreeSet<ObservationSource> {
        let mut sources = BTreeSet::new();
        if world.attached.is_some() && self.observe_counters(from, world, engine) {
            sources.insert(ObservationSource::DeviceCounters);
        }
        if let Some(names) = &from.names {
            self.observe_queries(names, from.store.clock().now(), engine);
            sources.insert(ObservationSource::QueryLog);
        }
        if world.attached.is_some() && world.config.flow_log.enabled {
            self.flows.observe(from, world, engine);
            sources.insert(ObservationSource::FlowLog);
            if from.handles.get::<CountryDatabase>().is_open() {
                sources.insert(ObservationSource::Countries);
            }
        }
        if world.attached.is_some() {
            observe_hosts(from, world, engine);
            sources.insert(ObservationSource::Hosts);
        }
        sources
    }

    fn observe_counters(&mut self, from: &AnomalySources, world: &World, engine: &mut AnomalyEngine) -> bool {
        let mut before = std::mem::take(&mut self.sent);
        for device in &world.state.devices {
            let (id, slot) = (device.meta.id, device.meta.slot);
            let Ok(bytes) = from.dataplane.device_bytes(slot) else { return false };
            if let Some((_, counted)) = before.remove(&id).filter(|(counted, _)| *counted == slot) {
                // A counter that is lower than before began again with its maps.
                engine.note_sent(id, bytes.checked_sub(counted).unwrap_or(bytes));
            }
            self.sent.insert(id, (slot, bytes));
        }
        true
    }

    fn observe_queries(&mut self, names: &DnsService, now: Timestamp, engine: &mut AnomalyEngine) {
        // Buffers of several workers enter the log one after the other.
        let since = self.query.map(|(_, time)| time.checked_sub(OVERLAP).unwrap_or(time));
        let filter = Filter { since, ..Filter::default() };
        let limit = if self.query.is_none() { 1 } else { MAX_QUERIES };
        let page = names.resolver.log().read(&filter, None, limit);
        let newest = page.rows.first().map(|record| (record.id, record.time));
        let Some((last, _)) = self.query else {
            self.query = Some(newest.unwrap_or((0, now)));
            return;
        };
        self.query = newest.max(self.query);
        if let Some(oldest) = page.rows.last().filter(|_| page.rows.len() == MAX_QUERIES) {
            self.missed_queries += oldest.id.saturating_sub(last + 1);
        }
        for record in page.rows.iter().filter(|record| record.id > last) {
            let Some(device) = record.client.as_ref().and_then(|client| client.device) else { continue };
            let name = record.name.to_string().trim_end_matches('.').to_ascii_lowercase();
            let query = QuerySeen { name: &name, nxdomain: record.rcode == NXDOMAIN, is_doh: is_doh(&name) };
            engine.note_query(device, &query);
        }
    }
}

/// Reports whether a name is one of a public resolver, or below one.
fn is_doh(name: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| doh_servers::NAMES.iter().copied().collect());
    let ends = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
    std::iter::once(name).chain(ends).any(|name| NAMES.contains(name))
}

/// Notes devices whose MAC address is online at two interfaces.
fn observe_hosts(from: &AnomalySources, world: &World, engine: &mut AnomalyEngine) {
    let hosts = from.handles.get::<HostInventory>().list();
    let now = from.store.clock().now();
    for device in &world.state.devices {
        let online = device.all_macs().into_iter().flat_map(|mac| {
            let at: BTreeSet<&str> = hosts
                .of(mac)
                .filter(|host| host.is_confirmed() && host.is_online(now))
                .map(|host| host.interface.as_str())
                .collect();
            (at.len() > 1).then_some(mac)
        });
        if online.count() > 0 {
            engine.note_spoof(device.meta.id);
        }
    }
}
