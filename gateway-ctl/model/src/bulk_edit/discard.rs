//! Discard of pending policies: stored policies go back to their applied form.
//!
//! Profiles, chains and privacy classes that fed them go back as well, in the fields that an apply freezes, but only if
//! nothing but policies uses them. For devices and exceptions such a change has taken effect already, and to take it
//! back could let traffic out. Decision 0020 says why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::diff::{ItemChange, Op, diff, fields_of};
use super::undo::{Target, merged, restore_all};
use crate::id::Id;
use crate::kinds::RoutingPolicy;
use crate::registry::{self, Kind};
use crate::resource::Resource;
use crate::state::planned::same_content;
use crate::state::{MergedFrom, State};

/// Fields of a profile that an apply freezes.
const PROFILE: &[&str] =
    &["hops", "chain", "splitting", "hop_mode", "fail_policy", "sticky", "privacy_class"];
const CHAIN: &[&str] = &["hops", "enabled"];
const PRIVACY_CLASS: &[&str] = &["fail_policy_floor"];

const UNRECORDED: &str =
    "The form in which it was saved at its apply is not known. The next apply records it.";
const FED: &str = "Its profile, chain or privacy class was changed since it was applied.";

/// Result of a discard.
#[derive(Clone, Debug, Default)]
pub struct Discarded {
    pub changes: Vec<ItemChange>,
    pub remaining: Vec<PendingPolicy>,
}

/// A policy that stays pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingPolicy {
    pub id: Id,
    pub name: String,
    /// Human-readable reason.
    pub reason: String,
}

/// Returns the changes that an apply of all stored policies would make to the applied ones.
pub fn pending_changes(state: &State) -> Vec<ItemChange> {
    let change = |id: Id| {
        let (applied, stored) = (state.applied.policies.get(id), state.routing_policies.get(id));
        let policy = stored.or(applied)?;
        let mut diff = BTreeMap::new();
        let op = match (applied, stored) {
            (None, _) => Op::Create,
            (Some(_), None) => Op::Delete,
            (Some(applied), Some(stored)) => {
                diff = fields_of(applied.as_ref(), state.resolved(stored).as_ref());
                diff.remove("ended_at");
                Op::Update
            }
        };
        Some(ItemChange { op, kind: RoutingPolicy::NOUN, id, name: policy.name.clone(), path: None, diff })
    };
    state.pending_policy_ids().into_iter().filter_map(change).collect()
}

/// Discards the pending changes on a fresh draft. The applied policies stay.
pub fn discard(draft: &mut State) -> Discarded {
    let before = draft.clone();
    let pending = draft.pending_policy_ids();
    if pending.is_empty() {
        return Discarded::default();
    }
    let mut plan = Plan { base: draft.clone(), targets: Vec::new(), reasons: BTreeMap::new() };
    for id in &pending {
        plan.add_policy(draft, *id);
    }
    let Plan { base, targets, mut reasons } = plan;
    for refused in restore_all(draft, &base, &BTreeSet::new(), targets) {
        if let Ok(id) = refused.id.parse() {
            reasons.insert(id, refused.reason);
        }
    }
    draft.note_applied();
    let remaining = draft.pending_policy_ids().into_iter().map(|id| {
        let policy = draft.routing_policies.get(id).or(draft.applied.policies.get(id));
        PendingPolicy {
            id,
            name: policy.map(|policy| policy.name.clone()).unwrap_or_default(),
            reason: reason_of(draft, id, &reasons),
        }
    });
    let remaining = remaining.collect();
    let changes = diff(&before, draft).into_iter().filter(|change| change.op != Op::Unchanged).collect();
    Discarded { changes, remaining }
}

/// Returns why a policy stays pending: for itself, or for an object that feeds it.
fn reason_of(draft: &State, id: Id, reasons: &BTreeMap<Id, String>) -> String {
    let merged_from = draft.applied.merged_from(id);
    let feeding = merged_from.into_iter().flat_map(|from| feeding(from)).flatten();
    let found = std::iter::once(id).chain(feeding).find_map(|id| reasons.get(&id));
    found.map_or_else(|| FED.to_owned(), String::clone)
}

