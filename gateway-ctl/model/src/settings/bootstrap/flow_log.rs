//! The section `flow_log` of the configuration file.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};

/// Log of the flows of LAN hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowLog {
    pub enabled: bool,
    /// Records have the server names in the ClientHello of TLS and QUIC.
    pub server_names: bool,
    /// Retention of records in days.
    pub keep_days: u32,
    /// Maximum size of all records on disk, in MiB.
    pub max_mb: u32,
}

impl Default for FlowLog {
    fn default() -> FlowLog {
        FlowLog { enabled: true, server_names: false, keep_days: 30, max_mb: 1024 }
    }
}

const DAYS: RangeInclusive<u32> = 1..=400;
const MEBIBYTES: RangeInclusive<u32> = 32..=1_048_576;

impl FlowLog {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let bounds = [("keep_days", self.keep_days, DAYS), ("max_mb", self.max_mb, MEBIBYTES)];
        for (key, value, range) in bounds {
            if !range.contains(&value) {
                let message = format!("Must be from {} to {}.", range.start(), range.end());
                problems.add(code::RANGE, format!("flow_log.{key}"), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn bounds_of_the_flow_log_are_checked() {
        let parsed = parse("flow_log: { enabled: false, server_names: true, keep_days: 7, max_mb: 64 }");
        let parsed = parsed.expect("valid").flow_log;
        assert!(!parsed.enabled && parsed.server_names && parsed.keep_days == 7);
        let refused = [
            ("flow_log: { keep_days: 0 }", "flow_log.keep_days"),
            ("flow_log: { max_mb: 31 }", "flow_log.max_mb"),
        ];
        for (text, path) in refused {
            let errors = parse(text).expect_err("refused");
            assert_eq!(errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), [path]);
        }
    }
}
