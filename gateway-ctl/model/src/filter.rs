//! Filters of lists: by field name, all must hold.

use serde_json::Value;

/// `field=text` conditions of a query string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<(String, String)>);

impl Filter {
    pub fn new(conditions: impl IntoIterator<Item = (String, String)>) -> Filter {
        Filter(conditions.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _)| field.as_str())
    }

    /// Reports whether a shown object meets all conditions. A list meets a condition if one of its elements does.
    pub fn matches(&self, shown: &Value) -> bool {
        self.0.iter().all(|(field, want)| match shown.get(field) {
            Some(Value::Array(list)) => list.iter().any(|element| same(element, want)),
            Some(value) => same(value, want),
            None => false,
        })
    }
}

fn same(value: &Value, want: &str) -> bool {
    match value {
        Value::String(text) => text == want,
        Value::Null => want.is_empty() || want == "null",
        Value::Bool(have) => want == if *have { "true" } else { "false" },
        Value::Number(have) => have.to_string() == want,
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_hold_for_texts_numbers_and_members_of_lists() {
        let shown = json!({"name": "a", "priority": 10, "enabled": true, "tags": ["x", "y"], "mac": null});
        let filter =
            |pairs: &[(&str, &str)]| Filter::new(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())));
        assert!(filter(&[]).matches(&shown));
        assert!(
            filter(&[("name", "a"), ("priority", "10"), ("enabled", "true"), ("tags", "y"), ("mac", "")])
                .matches(&shown)
        );
        assert!(!filter(&[("name", "a"), ("priority", "11")]).matches(&shown));
        assert!(!filter(&[("colour", "")]).matches(&shown));
    }
}
