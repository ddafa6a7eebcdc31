//! Undo of one change among later ones: fields of the change are restored, later changes stay.
//!
//! To restore the whole snapshot would remove later writes of others. An object that the change created, and that a
//! later write changed or needs, stays; such cases are listed as overlaps. Applied forms of policies are always
//! restored, unless the policy itself cannot be: a change that locked its author out must end.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::position;
use crate::id::{Id, Revision};
use crate::kinds::RoutingPolicy;
use crate::registry::{self, ChangeOp, KINDS, Kind};
use crate::resource::Resource;
use crate::state::State;

/// Everything that one change wrote, without the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSet {
    /// Revision of the change. A row with a later one was written again.
    pub revision: Revision,
    pub objects: Vec<ChangedObject>,
    /// Keys of settings, with true for those that were set and false for those that were unset.
    pub settings: BTreeMap<String, bool>,
    /// Policies whose applied form changed.
    pub applied: BTreeSet<Id>,
}

/// An object that a change wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedObject {
    /// Noun of the kind.
    pub kind: String,
    pub id: Id,
    pub op: ChangeOp,
    /// Top-level fields that differ, for a replaced object.
    pub fields: Vec<String>,
}

/// Result for an object that both an undone change and a later one wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverlapOutcome {
    /// The fields of the change are restored; the others keep their later values.
    Merged,
    /// The object is as it was written since.
    Kept,
}

/// An object that an undone change and a later write have in common, or that a later write needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Overlap {
    /// Noun of the kind, or `setting`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Id of the object, or key of the setting.
    pub id: String,
    pub name: String,
    pub outcome: OverlapOutcome,
    /// Human-readable reason.
    pub reason: String,
}

impl ChangeSet {
    /// Returns the changes of the draft since its begin, of exported kinds and of the settings that `is_ours` selects.
    pub fn of(before: &State, draft: &State, is_ours: impl Fn(&str) -> bool) -> ChangeSet {
        let exported = KINDS.iter().filter(|kind| kind.exported);
        let changes = exported.flat_map(|kind| kind.changes(before, draft, usize::MAX));
        let objects = changes.map(|change| ChangedObject {
            kind: change.noun.to_owned(),
            id: change.id,
            op: change.op,
            fields: change.fields,
        });
        let settings = draft.settings.dirty().iter().filter(|key| is_ours(key));
        let settings = settings.map(|key| (key.to_string(), draft.settings.get(key).is_some()));
        let (had, has) = (&before.applied.policies, &draft.applied.policies);
        let ids: BTreeSet<Id> = had.iter().chain(has.iter()).map(|policy| policy.meta.id).collect();
        ChangeSet {
            revision: draft.revision,
            objects: objects.collect(),
            settings: settings.collect(),
            applied: ids.into_iter().filter(|id| had.get(*id) != has.get(*id)).collect(),
        }
    }
}

/// An object that goes back.
pub(super) struct Target<'a> {
    pub kind: &'static Kind,
    pub id: Id,
    /// Fields that go back; all of them where nothing else was written since.
    pub fields: Option<&'a [String]>,
}

/// Undoes a change on a fresh draft. `base` is the state before the change. Returns the objects that were written
/// since as well, and those that later writes need.
pub fn undo(draft: &mut State, base: &State, set: &ChangeSet) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    let targets = targets(draft, set, &mut overlaps);
    let refused = restore_all(draft, base, &set.applied, targets);
    overlaps.retain(|overlap| !refused.iter().any(|other| other.id == overlap.id));
    overlaps.extend(refused);
    undo_settings(draft, base, set, &mut overlaps);
    overlaps
}

/// Puts objects and applied policies back as they are in `base`. Returns the objects that cannot go back.
pub(super) fn restore_all(
    draft: &mut State,
    base: &State,
    applied: &BTreeSet<Id>,
    mut targets: Vec<Target<'_>>,
) -> Vec<Overlap> {
    targets.sort_by_key(|target| position(target.kind));
    let (mut stuck, mut all) = (BTreeSet::new(), Vec::new());
    // Objects that cannot be restored stay. That may keep others from being restored, so it starts over.
    loop {
        let mut attempt = draft.clone();
        let refused = restore(&mut attempt, draft, base, applied, &targets, &stuck);
        if refused.is_empty() {
            *draft = attempt;
            return all;
        }
        stuck.extend(refused.iter().filter_map(|overlap| overlap.id.parse::<Id>().ok()));
        targets.retain(|target| !stuck.contains(&target.id));
        all.extend(refused);
    }
}

/// Picks the objects that go back, and reports those that were written since.
fn targets<'a>(draft: &State, set: &'a ChangeSet, overlaps: &mut Vec<Overlap>) -> Vec<Target<'a>> {
    let mut targets = Vec::new();
    for object in &set.objects {
        let Some(kind) = registry::kind(&object.kind) else { continue };
        let id = object.id;
        let current = (kind.ops.revision)(draft, id);
        let untouched = match (object.op, current) {
            (ChangeOp::Delete, None) => true,
            (_, current) => current == Some(set.revision),
        };
        let mut report = |outcome, reason: &str| {
            overlaps.push(overlap(
                kind,
                id,
                (kind.ops.label)(draft, id).unwrap_or_default(),
                outcome,
                reason,
            ));
        };
        match (untouched, object.op, current) {
            (true, ..) => targets.push(Target { kind, id, fields: None }),
            (false, ChangeOp::Replace, Some(_)) => {
                report(OverlapOutcome::Merged, "It was changed again after the change that was undone.");
                targets.push(Target { kind, id, fields: Some(&object.fields) });
            }
            (false, ChangeOp::Create, None) => {}
            (false, _, None) => {
                report(OverlapOutcome::Kept, "It was deleted after the change that was undone.");
            }
            (false, _, Some(_)) => {
                report(OverlapOutcome::Kept, "It was changed again after the change that was undone.");
            }
        }
    }
    targets
}

