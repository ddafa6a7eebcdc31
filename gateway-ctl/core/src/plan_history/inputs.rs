//! Inputs of a plan, in parts.

use std::sync::Arc;

use gateway_model::State;
use jiff::Timestamp;

use super::facts;
use super::parts::{Part, Parts, RestoreError, json, read};
use crate::compile::Input;
use crate::facts::Facts;
use crate::network::Network;

const STATE: &str = "state/";
const NETWORK: &str = "network";

/// Inputs of a plan. The parts are shared with the state of the gateway.
#[derive(Clone, Debug)]
pub struct PlanInputs {
    pub state: Arc<State>,
    pub network: Arc<Network>,
    pub facts: Arc<Facts>,
    /// Time at which the plan was compiled.
    pub compiled_at: Timestamp,
}

impl PlanInputs {
    /// Returns the compiler's input of the plan itself.
    pub fn input(&self) -> Input<'_> {
        self.input_at(self.compiled_at)
    }

    /// Returns the input for an explanation at a later time.
    pub fn input_at(&self, now: Timestamp) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now }
    }

    /// Hands out the parts that differ from those of earlier inputs, or all, one at a time: together they may be as large as
    /// the state. Secrets are left out.
    pub fn each_part_since(&self, before: Option<&PlanInputs>, take: &mut dyn FnMut(Part)) {
        let empty;
        let old_state = match before {
            Some(before) => before.state.as_ref(),
            None => {
                empty = State::empty();
                &empty
            }
        };
        if !before.is_some_and(|before| Arc::ptr_eq(&before.state, &self.state)) {
            let key = |key: &str| format!("{STATE}{key}");
            self.state
                .parts_since(old_state, &mut |part| take(Part { key: key(&part.key), value: part.json }));
        }
        if before.is_none_or(|before| before.network != self.network) {
            take(Part { key: NETWORK.to_owned(), value: Some(json(&*self.network)) });
        }
        if !before.is_some_and(|before| Arc::ptr_eq(&before.facts, &self.facts)) {
            facts::add_since(before.map(|before| before.facts.as_ref()), &self.facts, take);
        }
    }

    /// Returns the parts that differ from those of earlier inputs, or all.
    pub fn parts_since(&self, before: Option<&PlanInputs>) -> Vec<Part> {
        let mut parts = Vec::new();
        self.each_part_since(before, &mut |part| parts.push(part));
        parts
    }

    /// Puts inputs together.
    pub fn of_parts(parts: &Parts, compiled_at: Timestamp) -> Result<PlanInputs, RestoreError> {
        let known = |key: &str| key.starts_with(STATE) || key.starts_with(facts::FACT) || key == NETWORK;
        if let Some(unknown) = parts.keys().find(|key| !known(key)) {
            return Err(RestoreError::Unknown(unknown.clone()));
        }
        let of_state = parts.iter().filter_map(|(key, value)| Some((key.strip_prefix(STATE)?, &value[..])));
        Ok(PlanInputs {
            state: Arc::new(State::of_parts(of_state)?),
            network: Arc::new(read(parts, NETWORK)?),
            facts: Arc::new(facts::restore(parts)?),
            compiled_at,
        })
    }
}