fn feeding(from: &MergedFrom) -> [Option<Id>; 3] {
    [
        from.profile.as_ref().map(|row| row.meta.id),
        from.chain.as_ref().map(|row| row.meta.id),
        from.privacy_class.as_ref().map(|row| row.meta.id),
    ]
}

/// Objects that go back.
struct Plan {
    /// State that has the earlier forms.
    base: State,
    targets: Vec<Target<'static>>,
    /// Reasons why an object does not go back.
    reasons: BTreeMap<Id, String>,
}

impl Plan {
    fn add_policy(&mut self, draft: &State, id: Id) {
        let (stored, unmerged) = (draft.routing_policies.get(id), draft.applied.unmerged(id));
        match (stored, unmerged) {
            // Another object that feeds it was changed.
            (Some(stored), Some(policy)) if same_content(stored.as_ref(), policy) => {}
            (_, Some(policy)) => {
                self.base.routing_policies.put(policy.clone()).expect("policies have no unique keys");
                self.add_target::<RoutingPolicy>(id);
            }
            (_, None) if draft.applied.policies.get(id).is_none() => {
                self.base.routing_policies.take(id, draft.revision);
                self.add_target::<RoutingPolicy>(id);
            }
            (_, None) => {
                self.reasons.insert(id, UNRECORDED.to_owned());
                return;
            }
        }
        let Some(from) = draft.applied.merged_from(id).cloned() else { return };
        self.add_feeding(draft, from.profile.as_ref(), PROFILE, |from| from.profile.as_ref());
        self.add_feeding(draft, from.chain.as_ref(), CHAIN, |from| from.chain.as_ref());
        self.add_feeding(draft, from.privacy_class.as_ref(), PRIVACY_CLASS, |from| {
            from.privacy_class.as_ref()
        });
    }

    /// Adds an object that feeds a policy if its frozen fields changed.
    fn add_feeding<R: Resource>(
        &mut self,
        draft: &State,
        frozen: Option<&Arc<R>>,
        fields: &[&str],
        of: fn(&MergedFrom) -> Option<&Arc<R>>,
    ) {
        let Some(frozen) = frozen else { return };
        let id = frozen.meta().id;
        if self.reasons.contains_key(&id) || self.targets.iter().any(|target| target.id == id) {
            return;
        }
        let names: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        let kind = R::NOUN.replace('_', " ");
        let Some(current) = R::table(draft).get(id) else {
            if R::table_mut(&mut self.base).put(frozen.as_ref().clone()).is_ok() {
                self.add_target::<R>(id);
            } else {
                let message = format!(
                    "Its {kind} {:?} was deleted since, and another one has the name.",
                    frozen.label()
                );
                self.reasons.insert(id, message);
            }
            return;
        };
        let Ok(earlier) = merged(frozen.as_ref(), current.as_ref(), &names) else { return };
        if same_content(&earlier, current.as_ref()) {
            return;
        }
        let others = draft.applied.policies.iter().filter_map(|policy| {
            let from = draft.applied.merged_from(policy.meta.id)?;
            of(from).filter(|row| row.meta().id == id)
        });
        let is_one_form = |other: &Arc<R>| {
            merged(other.as_ref(), current.as_ref(), &names).is_ok_and(|other| same_content(&other, &earlier))
        };
        let label = current.label();
        if !draft.serves_policies_only(current.as_ref()) {
            let message = format!(
                "Its {kind} {label:?} was changed, and the change has taken effect for objects other than policies. Change it back, or apply."
            );
            self.reasons.insert(id, message);
        } else if !others.into_iter().all(is_one_form) {
            let message = format!(
                "Its {kind} {label:?} was changed, and an apply of other policies has put the change into effect."
            );
            self.reasons.insert(id, message);
        } else if R::table_mut(&mut self.base).put(earlier).is_ok() {
            self.add_target::<R>(id);
        }
    }

    fn add_target<R: Resource>(&mut self, id: Id) {
        let kind: &'static Kind = registry::kind(R::NOUN).expect("every resource is a kind");
        self.targets.push(Target { kind, id, fields: None });
    }
}

#[cfg(test)]
mod tests;
