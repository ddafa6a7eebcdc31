//! The section `plan_history` of the configuration file.

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanHistory {
    /// Maximum number of records of plans that were in force.
    pub keep_records: u32,
    /// Retention of records in days.
    pub keep_days: u32,
    /// Maximum size of all records together, in MiB.
    pub max_mib: u32,
}

impl Default for PlanHistory {
    fn default() -> PlanHistory {
        PlanHistory { keep_records: 50_000, keep_days: 30, max_mib: 128 }
    }
}

impl PlanHistory {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !(100..=1_000_000).contains(&self.keep_records) {
            problems.add(code::RANGE, "plan_history.keep_records", "Must be from 100 to 1000000.");
        }
        if !(1..=3650).contains(&self.keep_days) {
            problems.add(code::RANGE, "plan_history.keep_days", "Must be from 1 to 3650.");
        }
        if !(32..=65_536).contains(&self.max_mib) {
            problems.add(code::RANGE, "plan_history.max_mib", "Must be from 32 to 65536.");
        }
    }
}
