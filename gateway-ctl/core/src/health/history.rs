//! Checks over time: since when each has its state, and what has changed.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Check, CheckState, Code};

/// Check with the time since which it has its state and code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedCheck {
    pub check: Check,
    pub since: Timestamp,
}

/// Change that is worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub check: Check,
    /// State before; `None` for a new check.
    pub before: Option<CheckState>,
}

/// Last state of each check.
#[derive(Clone, Debug, Default)]
pub struct CheckHistory(BTreeMap<&'static str, (CheckState, Code, Timestamp)>);

impl CheckHistory {
    /// Takes over new results. A check that is missing is forgotten. A new check that is well is no change.
    pub fn track(&mut self, checks: Vec<Check>, now: Timestamp) -> (Vec<TrackedCheck>, Vec<StateChange>) {
        let mut changes = Vec::new();
        let mut last = BTreeMap::new();
        let mut tracked = Vec::with_capacity(checks.len());
        for check in checks {
            let before = self.0.get(check.name).copied();
            let same = before.filter(|(state, code, _)| (*state, *code) == (check.state, check.code));
            let since = same.map_or(now, |(_, _, since)| since);
            let is_quiet = before.is_none() && matches!(check.state, CheckState::Ok | CheckState::Unknown);
            if same.is_none() && !is_quiet {
                changes.push(StateChange { check: check.clone(), before: before.map(|(state, ..)| state) });
            }
            last.insert(check.name, (check.state, check.code, since));
            tracked.push(TrackedCheck { check, since });
        }
        self.0 = last;
        (tracked, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Finding;

    #[test]
    fn a_change_is_reported_once_and_the_time_is_that_of_the_change() {
        let mut history = CheckHistory::default();
        let at = |second| Timestamp::new(second, 0).unwrap();
        let check = |findings| vec![Check::of("dns_upstreams", findings, "")];
        let mut track = |findings, second| {
            let (tracked, changes) = history.track(check(findings), at(second));
            (tracked[0].since.as_second(), changes.len())
        };
        assert_eq!(track(vec![], 1), (1, 0), "well from the start");
        assert_eq!(track(vec![Finding::no_upstream()], 2), (2, 1));
        assert_eq!(track(vec![Finding::no_upstream()], 3), (2, 0));
        assert_eq!(track(vec![Finding::upstream_down("192.0.2.1", "refused")], 4), (4, 1));
        assert_eq!(
            track(vec![Finding::upstream_down("192.0.2.1", "late")], 5),
            (4, 0),
            "another reason only"
        );
        assert_eq!(track(vec![], 6), (6, 1));
        let (_, changes) = history.track(Vec::new(), at(7));
        assert!(changes.is_empty());
        let (_, changes) = history.track(check(vec![Finding::no_upstream()]), at(8));
        assert_eq!(changes[0].before, None, "a forgotten check is new");
    }
}
