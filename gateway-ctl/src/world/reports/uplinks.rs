//! Report on the uplinks: states, measurements and decisions.

use std::collections::{BTreeMap, VecDeque};

use gateway_core::facts::{Facts, UplinkFacts};
use gateway_model::settings::uplink::UplinkState;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// Number of decisions that are kept.
pub const MAX_DECISIONS: usize = 100;

/// Last report on the uplinks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UplinkStates {
    /// By interface.
    pub uplinks: BTreeMap<String, UplinkReport>,
    /// Interface of the active uplink.
    pub active: Option<String>,
    /// The active uplink is not the one that comes first.
    pub is_on_standby: bool,
    /// Newest first.
    pub decisions: VecDeque<UplinkDecision>,
    pub pins: Vec<PinnedUplink>,
    /// Time of the next probe.
    pub next_eval: Option<Timestamp>,
    pub(crate) facts: UplinkFacts,
}

impl UplinkStates {
    /// Returns the interface of an uplink by its name; the name itself if there is no such uplink any more.
    pub fn interface_of<'a>(&'a self, name: &'a str) -> &'a str {
        let named = self.uplinks.iter().find(|(_, report)| report.name == name);
        named.map_or(name, |(interface, _)| interface)
    }

    /// Adds the selection to the facts of the compiler.
    pub fn enrich(&self, facts: &mut Facts) {
        facts.uplinks.clone_from(&self.facts);
    }
}

/// State and measurements of an uplink.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UplinkReport {
    /// Its name, or that of its interface if it has none.
    pub name: String,
    pub state: UplinkState,
    pub since: Option<Timestamp>,
    pub loss_pct: Option<f64>,
    pub latency_ms: Option<f64>,
    pub jitter_ms: Option<f64>,
    /// Outcomes of the last round.
    pub targets: Vec<TargetReport>,
    pub checked_at: Option<Timestamp>,
}

/// Outcome of the last probe of a target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TargetReport {
    pub address: String,
    pub ok: bool,
    /// Time to the answer in milliseconds.
    pub rtt: Option<f64>,
}

/// A change of the active uplink, or the reason why it was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UplinkDecision {
    pub time: Timestamp,
    /// Uplink that the decision is about.
    pub uplink: String,
    /// Name of the uplink that was active.
    pub from: Option<String>,
    /// Name of the uplink that became active, or would have.
    pub to: Option<String>,
    /// Human-readable reason with its evidence.
    pub reason: String,
    /// The change was made.
    pub applied: bool,
    /// Time at which the kernel had the change; null if it was not made, or is not there yet.
    pub kernel_agrees_at: Option<Timestamp>,
}

/// An uplink that is held in standby because it flaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PinnedUplink {
    pub uplink: String,
    /// Number of pins so far. Each takes twice as long as the one before.
    pub count: u32,
    pub pinned_until: Timestamp,
}
