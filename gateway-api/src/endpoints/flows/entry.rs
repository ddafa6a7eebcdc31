//! A record of the flow log, as the API shows it.

use std::net::IpAddr;

use gateway_core::countries::{Countries, CountryCode};
use gateway_core::flow_log::{Client, Decision, FlowEnd, FlowId, FlowPath, Traffic};
use gateway_ctl::services::flow_log::FlowRow;
use gateway_model::{Id, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::protocol;

/// Record of a flow, or of a part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FlowEntry {
    /// Id of the flow, the same in all its records.
    flow_id: FlowId,
    /// Id of the record; null while the flow goes on.
    id: Option<u64>,
    /// The flow goes on.
    active: bool,
    /// Number of the part, from 0.
    part: u32,
    /// Null if the privacy class of the device keeps the log anonymous.
    client: Option<FlowClient>,
    destination: IpAddr,
    /// Country of the destination, by the database of `countries.database` as it is now; null if it is not known.
    country: Option<CountryCode>,
    /// Destination port; of ICMP, 256 times the type plus the code.
    destination_port: u16,
    /// Name of the protocol, such as tcp, or its number.
    protocol: String,
    /// Names by which the client had asked the resolver for the destination, the newest first. Empty if it had not.
    names: Vec<String>,
    /// Server name in the ClientHello; null if it was not observed.
    server_name: Option<String>,
    /// Last decision.
    verdict: Decision,
    /// Reason of the last decision, as in `/metrics`.
    reason: Option<&'static str>,
    /// Policy of the last decision; null without one.
    policy: Option<FlowPolicy>,
    /// Last egress: tunnel, uplink or proxy; `auto` for the default route by the main routing table. Null if nothing left.
    egress: Option<String>,
    /// The first path and the newest ones, the oldest first.
    paths: Vec<FlowPathEntry>,
    /// Number of changes of the path, also of those that are not listed.
    path_changes: u32,
    /// Packets and bytes from the client in this part, with IP headers, also those that were denied; null if they were not
    /// counted.
    sent: Option<Traffic>,
    /// Packets and bytes to the client; null if they were not counted.
    received: Option<Traffic>,
    started_at: Timestamp,
    /// Time at which the last packet was observed; null if none was counted.
    last_at: Option<Timestamp>,
    /// End of the flow; null while it goes on, or if the end was not observed.
    ended_at: Option<Timestamp>,
    /// Cause of the end of this record; null while the flow goes on.
    end: Option<FlowEnd>,
}

/// Client of a flow.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowClient {
    ip: IpAddr,
    port: u16,
    mac: String,
    /// Interface by which it came; null if its name is not known any more.
    interface: Option<String>,
    /// VLAN tag, 0 without one.
    vlan: u16,
    device_id: Option<Id>,
    /// Name of the device; null if it is none, or was deleted.
    device: Option<String>,
    /// Trust class of the device at that time.
    trust_class: Option<String>,
}

/// Policy, or exception, of a path.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowPolicy {
    id: Id,
    /// Name; null if it was deleted, or is an exception.
    name: Option<String>,
}

/// Path of a flow from an instant on.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowPathEntry {
    /// Time from which the path was observed.
    at: Timestamp,
    /// Generation of the plan that decided.
    generation: u32,
    verdict: Decision,
    reason: Option<&'static str>,
    policy: Option<FlowPolicy>,
    /// Hops of the policy in their order at that time.
    hops: Vec<String>,
    egress: Option<String>,
    /// Number of the leg; null for the main routing table, and if nothing left.
    leg: Option<u8>,
}

impl FlowEntry {
    pub(super) fn of(row: FlowRow, state: &State, countries: &dyn Countries) -> FlowEntry {
        let FlowRow { id, record } = row;
        let last = record.path();
        FlowEntry {
            flow_id: record.flow_id,
            id,
            active: id.is_none(),
            part: record.part,
            verdict: last.map_or(Decision::Permitted, |path| path.decision),
            reason: last.and_then(FlowPath::reason_text),
            policy: last.and_then(|path| path.policy).map(|id| FlowPolicy::of(id, state)),
            egress: last.and_then(|path| path.egress.clone()),
            client: record.client.map(|client| FlowClient::of(client, state)),
            destination: record.destination,
            country: countries.country(record.destination),
            destination_port: record.destination_port,
            protocol: protocol::name(record.protocol),
            names: record.names,
            server_name: record.server_name,
            paths: record.paths.into_iter().map(|path| FlowPathEntry::of(path, state)).collect(),
            path_changes: record.path_changes,
            sent: record.sent,
            received: record.received,
            started_at: record.flow_id.start(),
            last_at: record.last_at,
            ended_at: record.ended_at,
            end: record.end,
        }
    }
}

impl FlowEntry {
    pub(super) fn with_active(mut self, active: bool) -> FlowEntry {
        self.active = active;
        self
    }
}

impl FlowClient {
    fn of(client: Client, state: &State) -> FlowClient {
        let device = client.device.and_then(|id| state.devices.get(id));
        FlowClient {
            ip: client.address,
            port: client.port,
            mac: client.mac.to_string(),
            interface: client.interface_name,
            vlan: client.vlan,
            device_id: client.device,
            device: device.map(|device| device.name.to_string()),
            trust_class: client.trust_class,
        }
    }
}

impl FlowPolicy {
    fn of(id: Id, state: &State) -> FlowPolicy {
        FlowPolicy { id, name: state.routing_policies.get(id).map(|policy| policy.name.to_string()) }
    }
}

impl FlowPathEntry {
    fn of(path: FlowPath, state: &State) -> FlowPathEntry {
        FlowPathEntry {
            at: path.at,
            generation: path.generation,
            verdict: path.decision,
            reason: path.reason_text(),
            policy: path.policy.map(|id| FlowPolicy::of(id, state)),
            hops: path.hops,
            egress: path.egress,
            leg: path.leg,
        }
    }
}
