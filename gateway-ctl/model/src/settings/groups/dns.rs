//! Selection among the upstream servers of the resolver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::problem::Problems;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    pub enum RotationMode {
        /// Weighted by how fast they answer.
        LoadBalance = "load_balance",
        /// All at once; the first answer counts.
        Parallel = "parallel",
        Fastest = "fastest",
        RoundRobin = "round_robin",
        Random = "random",
        /// In the order given; the next one when one fails.
        Sequential = "sequential",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsRotation {
    pub mode: RotationMode,
    /// Time in seconds that a choice is kept; 0 chooses for each query.
    pub interval_sec: u64,
    /// Keeps each device on its server.
    pub sticky_per_device: bool,
}

impl Default for DnsRotation {
    fn default() -> Self {
        Self { mode: RotationMode::LoadBalance, interval_sec: 0, sticky_per_device: false }
    }
}

impl Group for DnsRotation {
    const KEY: &'static str = "dns.rotation";
    const NOUN: &'static str = "dns_rotation";

    fn validate(&self, _: &State, problems: &mut Problems) {
        check_range("interval_sec", self.interval_sec, 0..=86_400, problems);
    }
}
