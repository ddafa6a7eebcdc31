//! Results of the check since the start of the daemon.

use std::collections::VecDeque;

use gateway_core::evaluate::{ComparisonResult, FlowComparison};
use gateway_core::flow_log::{FlowId, FlowPath};
use jiff::Timestamp;

/// Maximum number of differences that are kept.
pub(super) const MAX_DIFFERENCES: usize = 20;

/// Results of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowCheckReport {
    /// Paths that were decided again, with the same result.
    pub agreed: u64,
    /// Paths that cannot be decided again.
    pub unknown: u64,
    /// Paths with another result.
    pub differing: u64,
    /// Time of the last comparison.
    pub checked_at: Option<Timestamp>,
    /// Reason of the last path that cannot be decided again.
    pub last_unknown: Option<String>,
    /// The last differences.
    pub differences: VecDeque<FlowDifference>,
}

/// Difference between the log and the decision function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowDifference {
    pub flow_id: FlowId,
    /// Plan that decided.
    pub generation: u32,
    /// Time from which on the flow took the path.
    pub at: Timestamp,
    /// Human-readable difference.
    pub difference: String,
}

impl FlowCheckReport {
    /// Counts a comparison. Returns its difference, if there is one.
    pub(super) fn note(
        &mut self,
        flow_id: FlowId,
        path: &FlowPath,
        comparison: FlowComparison,
        now: Timestamp,
    ) -> Option<FlowDifference> {
        self.checked_at = Some(now);
        match comparison.result {
            ComparisonResult::Agrees => self.agreed += 1,
            ComparisonResult::Unknown => {
                self.unknown += 1;
                self.last_unknown = comparison.detail;
            }
            ComparisonResult::Differs => {
                self.differing += 1;
                let difference = comparison.detail.unwrap_or_default();
                let (generation, at) = (path.generation, path.at);
                let difference = FlowDifference { flow_id, generation, at, difference };
                self.differences.push_back(difference.clone());
                if self.differences.len() > MAX_DIFFERENCES {
                    self.differences.pop_front();
                }
                return Some(difference);
            }
        }
        None
    }
}
