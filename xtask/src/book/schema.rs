//! JSON of examples against the schemas of the OpenAPI document: fields, required fields, types and enum values.

use serde_json::{Map, Value};

use super::shell::UNKNOWN;

/// Maximum nesting of references.
const MAX_DEPTH: usize = 32;

/// Returns the mismatches with the path of the field.
pub(super) fn check(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    visit(root, schema, value, "body", MAX_DEPTH, &mut problems);
    problems
}

fn visit(root: &Value, schema: &Value, value: &Value, path: &str, depth: usize, problems: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if value == UNKNOWN {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return match root.pointer(reference.trim_start_matches('#')) {
            Some(target) => visit(root, target, value, path, depth, problems),
            None => problems.push(format!("{path}: the document has no {reference}")),
        };
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        visit(root, part, value, path, depth, problems);
    }
    if let Some(variants) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let mut fewest: Option<Vec<String>> = None;
        for variant in variants {
            let mut found = Vec::new();
            visit(root, variant, value, path, depth, &mut found);
            if fewest.as_ref().is_none_or(|fewest| found.len() < fewest.len()) {
                fewest = Some(found);
            }
        }
        problems.extend(fewest.unwrap_or_default());
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        problems.push(format!("{path}: {value} is not {constant}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        problems.push(format!("{path}: {value} is none of {}", Value::from(words.clone())));
    }
    if !has_type(schema, value) {
        problems.push(format!("{path}: {value} is not of type {}", schema["type"]));
    }
    match value {
        Value::Array(items) if schema.get("items").is_some() => {
            for (index, item) in items.iter().enumerate() {
                visit(root, &schema["items"], item, &format!("{path}[{index}]"), depth, problems);
            }
        }
        Value::Object(fields) => visit_fields(root, schema, fields, path, depth, problems),
        _ => {}
    }
}

fn visit_fields(
    root: &Value,
    schema: &Value,
    fields: &Map<String, Value>,
    path: &str,
    depth: usize,
    problems: &mut Vec<String>,
) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, field) in fields {
        match properties.get(name) {
            Some(property) => visit(root, property, field, &format!("{path}.{name}"), depth, problems),
            None => problems.push(format!("{path}.{name}: there is no such field")),
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !fields.contains_key(*name));
    problems.extend(missing.map(|name| format!("{path}.{name}: is required")));
}

fn has_type(schema: &Value, value: &Value) -> bool {
    let fits = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    match &schema["type"] {
        Value::String(name) => fits(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(value: &Value) -> Vec<String> {
        let hop = json!({
            "type": "object",
            "properties": {"type": {"enum": ["vpn", "proxy"]}, "weight": {"type": ["integer", "null"]}},
            "required": ["type"],
        });
        let root = json!({"schemas": {"Hop": hop}});
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "hops": {"type": "array", "items": {"$ref": "#/schemas/Hop"}},
                "level": {"anyOf": [{"const": "low"}, {"type": "integer"}]},
            },
        });
        check(&root, &schema, value)
    }

    #[test]
    fn a_body_that_fits_has_no_problem() {
        let hops = json!([{"type": "vpn", "weight": null}, {"type": UNKNOWN}]);
        assert_eq!(problems(&json!({"name": "a", "hops": hops, "level": 3})), Vec::<String>::new());
    }

    #[test]
    fn mismatches_are_named_by_their_path() {
        let body = json!({"nmae": "a", "hops": [{"type": "vnp"}, {"weight": "1"}], "level": "high"});
        let mut found = problems(&body);
        found.sort();
        assert_eq!(
            found,
            [
                r#"body.hops[0].type: "vnp" is none of ["vpn","proxy"]"#,
                "body.hops[1].type: is required",
                r#"body.hops[1].weight: "1" is not of type ["integer","null"]"#,
                r#"body.level: "high" is not "low""#,
                "body.nmae: there is no such field",
            ]
        );
    }
}
