//! Plans that were put together again.

use std::collections::VecDeque;
use std::sync::Arc;

use gateway_core::Compiled;
use gateway_core::compile::compile;
use gateway_core::plan_history::{Content, InForce, Part, Parts, PlanInputs, digest};

use super::error::PastError;
use super::kept::View;
use super::payload;

/// Number of plans that are kept in memory for the next question.
const MAX_CACHED: usize = 4;

/// Inputs of a time, and the plan that they compile to.
#[derive(Debug)]
pub struct RestoredPlan {
    pub inputs: PlanInputs,
    pub compiled: Compiled,
    /// The plan is the one that was in force. Another version of the compiler may make another plan of the inputs.
    pub is_reproduced: bool,
}

impl RestoredPlan {
    pub(super) fn read(in_force: &InForce, view: &View) -> Result<RestoredPlan, PastError> {
        let mut parts = Parts::new();
        for (content, packed) in view.records(in_force).ok_or(PastError::Damaged)? {
            if content == Content::Whole {
                parts.clear();
            }
            let changed: Vec<Part> = payload::unpack(&packed).ok_or(PastError::Damaged)?;
            changed.into_iter().for_each(|part| part.apply(&mut parts));
        }
        let header = &in_force.entry.header;
        let inputs = PlanInputs::of_parts(&parts, header.compiled_at)?;
        let compiled = compile(&inputs.input());
        let is_reproduced = digest(&compiled.plan.dataplane) == header.digest;
        Ok(RestoredPlan { inputs, compiled, is_reproduced })
    }
}

/// The plans that were asked for last, by the ID of their record.
#[derive(Debug, Default)]
pub(super) struct RestoredPlans(VecDeque<(u64, Arc<RestoredPlan>)>);

impl RestoredPlans {
    pub(super) fn get(&mut self, id: u64) -> Option<Arc<RestoredPlan>> {
        let index = self.0.iter().position(|(have, _)| *have == id)?;
        let found = self.0.remove(index)?;
        let plan = found.1.clone();
        self.0.push_back(found);
        Some(plan)
    }

    pub(super) fn put(&mut self, id: u64, plan: Arc<RestoredPlan>) {
        self.0.push_back((id, plan));
        while self.0.len() > MAX_CACHED {
            self.0.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
