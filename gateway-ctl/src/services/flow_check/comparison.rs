//! Comparison of paths with their plans, each of which is put together once.

use std::collections::HashMap;

use gateway_core::evaluate::recorded_flow::compare;
use gateway_core::evaluate::{ComparisonResult, FlowComparison};
use gateway_core::flow_log::{FlowPath, FlowRecord};

use crate::services::plan_history::{PastError, PastPlan, PlanHistory};

/// Plans that are kept for the next path.
const MAX_PLANS: usize = 8;

pub(super) struct Comparer<'a> {
    history: &'a PlanHistory,
    /// By generation. Its policy maps are the same whatever inputs it had.
    plans: HashMap<u32, Result<PastPlan, PastError>>,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(history: &'a PlanHistory) -> Comparer<'a> {
        Comparer { history, plans: HashMap::new() }
    }

    /// Compares a path of a flow with its plan.
    pub(super) fn compare(&mut self, record: &FlowRecord, path: &FlowPath) -> FlowComparison {
        if self.plans.len() >= MAX_PLANS && !self.plans.contains_key(&path.generation) {
            self.plans.clear();
        }
        let history = self.history;
        let plan = self
            .plans
            .entry(path.generation)
            .or_insert_with(|| history.of_generation(path.generation, path.at));
        let first = compare_with(plan, record, path);
        if first.result != ComparisonResult::Differs {
            return first;
        }
        // The exact inputs of then decide.
        compare_with(&history.of_generation(path.generation, path.at), record, path)
    }
}

fn compare_with(past: &Result<PastPlan, PastError>, record: &FlowRecord, path: &FlowPath) -> FlowComparison {
    match past {
        Ok(past) if past.plan.is_reproduced => compare(&past.plan.inputs, &past.plan.compiled, record, path),
        Ok(_) => FlowComparison::unknown("another version of the gateway compiled the plan"),
        Err(error) => FlowComparison::unknown(error.to_string()),
    }
}
