//! Dry run by a plan that was in force at an earlier time.

use jiff::Timestamp;

use super::evaluate;
use super::evaluation::{Evaluation, PlanInForce};
use super::request::{Refusal, Request};
use crate::compile::Compiled;
use crate::plan_history::{InForce, PlanInputs};

/// Evaluates a request by the plan of an earlier time. `compiled` is the plan of the inputs.
pub fn evaluate_at(
    request: &Request,
    at: Timestamp,
    inputs: &PlanInputs,
    compiled: &Compiled,
    in_force: &InForce,
    reproduced: bool,
) -> Result<Evaluation, Refusal> {
    // What the request does not name is taken from then, too.
    let mut evaluation = evaluate(&inputs.input_at(at), compiled, request)?;
    let InForce { entry, from, until, .. } = in_force;
    let plan = PlanInForce {
        at,
        generation: entry.header.generation,
        from: *from,
        until: *until,
        revision: entry.header.revision,
        observed_at: entry.header.at,
        reproduced,
    };
    let end = until.map_or("now".to_owned(), |until| format!("{until:.0}"));
    let mut trace = vec![format!("by plan {}, in force from {from:.0} until {end}", plan.generation)];
    if !reproduced {
        let note =
            "this version compiles another plan from the configuration of then: the decision may differ";
        trace.push(note.to_owned());
    }
    if request.name().is_none() && request.known_as.is_empty() && !compiled.plan.dataplane.domains.is_empty()
    {
        let note = "the names that the device had resolved are not kept: policies for domains do not match";
        trace.push(note.to_owned());
    }
    trace.append(&mut evaluation.trace);
    Ok(Evaluation { as_of: Some(plan), trace, ..evaluation })
}
