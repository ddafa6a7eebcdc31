//! Change of many objects at once: a plan or an export is applied to a draft as a whole or not at all.
//!
//! Items are matched with stored objects by id, else by a unique name or address, else by a name that only one object
//! has. All objects concerned are detached from the draft first, so that the items may exchange names and priorities
//! among themselves; then they are written in the order of the kinds, and those that refer to a later one wait for it.
//!
//! Item by item, valid edits are refused: two policies that swap priorities, two tunnels that swap names. Circular
//! references use the previous state. An object that ends unchanged is not written, so a bulk edit is idempotent.

pub(crate) mod diff;
pub mod discard;
mod names;
mod ops;
mod pending;
pub(crate) mod received;
mod redacted;
pub mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use diff::{FieldDiff, ItemChange, Op, diff};
pub use names::Names;
pub(crate) use ops::Ops;
pub use pending::PendingPolicy;
pub use received::{SyncedObject, held, inventory, offered, receive, revision};

use crate::edit::EditError;
use crate::field_diff::SettingChange;
use crate::id::Id;
use crate::kinds::RoutingPolicy;
use crate::problem::{Problems, Warning, code};
use crate::registry::{self, KINDS, Kind};
use crate::resource::Resource;
use crate::state::State;
use redacted::LeftOut;

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 500;

/// Treatment of objects and fields that a plan does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Stays: fields that an item does not name, and objects that are not listed.
    #[default]
    Merge,
    /// Goes: items are whole objects, and objects of the listed collections that are not listed are deleted. Secrets
    /// that are left out stay, and so do built-in objects.
    Replace,
}

/// Desired state of objects.
#[derive(Clone, Debug, Default)]
pub struct Order {
    pub mode: Mode,
    /// Collection to list of objects.
    pub resources: Map<String, Value>,
    /// Also delete objects that others refer to loosely.
    pub force: bool,
    /// The items come from an export; secrets that the export left out are not an error.
    pub redacted: bool,
    /// Apply the policies as they are then; see [`change`] for those that the order does not name.
    pub freeze: bool,
    /// Policies that stay pending behind these applied forms.
    pub pending: Vec<PendingPolicy>,
    /// Node that owns the objects. Objects of others stay as they are.
    pub origin: Option<Id>,
}

/// Result of a plan.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Changes of all items by kind, then the changes that follow from them.
    pub changes: Vec<ItemChange>,
    pub settings: Vec<SettingChange>,
    pub warnings: Vec<Warning>,
}

/// Item in progress.
struct Item {
    kind: &'static Kind,
    path: String,
    id: Id,
    /// Keys that the item names itself.
    given: BTreeSet<String>,
    input: Value,
}

/// Carries the order out on a fresh draft. On problems the draft is of no use any more. Policies that were pending
/// before and that the order does not name stay pending; warnings list them. An order without resources applies all.
pub fn change(draft: &mut State, order: &Order) -> Result<Outcome, Problems> {
    let before = draft.clone();
    let mut problems = Problems::new();
    let listed = list(order, &mut problems);
    let mut names = Names::new(&before);
    let mut items = identify(draft, &before, listed, order, &mut names, &mut problems);
    items.sort_by_key(|item| position(item.kind));
    let leaving = leaving(&before, &items, order);
    for (kind, id) in items.iter().map(|item| (item.kind, item.id)).chain(leaving.iter().copied()) {
        (kind.ops.detach)(draft, id);
    }
    let mut warnings = Vec::new();
    let items = write(draft, &before, items, order, &mut problems, &mut warnings);
    // Policies to delete do not hold their references, unless they are also applied.
    if order.freeze {
        let pending = pending::decode(draft, &order.pending, &names, &mut problems, &mut warnings);
        apply_policies(draft, &before, &items, order, &pending, &mut warnings);
    }
    delete(draft, &before, &leaving, order, &mut problems);
    let (list, more) = problems.clone().into_parts();
    if !list.is_empty() {
        return Err(problems);
    }
    warnings.extend(more);
    Ok(Outcome { changes: account(&before, draft, &items), settings: Vec::new(), warnings })
}

