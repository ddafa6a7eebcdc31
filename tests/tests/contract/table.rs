//! The endpoints against the contract, and the OpenAPI document against the endpoints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gateway_api::table::{API_ROOT, Endpoint, Location, Table};
use gateway_api::{endpoints, openapi};
use serde_json::{Value, json};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    let path = file(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns entries like `GET /devices`, one per line of a table whose last two columns are method and path.
fn contract_lines(path: &str) -> BTreeSet<String> {
    read(path)
        .lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            format!("{} {}", columns[columns.len() - 2], columns[columns.len() - 1])
        })
        .collect()
}

fn name(endpoint: &Endpoint) -> String {
    let path = match endpoint.location {
        Location::Api => endpoint.path.to_owned(),
        Location::Root | Location::RestOfRoot => endpoint.full_path(),
    };
    format!("{} {path}", endpoint.method.as_str())
}

/// Returns the name without the names of its placeholders, which may differ between contract and table.
fn shape(name: &str) -> String {
    name.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect::<Vec<_>>().join("/")
}

#[test]
fn the_rows_are_those_of_the_contract_and_the_named_additions() {
    let contract = contract_lines("contract/endpoints.tsv");
    let additions = contract_lines("contract/additions.tsv");
    assert_eq!(contract.len(), 249, "lines of the contract");
    assert!(contract.is_disjoint(&additions), "an addition is in the contract already");
    let endpoints: BTreeSet<String> = endpoints::table().endpoints().iter().map(name).collect();
    let wanted: BTreeSet<String> = contract.union(&additions).cloned().collect();
    let missing: Vec<_> = wanted.difference(&endpoints).collect();
    let unknown: Vec<_> = endpoints.difference(&wanted).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:#?}\nunknown: {unknown:#?}");
}

#[test]
fn rows_stand_in_the_area_that_the_contract_names() {
    let areas_of: std::collections::BTreeMap<String, String> = read("contract/endpoints.tsv")
        .lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            (format!("{} {}", columns[1], columns[2]), columns[0].to_owned())
        })
        .collect();
    for endpoint in endpoints::table().endpoints() {
        if let Some(area) = areas_of.get(&name(endpoint)) {
            assert_eq!(endpoint.area, area, "{}", name(endpoint));
        }
    }
}

/// The list may only shrink. `UPDATE=1` removes implemented endpoints. Additions are manual and need a reason in the
/// review.
#[test]
fn the_rows_that_are_not_built_are_exactly_the_listed_ones() {
    let listed: BTreeSet<String> = read("contract/unimplemented.txt")
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let unbuilt: BTreeSet<String> = endpoints::table()
        .endpoints()
        .iter()
        .filter(|endpoint| endpoint.needs().is_some())
        .map(name)
        .collect();
    let forgotten: Vec<_> = unbuilt.difference(&listed).collect();
    let built: Vec<_> = listed.difference(&unbuilt).collect();
    if std::env::var_os("UPDATE").is_some() && forgotten.is_empty() {
        let text: String = unbuilt.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(file("contract/unimplemented.txt"), text).expect("the list can be written");
        return;
    }
    assert!(forgotten.is_empty(), "not built and not listed: {forgotten:#?}");
    assert!(built.is_empty(), "listed but built (take them off the list): {built:#?}");
}

#[test]
fn rows_have_unique_operation_names_and_a_summary() {
    let table = endpoints::table();
    let mut names = BTreeSet::new();
    for endpoint in table.endpoints() {
        assert!(
            names.insert(endpoint.operation.clone()),
            "{} names another endpoint already",
            endpoint.operation
        );
        assert!(!endpoint.summary.is_empty(), "{} has no summary", name(endpoint));
    }
}

#[test]
fn every_change_that_is_built_has_an_audit_action() {
    // POST endpoints that return data and change nothing.
    let questions = [
        "POST /validate",
        "POST /policy/evaluate",
        "POST /policy/conflicts",
        "POST /ai/policy",
        "POST /ai/query",
        "POST /ai/validate",
        "POST /tunnels/generate-keys",
        "POST /bridges/{id}/test",
        "POST /captive/check",
        "POST /federation/notice",
        "POST /federation/pull",
    ];
    for endpoint in endpoints::table().endpoints().iter().filter(|endpoint| endpoint.needs().is_none()) {
        let reads = endpoint.method.as_str() == "GET" || questions.contains(&name(endpoint).as_str());
        assert_eq!(endpoint.effect.audit().is_none(), reads, "{}", name(endpoint));
    }
}

