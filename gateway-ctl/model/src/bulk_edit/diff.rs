//! Differences between two states by object and field. Secrets are reported as changed, without their values.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::id::Id;
use crate::registry::KINDS;
use crate::resource::{Resource, to_shown};
use crate::secret::Secret;
use crate::state::State;
use crate::state::planned::content;
use crate::validated::text_enum;

/// Change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Create,
    Update,
    Unchanged,
    Delete,
}

/// One object of a change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ItemChange {
    pub op: Op,
    /// The noun of the kind: `routing_policy`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub id: Id,
    pub name: String,
    /// Path in the plan. `None` for changes that follow from other objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The fields that differ, for an update.
    pub diff: BTreeMap<String, FieldDiff>,
}

text_enum! {
    /// Change of a secret.
    pub enum SecretChange {
        Set = "set",
        Changed = "changed",
        Cleared = "cleared",
    }
}

/// Difference of a field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FieldDiff {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// Change of a secret, instead of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretChange>,
    /// The values are parts of long ones, as texts. Only in audit entries and settings.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A row in two states.
#[derive(Clone, Debug)]
pub(crate) struct RowDiff {
    pub op: Op,
    pub label: String,
    pub fields: BTreeMap<String, FieldDiff>,
}

/// Everything that a draft changed against the state it began with.
pub fn diff(before: &State, draft: &State) -> Vec<ItemChange> {
    let of_kind = |kind: &'static crate::registry::Kind| {
        let rows = (kind.ops.dirty)(draft).into_iter();
        rows.filter_map(move |id| {
            let RowDiff { op, label, fields } = (kind.ops.diff)(before, draft, id)?;
            Some(ItemChange { op, kind: kind.noun, id, name: label, path: None, diff: fields })
        })
    };
    KINDS.iter().flat_map(of_kind).collect()
}

pub(crate) fn diff_row<R: Resource>(before: &State, after: &State, id: Id) -> Option<RowDiff> {
    let (had, has) = (R::table(before).get(id), R::table(after).get(id));
    let (op, label, fields) = match (had, has) {
        (None, None) => return None,
        (None, Some(has)) => (Op::Create, has.label(), BTreeMap::new()),
        (Some(had), None) => (Op::Delete, had.label(), BTreeMap::new()),
        (Some(had), Some(has)) => {
            let mut fields = shown_fields(to_shown(had.as_ref(), before), to_shown(has.as_ref(), after));
            secret_fields(Some(had.as_ref()), Some(has.as_ref()), &mut fields);
            let op = if fields.is_empty() { Op::Unchanged } else { Op::Update };
            (op, has.label(), fields)
        }
    };
    Some(RowDiff { op, label: label.to_owned(), fields })
}

/// Returns the fields that differ in two forms of a row, without those that follow from other rows.
pub(crate) fn fields_of<R: Resource>(had: &R, has: &R) -> BTreeMap<String, FieldDiff> {
    let plain = |row: &R| serde_json::to_value(row).expect("resources are structs with string keys");
    let mut fields = shown_fields(plain(had), plain(has));
    secret_fields(Some(had), Some(has), &mut fields);
    fields
}

fn shown_fields(had: Value, has: Value) -> BTreeMap<String, FieldDiff> {
    let (Value::Object(mut had), Value::Object(has)) = (content(had), content(has)) else {
        return BTreeMap::new();
    };
    let mut fields = BTreeMap::new();
    for (key, to) in has {
        let from = had.shift_remove(&key);
        if from.as_ref() != Some(&to) {
            fields.insert(key, FieldDiff { from, to: Some(to), ..FieldDiff::default() });
        }
    }
    fields.extend(
        had.into_iter().map(|(key, from)| (key, FieldDiff { from: Some(from), ..FieldDiff::default() })),
    );
    fields
}

/// Adds changed secrets by their paths, and removes the redundant `has_` fields.
pub(crate) fn secret_fields<R: Resource>(
    had: Option<&R>,
    has: Option<&R>,
    fields: &mut BTreeMap<String, FieldDiff>,
) {
    let (had, has) = (secrets_of(had), secrets_of(has));
    for pointer in had.keys().chain(has.keys().filter(|pointer| !had.contains_key(*pointer))) {
        let path = path_of(pointer);
        let mark = match path.rsplit_once('.') {
            Some((parent, leaf)) => format!("{parent}.has_{leaf}"),
            None => format!("has_{path}"),
        };
        fields.remove(&mark);
        if let Some(diff) = secret_diff(had.get(pointer), has.get(pointer)) {
            fields.insert(path, diff);
        }
    }
}

fn secrets_of<R: Resource>(row: Option<&R>) -> BTreeMap<String, Secret> {
    let Some(mut row) = row.cloned() else { return BTreeMap::new() };
    row.secrets().into_iter().map(|(at, secret)| (at, secret.clone())).collect()
}

/// Compares a secret. Comparing two that are set may mean to open them.
pub(crate) fn secret_diff(from: Option<&Secret>, to: Option<&Secret>) -> Option<FieldDiff> {
    let is_set = |secret: Option<&Secret>| secret.is_some_and(Secret::is_set);
    let secret = match (is_set(from), is_set(to)) {
        (false, false) => return None,
        (true, true) if from == to => return None,
        (true, true) => SecretChange::Changed,
        (false, true) => SecretChange::Set,
        (true, false) => SecretChange::Cleared,
    };
    Some(FieldDiff { secret: Some(secret), ..FieldDiff::default() })
}

/// `/peers/0/preshared_key` as `peers[0].preshared_key`.
fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').filter(|part| !part.is_empty()) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(part);
        }
    }
    path
}
