//! Triggers of the reconcile loop, and their combination into one run.

use std::collections::BTreeSet;

use serde::Serialize;

/// Trigger of a run, in rising order of importance. A run with several triggers names the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Periodic run.
    Interval,
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
