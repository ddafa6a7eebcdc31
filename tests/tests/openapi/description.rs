//! The document in the form for schemathesis: complete paths, and for each endpoint an example that succeeds.

use std::fmt::Write as _;

use gateway_api::table::{Endpoint, Table};
use gateway_api::{endpoints, openapi};
use serde_json::{Map, Value, json};

use crate::openapi::seeds;
use crate::openapi::server::Server;

/// Returns the document of the API without the endpoints that are tested elsewhere.
pub(super) fn with_examples(server: &Server, elsewhere: &[(&str, &str)]) -> Value {
    let table = endpoints::table();
    let mut document = openapi::document(&table);
    let mut paths = Map::new();
    for endpoint in table.endpoints() {
        let name = format!("{} {}", endpoint.method.as_str(), endpoint.path);
        if elsewhere.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let method = endpoint.method.as_str().to_ascii_lowercase();
        let mut operation = document["paths"][endpoint.path][&method].take();
        if endpoint.needs().is_none() {
            exemplify(server, endpoint, &mut operation);
        }
        let item = paths.entry(endpoint.full_path()).or_insert_with(|| json!({}));
        item[&method] = operation;
    }
    // The servers of the document include the root of the API, and now these paths do too.
    document["servers"] = json!([{"url": server.origin()}]);
    document["paths"] = Value::Object(paths);
    document
}

/// Sets the endpoint's parameters and body to the values of a request that succeeds.
fn exemplify(server: &Server, endpoint: &Endpoint, operation: &mut Value) {
    let Some(seed) = seeds::of(server, endpoint) else { return };
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        if let Some(value) = seed.parameters.iter().find(|(known, _)| *known == name) {
            parameter["example"] = json!(value.1);
        }
    }
    if let Some(body) = seed.body {
        operation["requestBody"]["content"]["application/json"]["example"] = body;
    }
}

/// Endpoints that the host or the server of models may lack, with 501.
fn may_be_missing(endpoint: &Endpoint) -> bool {
    let of_host = ["/bluetooth/", "/ai/models/", "/storage/encrypted/"];
    endpoint.needs().is_some()
        || endpoint.path == "/ai/service"
        || of_host.iter().any(|path| endpoint.path.starts_with(path))
}

/// Returns the configuration. Endpoints that are not implemented may answer 501. A scenario is a sequence of requests
/// that use earlier results.
pub(super) fn configuration(table: &Table) -> String {
    let mut text = String::from("[phases.stateful]\ngeneration.max-examples = 40\n");
    for endpoint in table.endpoints().iter().filter(|endpoint| may_be_missing(endpoint)) {
        let path = endpoint.full_path();
        write!(
            text,
            "[[operations]]\ninclude-name = \"{} {path}\"\n\
             checks.not_a_server_error.expected-statuses = [\"2xx\", \"3xx\", \"4xx\", 501]\n",
            endpoint.method.as_str()
        )
        .expect("a string takes everything");
    }
    text
}
