//! Observations from the flow log, and the flows on which anomalies rest.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use gateway_core::anomalies::{Anomaly, AnomalyEngine, FlowSeen, MAX_FLOWS};
use gateway_core::countries::Countries as _;
use gateway_core::doh_servers;
use gateway_core::flow_log::{ClientCondition, FlowFilter, FlowId, FlowRecord};
use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};

use super::sources::AnomalySources;
use crate::services::countries::CountryDatabase;
use crate::services::flow_log::FlowLog;
use crate::world::World;

/// Maximum number of flows that are read at once, of those that go on and of those that have ended.
const MAX_READ: usize = 10_000;
/// Age from which on a flow is observed. The log has read it by then.
const MIN_AGE: SignedDuration = SignedDuration::from_secs(6);
/// Records of a device in which the largest flows are looked for.
const MAX_SEARCHED: usize = 1000;

/// Position in the flow log up to which flows were observed.
#[derive(Debug, Default)]
pub(super) struct FlowPosition {
    /// Flows that began before this time were observed. `None` before the first observation.
    until: Option<Timestamp>,
    /// Flows that were not observed, because there were too many.
    pub missed: u64,
}

impl FlowPosition {
    /// Observes the flows that have begun since the last time.
    pub(super) fn observe(&mut self, from: &AnomalySources, world: &World, engine: &mut AnomalyEngine) {
        let now = from.store.clock().now();
        let until = now.checked_sub(MIN_AGE).unwrap_or(now);
        // Flows of before the start were observed then.
        let Some(since) = self.until.replace(until) else { return };
        let filter = FlowFilter {
            since: Some(since),
            begun_since: Some(since),
            until: Some(until),
            ..FlowFilter::default()
        };
        let log = from.handles.get::<FlowLog>();
        let countries = from.handles.get::<CountryDatabase>();
        let mut flows: BTreeMap<FlowId, FlowRecord> = BTreeMap::new();
        for is_active in [false, true] {
            let rows = log.read(&filter, Some(is_active), None, MAX_READ).rows;
            self.missed += u64::from(rows.len() == MAX_READ);
            flows.extend(rows.into_iter().map(|row| (row.record.flow_id, row.record)));
        }
        let nets: Vec<IpNet> = world
            .facts
            .addresses
            .iter()
            .filter(|(name, _)| world.network.lan.contains(name))
            .flat_map(|(_, nets)| nets.iter().copied())
            .collect();
        for record in flows.values() {
            let Some(device) = record.client.as_ref().and_then(|client| client.device) else { continue };
            let destination = record.destination;
            let flow = FlowSeen {
                id: record.flow_id,
                destination,
                port: record.destination_port,
                protocol: record.protocol,
                name: record.names.first().map(String::as_str),
                country: countries.country(destination),
                is_doh: is_doh(destination),
                is_local: nets.iter().any(|net| net.contains(&destination)),
            };
            engine.note_flow(device, &flow);
        }
    }
}

/// Reports whether an address is one of a public resolver of DNS over HTTPS.
fn is_doh(address: IpAddr) -> bool {
    static NETWORKS: LazyLock<Vec<IpNet>> = LazyLock::new(|| doh_servers::networks().collect());
    NETWORKS.iter().any(|network| network.contains(&address))
}

/// Names the flows with the most bytes for an anomaly of a device's counters.
pub(super) fn attach_largest(from: &AnomalySources, engine: &mut AnomalyEngine, anomaly: &Anomaly) {
    let filter = FlowFilter {
        client: Some(ClientCondition::Device(anomaly.device_id)),
        since: Some(anomaly.window.from),
        ..FlowFilter::default()
    };
    let rows = from.handles.get::<FlowLog>().read(&filter, None, None, MAX_SEARCHED).rows;
    let sent = |record: &FlowRecord| record.sent.map_or(0, |sent| sent.bytes);
    let mut records: Vec<FlowRecord> = rows.into_iter().map(|row| row.record).collect();
    records.retain(|record| sent(record) > 0);
    records.sort_by_key(|record| std::cmp::Reverse(sent(record)));
    let Some(largest) = records.first() else { return };
    let to = largest.names.first().cloned().unwrap_or_else(|| largest.destination.to_string());
    let addition = format!(" The largest flow sent {} MiB to {to}.", sent(largest) >> 20);
    let mut ids: Vec<FlowId> = Vec::new();
    for record in &records {
        if !ids.contains(&record.flow_id) && ids.len() < MAX_FLOWS {
            ids.push(record.flow_id);
        }
    }
    engine.attach_flows(anomaly.id, ids, &addition);
}
