//! The section `audit` of the configuration file.

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// Maximum number of entries of the audit trail.
    pub keep_entries: u64,
    /// Retention of entries in days.
    pub keep_days: u32,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { keep_entries: 100_000, keep_days: 365 }
    }
}

impl Audit {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !(1_000..=10_000_000).contains(&self.keep_entries) {
            problems.add(code::RANGE, "audit.keep_entries", "Must be from 1000 to 10000000.");
        }
        if !(1..=36_500).contains(&self.keep_days) {
            problems.add(code::RANGE, "audit.keep_days", "Must be from 1 to 36500.");
        }
    }
}
