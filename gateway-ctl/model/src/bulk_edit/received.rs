//! Objects of other gateways, as federation exchanges them: those that this gateway offers, and those that came from a
//! node, which are written as a whole or not at all.
//!
//! An object keeps its id everywhere, and only its owner changes it. One that this gateway or a third one owns already is
//! a conflict: nothing is merged. Names of interfaces are replaced by those that the node maps them to; without a mapping
//! the objects are refused. Secrets are never in them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Mode, Order, Outcome, change, planned_kind};
use crate::id::Id;
use crate::kinds::hops::HopType;
use crate::kinds::{Node, SyncKind};
use crate::problem::{Problems, code};
use crate::registry::{self, Kind};
use crate::state::State;

/// Returns the objects of a kind that this gateway owns, by collection. Built-in objects are everywhere already.
pub fn offered(state: &State, kind: SyncKind) -> Map<String, Value> {
    let objects = |kind: &Kind| -> Value {
        let ids = (kind.ops.owned)(state, None).into_iter().filter(|id| !id.is_builtin());
        ids.filter_map(|id| (kind.ops.form)(state, id)).map(|form| without_marks(form, kind)).collect()
    };
    collections(kind).map(|kind| (kind.collection.to_owned(), objects(kind))).collect()
}

/// An object of a kind that is synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncedObject {
    pub kind: SyncKind,
    pub collection: &'static str,
    pub id: Id,
    pub name: String,
    pub revision: u64,
    /// Node that owns it; `None` for this gateway.
    pub origin_node: Option<Id>,
}

/// Returns all objects of the kinds that are synced, without the built-in ones.
pub fn inventory(state: &State) -> Vec<SyncedObject> {
    let of_kind = |kind: SyncKind| {
        collections(kind).flat_map(move |of| {
            let ids = (of.ops.ids)(state).into_iter().filter(|id| !id.is_builtin());
            ids.filter_map(move |id| {
                let origin_node = (of.ops.owner)(state, id)?;
                let (name, revision) = ((of.ops.label)(state, id)?, (of.ops.revision)(state, id)?.0);
                Some(SyncedObject { kind, collection: of.collection, id, name, revision, origin_node })
            })
        })
    };
    SyncKind::ALL.iter().flat_map(|kind| of_kind(*kind)).collect()
}

/// Returns the revision of the last change of any object of the kind.
pub fn revision(state: &State, kind: SyncKind) -> u64 {
    collections(kind).map(|kind| kind.revision(state).0).max().unwrap_or_default()
}

/// Returns the ids of the objects of a kind that came from a node.
pub fn held(state: &State, node: Id, kind: SyncKind) -> BTreeSet<Id> {
    collections(kind).flat_map(|kind| (kind.ops.owned)(state, Some(node))).collect()
}

/// Makes the objects that the draft has of a node the given ones. `resources` has the collections of whole kinds. On
/// problems the draft is of no use any more.
pub fn receive(
    draft: &mut State,
    node: &Node,
    mut resources: Map<String, Value>,
) -> Result<Outcome, Problems> {
    let mut problems = Problems::new();
    map_interfaces(&mut resources, &node.interface_map, &mut problems);
    find_conflicts(draft, node.meta.id, &resources, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let origin = Some(node.meta.id);
    let order = Order { mode: Mode::Replace, resources, freeze: true, origin, ..Order::default() };
    draft.receive_from(node.meta.id);
    let outcome = change(draft, &order);
    draft.end_receiving();
    outcome
}

fn collections(kind: SyncKind) -> impl Iterator<Item = &'static Kind> {
    kind.collections().iter().filter_map(|name| registry::kind(name))
}

/// Removes the marks of secrets, which say no more than that there is one.
fn without_marks(mut form: Value, kind: &Kind) -> Value {
    if let Value::Object(map) = &mut form {
        for secret in kind.secrets {
            match secret.rsplit_once('.') {
                Some((parent, field)) => crate::resource::strip(map, &format!("{parent}.has_{field}")),
                None => crate::resource::strip(map, &format!("has_{secret}")),
            }
        }
    }
    form
}

/// Reports objects that another owner has, by their id or by a unique key.
fn find_conflicts(state: &State, node: Id, resources: &Map<String, Value>, problems: &mut Problems) {
    for (collection, list) in resources {
        let Some(kind) = planned_kind(collection) else { continue };
        for (index, item) in list.as_array().into_iter().flatten().enumerate() {
            let path = format!("resources.{collection}[{index}]");
            let id = item.get("id").and_then(Value::as_str).and_then(|id| id.parse::<Id>().ok());
            let (Some(id), Some(item)) = (id.filter(|id| !id.is_builtin()), item.as_object()) else {
                problems.add(code::FORMAT, format!("{path}.id"), "Expected the UUID of an object.");
                continue;
            };
            let is_other = |id: &Id| (kind.ops.owner)(state, *id).is_some_and(|owner| owner != Some(node));
            let identified = (kind.ops.identify)(state, item);
            let clash = identified.by_key.iter().find(|(_, other)| *other != id && is_other(other));
            let (field, other) = match clash {
                Some((field, other)) => (field.as_str(), *other),
                None if is_other(&id) => ("id", id),
                None => continue,
            };
            let noun = kind.noun.replace('_', " ");
            let message =
                format!("A {noun} with this {field} that did not come from the node is here ({other}).");
            problems.add(code::CONFLICT, format!("{path}.{field}"), message);
        }
    }
}

/// Replaces the names of interfaces in policies, profiles and chains.
fn map_interfaces(
    resources: &mut Map<String, Value>,
    names: &BTreeMap<String, String>,
    problems: &mut Problems,
) {
    for (collection, list) in resources {
        for (index, item) in list.as_array_mut().into_iter().flatten().enumerate() {
            let path = format!("resources.{collection}[{index}]");
            if item.get("source_type").and_then(Value::as_str) == Some("interface")
                && let Some(Value::String(value)) = item.get_mut("source_value")
            {
                let mapped =
                    value.split(',').map(|name| mapped(name, names, &path, "source_value", problems));
                *value = mapped.collect::<Vec<_>>().join(",");
            }
            for hop in item.get_mut("hops").and_then(Value::as_array_mut).into_iter().flatten() {
                let is_interface = hop["type"] == HopType::Interface.as_str();
                if let Some(Value::String(target)) = hop.get_mut("target").filter(|_| is_interface) {
                    *target = mapped(target, names, &path, "hops", problems);
                }
            }
        }
    }
}

fn mapped(
    name: &str,
    names: &BTreeMap<String, String>,
    path: &str,
    field: &str,
    problems: &mut Problems,
) -> String {
    let name = name.trim();
    if let Some(here) = names.get(name) {
        return here.clone();
    }
    let message = format!(
        "It names the interface {name:?} of the other gateway: add it to `interface_map` of the node."
    );
    problems.add(code::UNKNOWN_REFERENCE, format!("{path}.{field}"), message);
    name.to_owned()
}

#[cfg(test)]
mod tests;
