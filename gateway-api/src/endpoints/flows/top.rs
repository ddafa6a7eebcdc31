//! Totals of flows, as the API shows them.

use gateway_core::flow_log::{TopKey, TopRow, Traffic};
use gateway_ctl::services::flow_log::FlowTotals;
use gateway_model::{Id, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// Totals of flows by one property.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FlowTop {
    /// The largest totals, the largest first.
    totals: Vec<FlowTotal>,
    /// Every record of the time that matches was added up, those of totals beyond the limit too.
    complete: bool,
    /// Time of the oldest record that was read, if the search ended before all were; null if all were.
    searched_back_to: Option<Timestamp>,
    /// Number of records with further values of the property than are distinguished. They are in no total.
    others: u64,
}

impl FlowTop {
    pub(super) fn of(totals: FlowTotals, by: TopKey, state: &State) -> FlowTop {
        let FlowTotals { rows, others, ended_at } = totals;
        FlowTop {
            totals: rows.into_iter().map(|row| FlowTotal::of(row, by, state)).collect(),
            complete: ended_at.is_none() && others == 0,
            searched_back_to: ended_at.map(|end| end.time),
            others,
        }
    }
}

/// Total of the flows with one value of a property.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowTotal {
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
    fn of(row: TopRow, by: TopKey, state: &State) -> FlowTotal {
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
