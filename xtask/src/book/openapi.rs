//! The committed OpenAPI document, limited to the parts that examples are checked against.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::paths;

/// OpenAPI document of the API.
#[derive(Debug)]
pub(super) struct OpenApi {
    pub document: Value,
}

/// Operation that an example calls.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    value: &'a Value,
}

pub(super) fn load() -> Result<OpenApi> {
    let file = paths::root().join("gateway-api/openapi.json");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let document = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    Ok(OpenApi { document })
}

impl OpenApi {
    /// Returns the operation at a path below the server's. An example may have concrete values in the path.
    pub(super) fn operation(&self, method: &str, path: &str) -> Result<Operation<'_>, String> {
        let paths = self.document["paths"].as_object().into_iter().flatten();
        let found: Vec<_> = paths.filter(|(template, _)| matches(template, path)).collect();
        // Of several matching templates, the one with fewer parameters applies.
        let Some((template, item)) =
            found.into_iter().min_by_key(|(template, _)| template.matches('{').count())
        else {
            return Err(format!("the API has no path {path}"));
        };
        let value =
            item.get(method.to_lowercase()).ok_or_else(|| format!("the API has no {method} {template}"))?;
        if value.get("x-not-supported").is_some() {
            return Err(format!("{method} {template} is not built"));
        }
        Ok(Operation { value })
    }
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let fits = |(wanted, given): (&&str, &&str)| {
        wanted == given || wanted.starts_with('{') && !given.is_empty() && !given.starts_with('{')
    };
    template.len() == path.len() && template.iter().zip(&path).all(fits)
}

impl Operation<'_> {
    /// Returns true unless the operation documents its query parameters and `name` is not among them.
    pub(super) fn takes_query(&self, name: &str) -> bool {
        let parameters = self.value["parameters"].as_array().into_iter().flatten();
        let mut query = parameters.filter(|parameter| parameter["in"] == "query").peekable();
        query.peek().is_none() || query.any(|parameter| parameter["name"] == name)
    }

    pub(super) fn json_schema(&self) -> Option<&Value> {
        self.value.pointer("/requestBody/content/application~1json/schema")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn api() -> OpenApi {
        let list = json!({"parameters": [{"in": "query", "name": "status"}]});
        let paths = json!({
            "/things": {"get": list, "post": {"x-not-supported": "wings"}},
            "/things/{id}": {"delete": {}},
            "/things/special": {"put": {}},
        });
        OpenApi { document: json!({"paths": paths}) }
    }

    #[test]
    fn operations_are_found_by_filled_in_paths() {
        assert!(api().operation("DELETE", "/things/7").is_ok());
        assert!(api().operation("PUT", "/things/special").is_ok());
        let problem = |method, path| api().operation(method, path).expect_err("no such operation");
        assert_eq!(problem("DELETE", "/things/special"), "the API has no DELETE /things/special");
        assert_eq!(problem("GET", "/things/7/x"), "the API has no path /things/7/x");
        assert_eq!(problem("POST", "/things"), "POST /things is not built");
    }

    #[test]
    fn query_parameters_are_those_of_the_document() {
        let api = api();
        let list = api.operation("GET", "/things").expect("exists");
        assert!(list.takes_query("status"));
        assert!(!list.takes_query("colour"));
    }
}
