//! Policies that are pending in an export: the forms in which they steer traffic there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Names;
use super::ops::form;
use crate::id::{Id, Revision};
use crate::kinds::RoutingPolicy;
use crate::problem::{Problems, Warning, code};
use crate::registry::decode_input;
use crate::resource::{Meta, Resource};
use crate::state::State;
use crate::state::planned::same_content;

/// A policy whose stored form is not the applied one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PendingPolicy {
    /// Id of the policy.
    pub id: String,
    /// The policy as it steers traffic, merged with its profile, chain and privacy class; null if it was never applied.
    pub applied: Option<Value>,
}

impl PendingPolicy {
    /// Returns the pending policies of a state.
    pub(crate) fn all(state: &State, secrets: bool) -> Vec<PendingPolicy> {
        let applied = |id: Id| state.applied.policies.get(id).map(|policy| form(policy.as_ref(), secrets));
        let ids = state.pending_policy_ids().into_iter();
        ids.map(|id| PendingPolicy { id: id.to_string(), applied: applied(id) }).collect()
    }
}

/// The applied form of a policy that stays pending.
pub(super) struct AppliedForm {
    pub id: Id,
    /// None: the policy was never applied.
    policy: Option<RoutingPolicy>,
}

/// Decodes the applied forms. A policy whose applied form is not valid here comes into force as it is stored, with a
/// warning: without either form its devices would have no policy.
pub(super) fn decode(
    draft: &State,
    pending: &[PendingPolicy],
    names: &Names<'_>,
    problems: &mut Problems,
    warnings: &mut Vec<Warning>,
) -> Vec<AppliedForm> {
    let mut forms = Vec::new();
    for (index, one) in pending.iter().enumerate() {
        let path = format!("pending[{index}]");
        let Some(id) = names.id(RoutingPolicy::NOUN, &one.id).or_else(|| one.id.parse().ok()) else {
            problems.add(code::FORMAT, format!("{path}.id"), "Expected the id of a policy.");
            continue;
        };
        let mut policy = None;
        if let Some(applied) = &one.applied {
            let mut applied = applied.clone();
            if let Value::Object(map) = &mut applied {
                RoutingPolicy::resolve(map, names);
            }
            match read(draft, applied) {
                Ok(read) => policy = Some(read),
                Err(found) => {
                    let message = format!(
                        "The applied form of the policy {id} is not valid here, so its stored form is in force: {found}"
                    );
                    warnings.push(Warning::new(format!("{path}.applied"), message));
                    continue;
                }
            }
        } else if !draft.routing_policies.contains(id) {
            continue;
        }
        forms.push(AppliedForm { id, policy });
    }
    forms
}

/// Decodes and checks a policy. Missing references are no fault: what they name may be deleted since the apply.
fn read(draft: &State, applied: Value) -> Result<RoutingPolicy, Problems> {
    let (mut policy, _) = decode_input::<RoutingPolicy>(applied, None, draft)?;
    policy.prepare();
    let mut found = Problems::new();
    policy.validate(draft, &mut found);
    let faults = found.iter().filter(|problem| problem.code != code::UNKNOWN_REFERENCE).count();
    if faults == 0 { Ok(policy) } else { Err(found) }
}

/// Puts the applied forms of the pending policies in force. One that has this form already keeps it.
pub(super) fn restore(draft: &mut State, before: &State, forms: &[AppliedForm]) {
    if forms.is_empty() {
        return;
    }
    let had = |id: Id| before.applied.policies.get(id);
    let is_same = |form: &AppliedForm| match (had(form.id), &form.policy) {
        (None, None) => true,
        (Some(had), Some(policy)) => same_content(had.as_ref(), policy),
        _ => false,
    };
    if forms.iter().all(is_same) {
        return;
    }
    let mut applied = draft.applied.clone();
    for form in forms.iter().filter(|form| !is_same(form)) {
        let Some(mut policy) = form.policy.clone() else {
            applied.remove(form.id, draft.revision);
            continue;
        };
        let stored = draft.routing_policies.get(form.id).or_else(|| had(form.id)).map(|row| row.meta.clone());
        let Some(meta) = stored.or_else(|| deleted_meta(draft, form.id, &policy)) else { continue };
        // Not the revision of the stored form, which it differs from.
        policy.meta = Meta { revision: Revision(0), ..meta };
        // A policy that takes nothing from others is its own stored form, so it needs no record of what it was merged from.
        applied.put(policy, None);
    }
    draft.set_applied(applied);
}

/// Returns the metadata of a policy that was deleted and still steers traffic. Its slot is not the next one of a new
/// policy.
fn deleted_meta(draft: &mut State, id: Id, policy: &RoutingPolicy) -> Option<Meta> {
    let slot = draft.routing_policies.free_slot()?;
    let now = draft.now();
    let meta =
        Meta { id, slot, created_at: now, updated_at: now, revision: draft.revision, origin_node: None };
    let row = RoutingPolicy { meta: meta.clone(), ..policy.clone() };
    draft.routing_policies.put(row).ok()?;
    draft.routing_policies.take(id, draft.revision);
    Some(meta)
}
