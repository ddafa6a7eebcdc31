//! A total of flows, as the API shows it.

use gateway_core::flow_log::{TopKey, TopRow, Traffic};
use gateway_model::{Id, State};
use schemars::JsonSchema;
use serde::Serialize;

/// Total of the flows with one value of a property.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FlowTotal {
    /// Id of the device or policy; null for flows without one, and for domains, egresses and countries.
    id: Option<Id>,
    /// Name of the device or policy, if it exists; domain, egress, or code of the country. Null for flows without one.
    name: Option<String>,
    /// Number of flows.
    flows: u64,
    /// Number of records whose packets were not counted. Their bytes are missing in the total.
    uncounted: u64,
    /// Number of records of denied flows.
    denied: u64,
    /// Packets and bytes from the clients.
    sent: Traffic,
    /// Packets and bytes to the clients.
    received: Traffic,
}

impl FlowTotal {
    pub(super) fn of(row: TopRow, by: TopKey, state: &State) -> FlowTotal {
        let TopRow { id, name, totals } = row;
        let name = match (by, id) {
            (TopKey::Device, Some(id)) => state.devices.get(id).map(|device| device.name.to_string()),
            (TopKey::Policy, Some(id)) => {
                state.routing_policies.get(id).map(|policy| policy.name.to_string())
            }
            (TopKey::Device | TopKey::Policy, None) => None,
            (TopKey::Domain | TopKey::Egress | TopKey::Country, _) => name,
        };
        FlowTotal {
            id,
            name,
            flows: totals.flows,
            uncounted: totals.uncounted,
            denied: totals.denied,
            sent: totals.sent,
            received: totals.received,
        }
    }
}
