//! Results of the probes by each LAN interface.

use std::collections::BTreeMap;

use gateway_core::health::{Check, CheckState, Finding};
use parking_lot::Mutex;

/// Failures in a row from which the function has failed: one query may be lost on a busy machine.
const FAILURES: u32 = 2;

/// Results by interface.
#[derive(Debug, Default)]
pub(super) struct LanProbes(Mutex<BTreeMap<String, ProbeResult>>);

#[derive(Clone, Debug, Default)]
pub(super) struct ProbeResult {
    failures: u32,
    /// Reason of the last failure.
    detail: String,
}

impl ProbeResult {
    /// Returns the result after one more failure.
    pub(super) fn failed(self, detail: String) -> ProbeResult {
        ProbeResult { failures: self.failures.saturating_add(1), detail }
    }

    pub(super) fn is_well(&self) -> bool {
        self.failures == 0
    }
}

impl LanProbes {
    pub(super) fn set(&self, results: BTreeMap<String, ProbeResult>) {
        *self.0.lock() = results;
    }

    pub(super) fn of(&self, interface: &str) -> ProbeResult {
        let results = self.0.lock();
        results.get(interface).cloned().unwrap_or_default()
    }

    /// Returns the check. `None` while no LAN interface can be probed.
    pub(super) fn check(&self) -> Option<Check> {
        let results = self.0.lock();
        let failed = results.iter().filter(|(_, result)| result.failures >= FAILURES);
        let findings = failed
            .map(|(interface, result)| Finding::no_answer(interface, &result.detail, CheckState::Failed))
            .collect();
        let well = results.keys().cloned().collect::<Vec<_>>().join(", ");
        (!results.is_empty())
            .then(|| Check::of("dns_lan", findings, format!("queries by {well} are answered")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lost_query_is_no_failure() {
        let probes = LanProbes::default();
        assert_eq!(probes.check(), None);
        for (failures, state) in [(0, CheckState::Ok), (1, CheckState::Ok), (2, CheckState::Failed)] {
            let result = ProbeResult { failures, detail: "the query does not reach the resolver".into() };
            probes.0.lock().insert("lan0".into(), result);
            let check = probes.check().expect("a check");
            assert_eq!(check.state, state, "{failures}: {check:?}");
        }
    }
}
