//! Activation of a plan, as the driver of the kernel reports it.

use gateway_core::plan;
use gateway_core::plan_history::PlanInputs;
use gateway_core::shared::Shared;
use jiff::Timestamp;

/// Plan that went live, or is live with new inputs.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    pub generation: u32,
    pub inputs: PlanInputs,
    pub dataplane: Shared<plan::Dataplane>,
    pub at: Timestamp,
}
