//! Forms that public generators of clients read: `true` as a schema becomes `{}`, and a choice of described constants an
//! enumeration whose description has theirs.

use serde_json::{Map, Value};

/// Rewrites the schemas of a document.
pub(super) fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            enumerate(object);
            for key in ["properties", "patternProperties"] {
                let members = object.get_mut(key).and_then(Value::as_object_mut);
                let any = members
                    .into_iter()
                    .flat_map(Map::values_mut)
                    .filter(|schema| **schema == Value::Bool(true));
                any.for_each(|schema| *schema = Value::Object(Map::new()));
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(list) => list.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn enumerate(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let (mut values, mut described) = (Vec::new(), Vec::new());
    for choice in choices {
        let names: Vec<&str> = match (choice.get("const"), choice.get("enum")) {
            (Some(Value::String(name)), None) => vec![name],
            (None, Some(Value::Array(names))) if names.iter().all(Value::is_string) => {
                names.iter().filter_map(Value::as_str).collect()
            }
            _ => return,
        };
        let text = choice.get("description").and_then(Value::as_str);
        described.extend(text.map(|text| format!("`{}`: {text}", names.join("`, `"))));
        values.extend(names.into_iter().map(Value::from));
    }
    schema.shift_remove("oneOf");
    let own = schema.get("description").and_then(Value::as_str).map(str::to_owned);
    let description: Vec<String> = own.into_iter().chain(described).collect();
    if !description.is_empty() {
        schema.insert("description".to_owned(), description.join("\n").into());
    }
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), values.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn described_constants_become_an_enumeration_and_true_an_empty_schema() {
        let mut document = json!({
            "oneOf": [
                {"type": "string", "enum": ["a", "b"]},
                {"type": "string", "const": "c", "description": "The third."},
            ],
            "description": "Letters.",
        });
        simplify(&mut document);
        let wanted =
            json!({"description": "Letters.\n`c`: The third.", "type": "string", "enum": ["a", "b", "c"]});
        assert_eq!(document, wanted);
        let mut document =
            json!({"properties": {"any": true, "none": false, "other": {"oneOf": [{"$ref": "x"}]}}});
        simplify(&mut document);
        assert_eq!(
            document,
            json!({"properties": {"any": {}, "none": false, "other": {"oneOf": [{"$ref": "x"}]}}})
        );
    }
}
