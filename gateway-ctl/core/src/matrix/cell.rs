//! Cell of the leak matrix: the treatment of one policy's traffic in one state.

use std::collections::BTreeMap;

use gateway_model::kinds::routing_policy::HopType;
use schemars::JsonSchema;
use serde::Serialize;

/// One cell for each state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cells {
    /// All tunnels and proxies work that should be up.
    pub up: Cell,
    /// The first hop of the policy is down, everything else works.
    pub degraded: Cell,
    /// All tunnels and proxies are down.
    pub down: Cell,
    /// Up and down by turns: the worse of both.
    pub flapping: Cell,
    /// The daemon died: its own tunnels and the paths to proxies are gone, its plan stays active.
    pub daemon_down: Cell,
    /// No plan is loaded yet.
    pub boot: Cell,
    /// Cells of single hops, by the state in `hops` of the matrix.
    #[serde(flatten)]
    pub hops: BTreeMap<String, Cell>,
}

/// Column in which one hop is down and everything else works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HopColumn {
    /// Name of the column in `states` and `cells`: `wg-a down` for a tunnel, `proxy NAME down`, `uplink NAME down`.
    pub state: String,
    pub r#type: HopType,
    pub target: String,
}

/// Treatment of a policy's traffic in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cell {
    /// Outcome for IPv4.
    pub outcome: Outcome,
    /// Names of the tunnels or uplinks it leaves by; `default` for the default route; null if it does not leave.
    pub via: Option<String>,
    /// True if traffic that is intended for a tunnel, proxy or mesh peer leaves directly. Traffic that a proxy does not
    /// take counts, such as echo requests.
    pub leak: bool,
    /// State of queries to external name servers. Queries to the gateway itself stay on the LAN.
    pub dns: Outcome,
    pub ipv6: Outcome,
}

/// Outcome, in order of exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Blocked,
    /// By the tunnels that it takes when all of them work.
    Tunnel,
    /// By other tunnels than when all of them work.
    NextHop,
    Direct,
}