/// `UPDATE=1` rewrites the committed document.
#[test]
fn the_committed_openapi_document_is_fresh() {
    let path = file("../gateway-api/openapi.json");
    let made = openapi::text(&endpoints::table());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).expect("the document can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("gateway-api/openapi.json is committed");
    assert!(committed == made, "gateway-api/openapi.json is stale: run this test with UPDATE=1");
    assert!(
        openapi::embedded() == committed.as_bytes(),
        "the build has embedded another document: build again"
    );
    let names = openapi::query_names(committed.as_bytes()).expect("an OpenAPI document");
    assert!(names["list_devices"].iter().any(|name| name == "mac"), "{:?}", names["list_devices"]);
}

#[test]
fn the_openapi_document_has_the_rows_and_nothing_else() {
    let table: Table = endpoints::table();
    let document = openapi::document(&table);
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], API_ROOT);
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if method != "servers" {
                assert!(
                    operation["responses"].as_object().is_some_and(|responses| !responses.is_empty()),
                    "{path}"
                );
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let endpoints: BTreeSet<String> = table.endpoints().iter().map(name).collect();
    assert_eq!(described, endpoints);
    // Each path has one set of placeholder names: there are as many shapes as paths.
    let paths: BTreeSet<&str> = table.endpoints().iter().map(|endpoint| endpoint.path).collect();
    let shapes: BTreeSet<String> = paths.iter().map(|path| shape(path)).collect();
    assert_eq!(paths.len(), shapes.len(), "two endpoints name the placeholder of one path differently");
}

#[test]
fn every_reference_in_the_openapi_document_leads_somewhere() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    if let (true, Some(target)) = (key == "$ref", value.as_str()) {
                        let pointer = target.strip_prefix('#').expect("a local reference");
                        assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
                    }
                    walk(value, document);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, document)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = openapi::document(&endpoints::table());
    walk(&document, &document);
}

/// Strings whose description lists values. The kernel has more values of `Interface.kind` and `Nic.state`, and a test other
/// steps; each of the others is to become a type of the model. The list may only shrink.
const LISTED_IN_WORDS: &[&str] =
    &["Ebpf.mode", "Event.action", "Interface.kind", "Nic.state", "TestStep.name", "XdpStatus.reason"];

/// Returns the longest list of words in backticks, such as "`a`, `b` or `c`", that a description has.
fn words_listed(description: &str) -> usize {
    let parts: Vec<&str> = description.split('`').collect();
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|c| c == b'_' || c.is_ascii_lowercase());
    // Of a list, what is between two words joins them.
    let joins = |text: &str| matches!(text.trim(), "," | "or" | ", or");
    let (mut longest, mut length) = (0, 0);
    for pair in parts.chunks(2) {
        let (between, word) = (pair[0], pair.get(1).copied().unwrap_or_default());
        length = match (joins(between), is_word(word)) {
            (true, true) => length + 1,
            (false, true) => 1,
            (_, false) => 0,
        };
        longest = longest.max(length);
    }
    longest
}

#[test]
fn a_field_that_has_one_of_some_words_is_an_enum() {
    assert_eq!(words_listed("One of `a`, `b_c` or `d`."), 3);
    assert_eq!(words_listed("`a`, the first, and `b`, `c/d`"), 1);
    let document = openapi::document(&endpoints::table());
    let mut listed = BTreeSet::new();
    let mut note = |name: String, schema: &Value, description: &Value| {
        let is_text = schema["type"] == "string"
            || schema["type"].as_array().is_some_and(|types| types.contains(&json!("string")));
        let is_closed = ["enum", "const", "format", "pattern"].iter().any(|key| schema.get(key).is_some());
        if is_text && !is_closed && words_listed(description.as_str().unwrap_or_default()) >= 3 {
            listed.insert(name);
        }
    };
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            note(format!("{name}.{field}"), schema, &schema["description"]);
        }
    }
    for operation in document["paths"].as_object().expect("paths").values().filter_map(Value::as_object) {
        for operation in operation.values() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = format!("{} {}", operation["operationId"], parameter["name"]);
                note(name, &parameter["schema"], &parameter["description"]);
            }
        }
    }
    let expected: BTreeSet<String> = LISTED_IN_WORDS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, expected);
}
