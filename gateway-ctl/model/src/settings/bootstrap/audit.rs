//! The section `audit` of the configuration file.

use serde::{Deserialize, Serialize};

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
