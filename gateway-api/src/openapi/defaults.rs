//! Defaults of schemas. The generator takes them from the default value of the type. Some of them are invalid in the
//! schema, because the field is required, or because a secret is shown as a boolean.

use serde_json::{Map, Value};

/// Removes the defaults that their own schemas do not accept. `schemas` contains the targets of references.
pub(super) fn remove_invalid(value: &mut Value, schemas: &Value) {
    match value {
        Value::Object(object) => {
            // A property with this name is a schema, and an example may be any value.
            let is_schema = ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"]
                .iter()
                .any(|keyword| object.contains_key(*keyword));
            if is_schema && object.get("default").is_some_and(|default| !accepts(object, default, schemas)) {
                object.shift_remove("default");
            }
            object.values_mut().for_each(|value| remove_invalid(value, schemas));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| remove_invalid(value, schemas)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn accepts(schema: &Map<String, Value>, value: &Value, schemas: &Value) -> bool {
    let within = |schema: &Value| schema.as_object().is_none_or(|schema| accepts(schema, value, schemas));
    let referred = || {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        schemas.get(name)
    };
    let of_type = match schema.get("type") {
        Some(Value::String(kind)) => is_of(value, kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(|kind| is_of(value, kind)),
        _ => true,
    };
    let listed = |key: &str| schema.get(key).and_then(Value::as_array);
    // A string with a pattern or a minimum length is not empty.
    let has_form = schema.contains_key("pattern")
        || schema.get("minLength").and_then(Value::as_u64).is_some_and(|length| length > 0);
    of_type
        && referred().is_none_or(within)
        && listed("enum").is_none_or(|list| list.contains(value))
        && schema.get("const").is_none_or(|only| only == value)
        && listed("anyOf").is_none_or(|list| list.iter().any(within))
        && listed("oneOf").is_none_or(|list| list.iter().any(within))
        && listed("allOf").is_none_or(|list| list.iter().all(within))
        && !(has_form && value == "")
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_defaults_that_the_schema_refuses_go() {
        let schemas = json!({"Mode": {"oneOf": [{"type": "string", "const": "a"}, {"type": "null"}]}});
        let mut document = json!({"properties": {
            "secret": {"type": ["string", "null"], "default": false},
            "name": {"type": "string", "pattern": "^a", "default": ""},
            "notes": {"type": "string", "default": ""},
            "mode": {"$ref": "#/components/schemas/Mode", "default": null},
            "bad_mode": {"$ref": "#/components/schemas/Mode", "default": "z"},
            "count": {"type": "integer", "default": 3},
            "default": {"type": "boolean", "default": "no"},
        }});
        remove_invalid(&mut document, &schemas);
        let has = |name: &str| document["properties"][name].get("default").is_some();
        let names = ["secret", "name", "notes", "mode", "bad_mode", "count", "default"];
        assert_eq!(names.map(has), [false, false, true, true, false, true, false]);
    }
}