/// Puts the targets back. Returns those that cannot go back; the draft is of no use then.
fn restore(
    draft: &mut State,
    current: &State,
    base: &State,
    applied: &BTreeSet<Id>,
    targets: &[Target<'_>],
    stuck: &BTreeSet<Id>,
) -> Vec<Overlap> {
    let mut refused = Vec::new();
    let mut refuse = |target: &Target<'_>, reason: String| {
        let Target { kind, id, .. } = target;
        let name = (kind.ops.label)(current, *id).or_else(|| (kind.ops.label)(base, *id)).unwrap_or_default();
        refused.push(overlap(kind, *id, name, OverlapOutcome::Kept, &reason));
    };
    for target in targets {
        (target.kind.ops.detach)(draft, target.id);
    }
    for target in targets {
        if let Err(reason) = (target.kind.ops.put_back)(draft, base, current, target.id, target.fields) {
            refuse(target, reason);
        }
    }
    draft.restore_applied(base, applied.iter().filter(|id| !stuck.contains(id)));
    for target in targets {
        let (kind, id) = (target.kind, target.id);
        if let Some(reason) = (kind.ops.obstacle)(draft, current, id) {
            refuse(target, reason);
        }
    }
    refused
}

fn undo_settings(draft: &mut State, base: &State, set: &ChangeSet, overlaps: &mut Vec<Overlap>) {
    for (key, was_set) in &set.settings {
        let untouched = match draft.settings.setting(key) {
            Some(setting) => *was_set && setting.revision == set.revision,
            None => !*was_set,
        };
        if untouched {
            draft.restore_setting(base, key);
        } else {
            overlaps.push(Overlap {
                kind: "setting".to_owned(),
                id: key.clone(),
                name: key.clone(),
                outcome: OverlapOutcome::Kept,
                reason: "It was set again after the change that was undone.".to_owned(),
            });
        }
    }
}

fn overlap(kind: &Kind, id: Id, name: String, outcome: OverlapOutcome, reason: &str) -> Overlap {
    Overlap { kind: kind.noun.to_owned(), id: id.to_string(), name, outcome, reason: reason.to_owned() }
}

impl State {
    /// Makes the applied forms of these policies those of another state.
    fn restore_applied<'a>(&mut self, base: &State, ids: impl Iterator<Item = &'a Id>) {
        let mut applied = self.applied.clone();
        let mut changed = false;
        for id in ids {
            changed = true;
            match base.applied.policies.get(*id) {
                Some(policy) => {
                    let policy = policy.restored(self).unwrap_or_else(|| RoutingPolicy::clone(policy));
                    applied.put(policy, base.applied.merged_from(*id).cloned());
                }
                None => applied.remove(*id, self.revision),
            }
        }
        if changed {
            self.set_applied(applied);
        }
    }
}

/// Restores a detached row from `base`, or leaves it out if it was not there. With `fields`, only those are restored, and
/// the others stay as in `current`.
pub(super) fn put_back<R: Resource>(
    draft: &mut State,
    base: &State,
    current: &State,
    id: Id,
    fields: Option<&[String]>,
) -> Result<(), String> {
    let had = R::table(current).get(id);
    let Some(base_row) = R::table(base).get(id) else {
        if let Some(had) = had {
            had.release(draft).map_err(|error| error.to_string())?;
            let (slot, revision) = (had.meta().slot, draft.revision);
            R::table_mut(draft).discard(id, slot, revision);
        }
        return Ok(());
    };
    let mut row = match (fields, had) {
        (Some(fields), Some(had)) => merged(base_row.as_ref(), had.as_ref(), fields)?,
        _ => base_row.as_ref().clone(),
    };
    row = row.restored(current).unwrap_or(row);
    if R::table(draft).slot_owner(row.meta().slot).is_some_and(|owner| owner != id) {
        let free = R::table(draft).free_slot();
        row.meta_mut().slot = free.ok_or("There is no number left for it.")?;
    }
    draft.put(row).map_err(|error| format!("It cannot go back: {error}."))
}

/// Returns the current row with these fields of another one.
pub(super) fn merged<R: Resource>(base: &R, current: &R, fields: &[String]) -> Result<R, String> {
    let (base, mut merged) = (crate::resource::to_stored(base), crate::resource::to_stored(current));
    if let (Some(from), Some(to)) = (base.as_object(), merged.as_object_mut()) {
        for field in fields {
            match from.get(field) {
                Some(value) => drop(to.insert(field.clone(), value.clone())),
                None => drop(to.shift_remove(field)),
            }
        }
    }
    crate::resource::from_stored(&merged).map_err(|error| format!("It cannot go back: {error}."))
}

/// Returns why a row cannot stay as it was put back: it refers to an object that was deleted since, or it is gone and
/// an object refers to it.
pub(super) fn undo_blocker<R: Resource>(draft: &State, current: &State, id: Id) -> Option<String> {
    let Some(row) = R::table(draft).get(id) else {
        let had = R::table(current).get(id)?;
        let references = draft.references_of(had.as_ref());
        let holding = references.firm + references.loose;
        return (holding > 0).then(|| format!("{holding} objects that were written since refer to it."));
    };
    let mut problems = crate::problem::Problems::new();
    row.validate(draft, &mut problems);
    let dangling = problems.iter().find(|problem| problem.code == crate::problem::code::UNKNOWN_REFERENCE)?;
    Some(format!("Its field {} refers to an object that was deleted since.", dangling.path))
}

#[cfg(test)]
mod tests;
