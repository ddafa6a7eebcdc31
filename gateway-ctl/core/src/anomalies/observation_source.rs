//! Sources of observations.

use schemars::JsonSchema;
use serde::Serialize;

/// Source of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservationSource {
    DeviceCounters,
    QueryLog,
    Hosts,
    FlowLog,
    /// A database of the countries of addresses.
    Countries,
}
