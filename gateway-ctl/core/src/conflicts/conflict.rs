//! Conflict: a finding about policies that probably do not do what is intended.

use gateway_model::id::Id;
use schemars::JsonSchema;
use serde::Serialize;

/// Something about one or several policies that is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conflict {
    pub kind: ConflictKind,
    /// The policy it is about, then those it has the conflict with.
    pub policies: Vec<Id>,
    /// A sentence for people.
    pub message: String,
    pub severity: Severity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Matches the same as another one and does the same.
    Duplicate,
    /// Matches nothing that policies before it leave over.
    Shadowed,
    /// Matches the same as another one with the same priority and sends it elsewhere, or demands another
    /// underlay for the same tunnel.
    Contradictory,
    /// Names hops or sources that do not exist.
    UnreachableTarget,
    /// Tunnels would be their own underlays.
    Loop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
}
