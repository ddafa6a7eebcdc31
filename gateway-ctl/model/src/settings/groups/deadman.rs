//! The dead-man switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::problem::Problems;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    /// Extent of a wipe.
    #[derive(Default)]
    pub enum WipeLevel {
        /// Logs, the audit trail, sessions.
        Soft = "soft",
        /// Also all configuration, users and keys. What comes from the LAN is blocked by the only policy that is left.
        #[default]
        Medium = "medium",
        /// Everything the gateway has written. It stops, and everything stays blocked.
        Hard = "hard",
    }
}

/// Action when no administrator has checked in for too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "DeadmanSwitch")]
pub struct DeadmanSettings {
    pub enabled: bool,
    /// Without a request by an administrator or an operator: 1 to 8760.
    #[schemars(range(min = 1, max = 8760))]
    pub hours: u64,
    pub level: WipeLevel,
}

impl Default for DeadmanSettings {
    fn default() -> Self {
        Self { enabled: false, hours: 168, level: WipeLevel::Medium }
    }
}

impl Group for DeadmanSettings {
    const KEY: &'static str = "deadman";
    const NOUN: &'static str = "deadman";

    fn validate(&self, _: &State, problems: &mut Problems) {
        check_range("hours", self.hours, 1..=8760, problems);
    }
}
