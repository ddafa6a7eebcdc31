//! Triggers of the reconcile loop, and their combination into one run.

use std::collections::BTreeSet;

use serde::Serialize;

/// Trigger of a run, in rising order of importance. A run with several triggers names the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Periodic run.
    Interval,
    /// A plan went live.
    Check,
    /// The last run failed partially.
    Retry,
    /// A change was observed.
    Facts,
    /// The validity of the plan ended.
    Deadline,
    /// The state changed.
    Revision,
    Start,
    /// Requested by a user.
    Manual,
    /// The policies were applied.
    Apply,
}

/// Extent of the comparison of the policy maps with the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Compares the maps with a plan that was active before the run.
    Maps,
    /// Trusts the maps if the plan is the active one.
    Plan,
}

impl Reason {
    /// Returns the extent of the comparison in a run with this trigger. Reading the maps of a large plan takes as long
    /// as all other parts of a run. No message of the kernel reports a change of a map, so runs that follow a change
    /// of the state or of the facts would find one by accident only.
    pub fn check(self) -> Check {
        match self {
            Reason::Revision | Reason::Apply | Reason::Facts => Check::Plan,
            Reason::Interval
            | Reason::Check
            | Reason::Retry
            | Reason::Deadline
            | Reason::Start
            | Reason::Manual => Check::Maps,
        }
    }
}

/// Triggers that wait for the next run.
#[derive(Debug, Default)]
pub(super) struct Pending(BTreeSet<Reason>);

impl Pending {
    pub(super) fn add(&mut self, reason: Reason) {
        self.0.insert(reason);
    }

    /// Removes all triggers and returns the most important one.
    pub(super) fn take(&mut self) -> Option<Reason> {
        std::mem::take(&mut self.0).pop_last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_come_together_are_one_run_for_the_most_important() {
        let mut pending = Pending::default();
        for reason in [Reason::Facts, Reason::Apply, Reason::Interval, Reason::Facts] {
            pending.add(reason);
        }
        assert_eq!(pending.take(), Some(Reason::Apply));
        assert_eq!(pending.take(), None);
    }
}
