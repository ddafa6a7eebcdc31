//! The section `anomalies` of the configuration file.

use serde::{Deserialize, Serialize};

use crate::kinds::anomaly::AnomalyKind;
use crate::problem::{Problems, code};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Anomalies {
    /// The traffic of devices is compared with what is usual.
    pub enabled: bool,
    /// Hours that a device is observed before its values are compared.
    pub learning_hours: u32,
    /// MiB that a device may send within an hour.
    pub large_upload_mib: u32,
    /// Kinds that are not looked for. By default, those of which fewer than 80 of 100 findings are right in the test of the
    /// detection.
    pub disabled_kinds: Vec<AnomalyKind>,
}

impl Default for Anomalies {
    fn default() -> Anomalies {
        Anomalies {
            enabled: true,
            learning_hours: 168,
            large_upload_mib: 2048,
            disabled_kinds: vec![
                AnomalyKind::NewDestinationCountry,
                AnomalyKind::Beaconing,
                AnomalyKind::NightActivity,
            ],
        }
    }
}

impl Anomalies {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.learning_hours > 8760 {
            problems.add(code::RANGE, "anomalies.learning_hours", "Must be from 0 to 8760.");
        }
        if !(1..=1_048_576).contains(&self.large_upload_mib) {
            problems.add(code::RANGE, "anomalies.large_upload_mib", "Must be from 1 to 1048576.");
        }
    }
}
