//! A cell of the leak matrix: what happens to the traffic of one policy in one state.

use schemars::JsonSchema;
use serde::Serialize;

/// One cell for each state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cells {
    /// All tunnels and proxies work, so far as they are wanted up.
    pub up: Cell,
    /// The first hop of the policy is down, everything else works.
    pub degraded: Cell,
    /// All tunnels and proxies are down.
    pub down: Cell,
    /// Up and down by turns: the worse of both.
    pub flapping: Cell,
    /// The daemon died: tunnels that it carried itself and the way to proxies are gone, its plan goes on holding.
    pub daemon_down: Cell,
    /// No plan is loaded yet.
    pub boot: Cell,
}

/// Treatment of a policy's traffic in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cell {
    /// Of IPv4.
    pub outcome: Outcome,
    /// Names of the tunnels or uplinks it leaves by; `default` for the default route; null if it does not leave.
    pub via: Option<String>,
    /// Traffic that is meant for a tunnel, proxy or mesh peer goes out directly; what a proxy does not take counts,
    /// echo requests for one.
    pub leak: bool,
    /// Of questions to name servers outside. Those to the gateway itself stay on the LAN.
    pub dns: Outcome,
    pub ipv6: Outcome,
}

/// In the order of exposure.
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
