//! Verdict in one word.

use schemars::JsonSchema;
use serde::Serialize;

use super::hosts::TreatedHosts;

/// Verdict on the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Word {
    /// The plan is enforced, and nothing leaks. Hosts that no policy is for leave directly.
    Ok,
    /// The same, and hosts are cut off on purpose.
    Blocked,
    /// It is not known whether anything leaks, or no host was seen.
    Unknown,
    /// Packets left past the egress guard.
    Leak,
}

/// State of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Reasons for which it is not known whether the plan is enforced; human-readable.
    pub unknown: Vec<String>,
    /// Packets that left past the egress guard in the last minutes.
    pub escaped_recently: u64,
    /// All of them since they are counted.
    pub escaped: u64,
}

/// Returns the verdict.
pub fn word(hosts: &TreatedHosts, observed: &Observed) -> Word {
    if observed.escaped_recently > 0 {
        Word::Leak
    } else if !observed.unknown.is_empty() || hosts.counts.total() == 0 {
        Word::Unknown
    } else if hosts.counts.blocked > 0 {
        Word::Blocked
    } else {
        Word::Ok
    }
}