/// Applies the policies. Those that were pending before an order that does not name them stay pending.
fn apply_policies(
    draft: &mut State,
    before: &State,
    items: &[Item],
    order: &Order,
    pending: &[pending::AppliedForm],
    warnings: &mut Vec<Warning>,
) {
    let is_listed = |name: &String| planned_kind(name).is_some_and(|kind| kind.noun == RoutingPolicy::NOUN);
    let is_whole = order.mode == Mode::Replace && order.origin.is_none();
    let names_all = order.resources.is_empty() || is_whole && order.resources.keys().any(is_listed);
    let is_named = |id: &Id| items.iter().any(|item| item.kind.noun == RoutingPolicy::NOUN && item.id == *id);
    let mut waiting = if names_all { Vec::new() } else { before.pending_policy_ids() };
    waiting.retain(|id| !is_named(id));
    for id in &waiting {
        let (stored, applied) = (before.routing_policies.get(*id), before.applied.policies.get(*id));
        let name = stored.or(applied).map(|policy| policy.name.as_str()).unwrap_or_default();
        let what = if stored.is_some() { "changed" } else { "deleted" };
        let message = format!(
            "The policy {name:?} ({id}) was {what} before this plan, which does not name it: that stays pending."
        );
        warnings.push(Warning::new("resources.routing_policies", message));
    }
    waiting.extend(pending.iter().map(|form| form.id));
    draft.freeze_except(&waiting);
    pending::restore(draft, before, pending);
}

/// Returns the items in the order of the plan, each an object of a known kind.
fn list(order: &Order, problems: &mut Problems) -> Vec<(&'static Kind, String, Map<String, Value>)> {
    let mut listed = Vec::new();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, list) in &order.resources {
        let path = format!("resources.{name}");
        let Some(kind) = planned_kind(name) else {
            let allowed: Vec<String> =
                KINDS.iter().filter(|kind| kind.exported).map(|kind| kind.collection.to_owned()).collect();
            let message = match registry::kind(name) {
                Some(_) => {
                    format!("Objects of {name} are no part of plans: they have operations of their own.")
                }
                None => format!("There is no collection {name:?}."),
            };
            problems.add(code::ENUM, path, message).allowed = Some(allowed);
            continue;
        };
        if let Some(other) = seen.insert(kind.collection, name) {
            problems.add(code::DUPLICATE, path, format!("This is the same collection as {other:?}."));
            continue;
        }
        let Value::Array(list) = list else {
            problems.add(code::TYPE, path, "Expected a list of objects.");
            continue;
        };
        for (index, item) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            match item {
                Value::Object(map) => listed.push((kind, path, map.clone())),
                _ => {
                    problems.add(code::TYPE, path, "Expected an object.");
                }
            }
        }
    }
    listed
}

/// The kind of a collection of a plan.
pub fn planned_kind(collection: &str) -> Option<&'static Kind> {
    let name = collection.replace('-', "_");
    let name = if name == "policies" { "routing_policies" } else { &name };
    KINDS.iter().find(|kind| kind.exported && kind.collection == name)
}

