//! Field differences of rows and settings by path, with values of limited length, for the audit trail and previews.
//! Secrets are reported as changed, without their values.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::bulk_edit::FieldDiff;
use crate::bulk_edit::diff::{secret_diff, secret_fields};
use crate::id::Id;
use crate::resource::Resource;
use crate::settings::group::GroupKind;
use crate::settings::keys;
use crate::state::State;
use crate::state::planned::content;

/// Maximum length of a value as JSON, in bytes. Of longer values, the part around the first difference is kept as a text.
pub const MAX_VALUE_BYTES: usize = 1024;

/// Length of the equal part that is kept before the first difference of long values.
const CONTEXT_BYTES: usize = 40;

/// Path of the value of a setting that has no fields.
const VALUE: &str = "value";

/// Compares a row of two states. Fields that are empty do not count for a new or deleted row.
pub(crate) fn row<R: Resource>(before: &State, draft: &State, id: Id) -> BTreeMap<String, FieldDiff> {
    let (had, has) = (R::table(before).get(id), R::table(draft).get(id));
    let plain = |row: &R| content(serde_json::to_value(row).expect("resources are structs with string keys"));
    let (from, to) = (had.map(|row| plain(row.as_ref())), has.map(|row| plain(row.as_ref())));
    let mut fields = BTreeMap::new();
    compare("", from.as_ref(), to.as_ref(), &mut fields);
    secret_fields(had.map(AsRef::as_ref), has.map(AsRef::as_ref), &mut fields);
    fields
}

/// Difference of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingChange {
    pub key: String,
    /// Fields of the value that differ; `value` for a value without fields. Empty if the value is internal.
    pub diff: BTreeMap<String, FieldDiff>,
}

/// Returns the settings that a draft changed.
pub fn settings(before: &State, draft: &State) -> Vec<SettingChange> {
    let change = |key: &str| SettingChange { key: key.to_owned(), diff: setting(before, draft, key) };
    draft.settings.dirty().iter().map(|key| change(key)).collect()
}

/// Compares a setting of two states. Values of keys that the API does not show are left out.
pub fn setting(before: &State, draft: &State, key: &str) -> BTreeMap<String, FieldDiff> {
    let mut fields = BTreeMap::new();
    let (had, has) = (before.settings.secret(key), draft.settings.secret(key));
    if had.is_set() || has.is_set() {
        fields.extend(secret_diff(Some(&had), Some(&has)).map(|diff| (VALUE.to_owned(), diff)));
    } else if is_shown(key) {
        compare("", before.settings.get(key), draft.settings.get(key), &mut fields);
    }
    fields
}

fn is_shown(key: &str) -> bool {
    let internal = key != keys::SECRETS_PASSPHRASE && keys::INTERNAL.contains(&key);
    internal || keys::apply_of(key).is_some() || GroupKind::find(key).is_some()
}

/// Adds the differences of two values. Objects are compared by their fields, lists of the same length by their elements,
/// and everything else as a whole.
fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, fields: &mut BTreeMap<String, FieldDiff>) {
    if from == to {
        return;
    }
    let is_root = path.is_empty();
    let none = Map::new();
    match (from, to) {
        (Some(Value::Object(had)), Some(Value::Object(has))) => compare_fields(path, had, has, fields),
        (None, Some(Value::Object(has))) if is_root => compare_fields(path, &none, &filled(has), fields),
        (Some(Value::Object(had)), None) if is_root => compare_fields(path, &filled(had), &none, fields),
        (Some(Value::Array(had)), Some(Value::Array(has)))
            if had.len() == has.len() && has.iter().all(Value::is_object) =>
        {
            for (index, (from, to)) in had.iter().zip(has).enumerate() {
                compare(&format!("{path}[{index}]"), Some(from), Some(to), fields);
            }
        }
        _ => {
            let path = if is_root { VALUE } else { path };
            fields.insert(path.to_owned(), difference(from, to));
        }
    }
}

fn compare_fields(
    path: &str,
    had: &Map<String, Value>,
    has: &Map<String, Value>,
    fields: &mut BTreeMap<String, FieldDiff>,
) {
    for key in had.keys().chain(has.keys().filter(|key| !had.contains_key(*key))) {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        compare(&path, had.get(key), has.get(key), fields);
    }
}

/// Returns the fields that have a value.
fn filled(map: &Map<String, Value>) -> Map<String, Value> {
    let has_value = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    map.iter()
        .filter(|(_, value)| has_value(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn difference(from: Option<&Value>, to: Option<&Value>) -> FieldDiff {
    let texts = [from, to].map(|value| value.map(text_of).unwrap_or_default());
    if texts.iter().all(|text| text.len() <= MAX_VALUE_BYTES) {
        return FieldDiff { from: from.cloned(), to: to.cloned(), ..FieldDiff::default() };
    }
    let [one, other] = &texts;
    let equal = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let part = |text: &str| {
        let start = text.floor_char_boundary(equal.saturating_sub(CONTEXT_BYTES));
        let end = text.floor_char_boundary(start.saturating_add(MAX_VALUE_BYTES));
        Value::String(text[start..end].to_owned())
    };
    FieldDiff {
        from: from.map(|_| part(one)),
        to: to.map(|_| part(other)),
        truncated: true,
        ..FieldDiff::default()
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
