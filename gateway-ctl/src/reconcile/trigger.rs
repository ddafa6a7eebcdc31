//! Why the loop runs, and how several reasons become one run.

use std::collections::BTreeSet;

use serde::Serialize;

/// In rising order of importance: a run for several reasons names the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The periodic look.
    Interval,
    /// The last run left something undone.
    Retry,
    /// Something was seen to change.
    Facts,
    /// The plan was valid until now.
    Deadline,
    /// The state changed.
    Revision,
    Start,
    /// Somebody asked for it.
    Manual,
    /// The policies were applied.
    Apply,
}

/// Reasons that wait for the next run.
#[derive(Debug, Default)]
pub(super) struct Pending(BTreeSet<Reason>);

impl Pending {
    pub(super) fn add(&mut self, reason: Reason) {
        self.0.insert(reason);
    }

    /// The most important one; all are taken.
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
