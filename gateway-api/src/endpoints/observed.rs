//! Observed state of objects, shown with the stored state.

use gateway_model::Resource;
use serde::Serialize;
use serde_json::{Value, json};

/// Adds the result of `observe` to the JSON form of each object.
pub(super) fn add_observed<R: Resource, L: Serialize>(
    shown: &mut [Value],
    table: &gateway_model::Table<R>,
    observe: impl Fn(&R) -> L,
) {
    for value in shown {
        let id = value["id"].as_str().and_then(|id| id.parse().ok());
        if let Some(row) = id.and_then(|id| table.get(id)) {
            merge(value, json!(observe(row)));
        }
    }
}

/// Merges the fields of one object into another.
pub(super) fn merge(into: &mut Value, fields: Value) {
    if let (Value::Object(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
}
