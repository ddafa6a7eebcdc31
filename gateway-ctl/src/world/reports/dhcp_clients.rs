//! States of the DHCP clients.

use std::collections::BTreeMap;

use gateway_core::facts::{Facts, Lease};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// States by interface. Only interfaces with a running client are here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DhcpStates {
    pub clients: BTreeMap<String, DhcpState>,
}

impl DhcpStates {
    /// Adds the leases to the facts of the compiler.
    pub fn enrich(&self, facts: &mut Facts) {
        let leases = self.clients.iter();
        facts.leases =
            leases.filter_map(|(name, state)| Some((name.clone(), state.lease.clone()?))).collect();
    }
}

/// Stage of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DhcpStage {
    /// It asks for a lease.
    #[default]
    Searching,
    Bound,
    /// It has ended, and is started again.
    Failed,
}

/// State of a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DhcpState {
    pub stage: DhcpStage,
    pub lease: Option<Lease>,
    /// Time of the last lease or renewal.
    pub leased_at: Option<Timestamp>,
    /// Human-readable reason for which there is no lease.
    pub error: Option<String>,
}

impl DhcpState {
    pub fn expires_at(&self) -> Option<Timestamp> {
        let seconds = SignedDuration::from_secs(self.lease.as_ref()?.seconds.into());
        self.leased_at?.checked_add(seconds).ok()
    }
}