/// Finds out which object each item means, and gives new ones their ids.
fn identify(
    draft: &mut State,
    before: &State,
    listed: Vec<(&'static Kind, String, Map<String, Value>)>,
    order: &Order,
    names: &mut Names<'_>,
    problems: &mut Problems,
) -> Vec<Item> {
    let mut claimed: BTreeMap<(&'static str, Id), String> = BTreeMap::new();
    let mut found: Vec<(&'static Kind, String, Id, Map<String, Value>)> = Vec::new();
    for (kind, path, item) in listed {
        let known = (kind.ops.identify)(before, &item);
        let given = item.get("id").and_then(Value::as_str);
        let given_id: Option<Id> = given.and_then(|text| text.parse().ok());
        if item.get("id").is_some_and(|id| !id.is_null()) && given_id.is_none() {
            problems.add(code::FORMAT, format!("{path}.id"), "Expected a UUID.");
            continue;
        }
        let stored = |id: &Id| kind.find(before, &id.to_string()).is_some();
        let by_key: BTreeSet<Id> = known.by_key.iter().map(|(_, id)| *id).collect();
        let labelled = known.label.as_deref().and_then(|label| names.labelled(kind.noun, label));
        let id = match (given_id, given_id.filter(stored), by_key.len(), labelled) {
            // Objects of another gateway have its ids, and are never matched with others.
            (Some(id), ..) if order.origin.is_some() => id,
            (_, Some(id), _, _) => id,
            (_, None, 1, _) => by_key.first().copied().expect("there is one"),
            (_, None, 2.., _) => {
                let fields: Vec<&str> = known.by_key.iter().map(|(field, _)| field.as_str()).collect();
                let message =
                    format!("Its fields {} belong to different objects; give the id.", fields.join(", "));
                problems.add(code::CONFLICT, path, message);
                continue;
            }
            (Some(id), None, 0, _) => id,
            (None, None, 0, Some(Some(id))) => id,
            (None, None, 0, Some(None)) => {
                let noun = kind.noun.replace('_', " ");
                problems.add(
                    code::CONFLICT,
                    path,
                    format!("More than one {noun} has this name; give the id."),
                );
                continue;
            }
            (None, None, 0, None) => {
                if known.label.is_none() && known.aliases.is_empty() {
                    problems.warn(&path, "Without an id or a name, each apply makes it again.");
                }
                (kind.ops.mint)(draft)
            }
        };
        if let Some(other) = claimed.insert((kind.noun, id), path.clone()) {
            problems.add(code::DUPLICATE, path, format!("This is the same object as {other}."));
            continue;
        }
        let called = given.into_iter().map(str::to_owned).chain(known.label).chain(known.aliases);
        called.for_each(|name| names.plan(kind.noun, &name, id));
        found.push((kind, path, id, item));
    }
    let to_item = |(kind, path, id, mut item): (&'static Kind, String, Id, Map<String, Value>)| {
        (kind.ops.resolve)(&mut item, names);
        let given = item.keys().cloned().collect();
        let input = match (order.mode, (kind.ops.form)(before, id)) {
            (Mode::Merge, Some(mut whole)) => {
                merge(&mut whole, Value::Object(item));
                whole
            }
            _ => Value::Object(item),
        };
        Item { kind, path, id, given, input }
    };
    found.into_iter().map(to_item).collect()
}

/// Lays the fields of one object over another; lists are replaced whole.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// The stored objects that the order leaves out and that shall therefore go.
fn leaving(before: &State, items: &[Item], order: &Order) -> Vec<(&'static Kind, Id)> {
    if order.mode == Mode::Merge {
        return Vec::new();
    }
    let named: BTreeSet<(&str, Id)> = items.iter().map(|item| (item.kind.noun, item.id)).collect();
    let kinds = order.resources.keys().filter_map(|name| planned_kind(name));
    let ids = |kind: &Kind| match order.origin {
        Some(node) => (kind.ops.owned)(before, Some(node)),
        None => (kind.ops.ids)(before),
    };
    let of_kind = |kind: &'static Kind| ids(kind).into_iter().map(move |id| (kind, id));
    kinds
        .flat_map(of_kind)
        .filter(|(kind, id)| !id.is_builtin() && !named.contains(&(kind.noun, *id)))
        .collect()
}

/// Writes the items. Items with a missing reference are tried again as long as others create objects.
fn write(
    draft: &mut State,
    before: &State,
    mut items: Vec<Item>,
    order: &Order,
    problems: &mut Problems,
    warnings: &mut Vec<Warning>,
) -> Vec<Item> {
    let mut written = Vec::with_capacity(items.len());
    let mut left_out = LeftOut::default();
    let mut laid_back = false;
    while !items.is_empty() && problems.len() < MAX_PROBLEMS {
        let mut waiting = Vec::new();
        let pass = items.len();
        for item in items {
            match (item.kind.ops.write)(draft, before, item.id, item.input.clone()) {
                Ok(more) => {
                    let warned = more.into_iter().filter(|warning| is_about_item(&item, warning));
                    warnings.extend(
                        warned.map(|warning| Warning::new(join(&item.path, &warning.path), warning.message)),
                    );
                    if order.redacted {
                        redacted::warn(before, &item, warnings);
                    }
                    written.push(item);
                }
                Err(EditError::Invalid(found)) if found.all_are(code::UNKNOWN_REFERENCE) => {
                    waiting.push((item, EditError::Invalid(found)));
                }
                Err(EditError::Invalid(found))
                    if order.redacted && redacted::lacks_only_secrets(&item, &found) =>
                {
                    let fields: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
                    let message =
                        format!("Left out: its {} is not in the export and not here.", fields.join(", "));
                    warnings.push(Warning::new(&item.path, message));
                    left_out.add(&item);
                }
                Err(error) => {
                    (item.kind.ops.reattach)(draft, before, item.id);
                    report(&item.path, error, problems);
                }
            }
        }
        if waiting.len() == pass && left_out.take_dependants(&mut waiting, warnings) {
            // The others may do without them.
        } else if waiting.len() == pass && !laid_back {
            // Objects that refer to each other keep their references by their former names.
            waiting.iter().for_each(|(item, _)| (item.kind.ops.reattach)(draft, before, item.id));
            laid_back = true;
        } else if waiting.len() == pass {
            for (item, error) in waiting {
                report(&item.path, error, problems);
            }
            break;
        }
        items = waiting.into_iter().map(|(item, _)| item).collect();
    }
    written
}

/// Warnings about fields that the item does not name concern the shown object, not the item.
fn is_about_item(item: &Item, warning: &Warning) -> bool {
    let head = warning.path.split(['.', '[']).next().unwrap_or_default();
    head.is_empty() || item.given.contains(head)
}

fn delete(
    draft: &mut State,
    before: &State,
    leaving: &[(&'static Kind, Id)],
    order: &Order,
    problems: &mut Problems,
) {
    // Referenced kinds come first in the order of kinds, so they are deleted last.
    let mut leaving = leaving.to_vec();
    leaving.sort_by_key(|(kind, _)| std::cmp::Reverse(position(kind)));
    for (kind, id) in leaving {
        if let Err(error) = (kind.ops.remove)(draft, before, id, order.force) {
            let label = (kind.ops.diff)(before, &State::empty(), id).map(|row| row.label).unwrap_or_default();
            let path = format!("resources.{}", kind.collection);
            let message = format!("{label:?} ({id}) is not listed and cannot be deleted: {error}.");
            problems.add(code::CONFLICT, path, message);
        }
    }
}

/// Returns the change of each item, and all other changes.
fn account(before: &State, draft: &State, items: &[Item]) -> Vec<ItemChange> {
    let mut changed: BTreeMap<(&str, Id), ItemChange> =
        diff(before, draft).into_iter().map(|change| ((change.kind, change.id), change)).collect();
    let mut changes = Vec::with_capacity(items.len());
    for item in items {
        let unchanged = || {
            let row = (item.kind.ops.diff)(before, draft, item.id);
            ItemChange {
                op: Op::Unchanged,
                kind: item.kind.noun,
                id: item.id,
                name: row.map(|row| row.label).unwrap_or_default(),
                path: None,
                diff: BTreeMap::new(),
            }
        };
        let mut change = changed.remove(&(item.kind.noun, item.id)).unwrap_or_else(unchanged);
        change.path = Some(item.path.clone());
        changes.push(change);
    }
    let mut more: Vec<ItemChange> =
        changed.into_values().filter(|change| change.op != Op::Unchanged).collect();
    more.sort_by_key(|change| KINDS.iter().position(|kind| kind.noun == change.kind));
    changes.extend(more);
    changes
}

/// Adds the reason of a refused edit as problems of an item of a plan.
fn report(path: &str, error: EditError, problems: &mut Problems) {
    match error {
        EditError::Invalid(found) => {
            let (list, warnings) = found.into_parts();
            for problem in list {
                problems.add(problem.code, join(path, &problem.path), problem.message).allowed =
                    problem.allowed;
            }
            warnings
                .into_iter()
                .for_each(|warning| problems.warn(join(path, &warning.path), warning.message));
        }
        EditError::Conflict { field, message, existing_id, .. } => {
            let message = format!("{} (id {existing_id}).", sentence(&message));
            problems.add(code::CONFLICT, join(path, &field), message);
        }
        EditError::LimitReached { .. } => {
            let _ = problems.add(code::RANGE, path, format!("{}.", sentence(&error.to_string())));
        }
        other => {
            let _ = problems.add(code::CONFLICT, path, format!("{}.", sentence(&other.to_string())));
        }
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn join(path: &str, field: &str) -> String {
    match (path, field) {
        (path, "") => path.to_owned(),
        ("", field) => field.to_owned(),
        (path, field) if field.starts_with('[') => format!("{path}{field}"),
        (path, field) => format!("{path}.{field}"),
    }
}

fn position(kind: &Kind) -> usize {
    KINDS.iter().position(|other| other.noun == kind.noun).unwrap_or(usize::MAX)
}

/// Returns all objects that can be exported, by collection.
pub fn export(state: &State, secrets: bool) -> Map<String, Value> {
    let kinds = KINDS.iter().filter(|kind| kind.exported);
    kinds.map(|kind| (kind.collection.to_owned(), (kind.ops.export)(state, secrets).into())).collect()
}

/// Writes [`export`] as JSON object by object.
pub fn write_export(state: &State, secrets: bool, out: &mut dyn Write) -> io::Result<()> {
    for (index, kind) in KINDS.iter().filter(|kind| kind.exported).enumerate() {
        write!(out, "{}\"{}\":[", if index == 0 { "{" } else { "," }, kind.collection)?;
        let mut separator = "";
        (kind.ops.export_each)(state, secrets, &mut |object| {
            out.write_all(separator.as_bytes())?;
            separator = ",";
            serde_json::to_writer(&mut *out, &object).map_err(io::Error::from)
        })?;
        out.write_all(b"]")?;
    }
    out.write_all(b"}")
}

/// Makes all that can be exported, the settings that `is_ours` picks, and the applied policies those of another state.
pub fn take_over(draft: &mut State, target: &State, is_ours: impl Fn(&str) -> bool) -> Result<(), String> {
    for kind in KINDS.iter().filter(|kind| kind.exported) {
        (kind.ops.take_over)(draft, target)
            .map_err(|clash| format!("two objects of type {} have the same {}", kind.noun, clash.field))?;
    }
    draft.take_over_settings(target, is_ours);
    draft.take_over_applied(target);
    Ok(())
}

#[cfg(test)]
mod tests;
