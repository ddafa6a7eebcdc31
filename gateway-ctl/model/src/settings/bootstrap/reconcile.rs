//! The section `reconcile` of the configuration file.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reconcile {
    pub enabled: bool,
    pub interval_sec: u64,
}

impl Default for Reconcile {
    fn default() -> Reconcile {
        Reconcile { enabled: true, interval_sec: 60 }
    }
}
