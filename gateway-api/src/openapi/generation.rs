//! Generates the document from the endpoint table and its types, so that it cannot disagree with either.

use std::collections::BTreeMap;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::auth::token;
use crate::authorization::Access;
use crate::error::Code;
use crate::table::{API_ROOT, Effect, Endpoint, Location, Method, Output, SchemaSource, Table, Versions};

use super::{compatible, defaults, layout, responses};

/// Suffix of input schemas. Inputs and outputs of one type differ (secrets are written, never shown), so each has its
/// own generator.
const INPUT: &str = "Input";

/// Returns the whole document.
pub fn document(table: &Table) -> Value {
    let mut generators = Generators::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for endpoint in table.endpoints() {
        let item = paths.entry(endpoint.path.to_owned()).or_default();
        if endpoint.location != Location::Api {
            item.insert("servers".to_owned(), json!([{"url": "/"}]));
        }
        item.insert(endpoint.method.as_str().to_ascii_lowercase(), operation(endpoint, &mut generators));
    }
    let mut schemas = generators.finish();
    schemas.insert("Error".to_owned(), error_schema());
    schemas.insert("Warning".to_owned(), warning_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Network gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every operation of the gateway. Successful bodies are {\"data\": ..}, with warnings beside \
                it where there are any; errors are {\"error\": {code, message, details}} on every path. Operations \
                marked x-not-supported are part of the contract and answer 501 in this version.",
        },
        "servers": [{"url": API_ROOT}],
        "tags": areas(table).into_iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {"schemas": schemas, "responses": responses::shared(), "securitySchemes": {
            "key": {"type": "http", "scheme": "bearer", "description": "An API key."},
            "session": {
                "type": "apiKey", "in": "cookie", "name": token::COOKIE,
                "description": "Set by POST /auth/login. Changes also need its csrf_token in X-CSRF-Token.",
            },
        }},
        "x-error-codes": Code::ALL
            .iter()
            .map(|code| json!({"code": code.as_str(), "status": code.status().as_u16()}))
            .collect::<Vec<_>>(),
    });
    let schemas = document["components"]["schemas"].clone();
    defaults::remove_invalid(&mut document, &schemas);
    compatible::simplify(&mut document);
    document
}

/// Returns the document in the committed layout.
pub fn text(table: &Table) -> String {
    layout::text(&document(table))
}

fn areas(table: &Table) -> Vec<&'static str> {
    let mut names = Vec::new();
    for endpoint in table.endpoints() {
        if !names.contains(&endpoint.area) {
            names.push(endpoint.area);
        }
    }
    names
}

fn operation(endpoint: &Endpoint, generators: &mut Generators) -> Value {
    let mut operation = json!({
        "operationId": endpoint.operation,
        "tags": [endpoint.area],
        "summary": endpoint.summary,
        "x-required-role": endpoint.access.required_role().as_str(),
        // With sign-in off, and for reading in the local network, no credential is needed.
        "security": if endpoint.access == Access::Open { json!([]) } else { json!([{"key": []}, {"session": []}]) },
        "parameters": parameters(endpoint, generators),
        "responses": responses::of(endpoint, success(endpoint, generators)),
    });
    if !endpoint.doc.is_empty() {
        operation["description"] = json!(endpoint.doc);
    }
    if let Some(needs) = endpoint.needs() {
        operation["x-not-supported"] = json!(needs);
        operation["description"] = json!(format!("Answers 501 not_supported: it needs {needs}."));
    }
    if let Effect::Stores(audit) | Effect::Acts(audit) = endpoint.effect {
        operation["x-audit-action"] = json!(audit.action);
    }
    if let Some(input) = endpoint.input.schema() {
        let schema = generators.input(input);
        let mut content = json!({"application/json": {"schema": schema}});
        if let Some(field) = endpoint.input.text_field() {
            content["text/plain"] = json!({
                "schema": {"type": "string", "description": format!("Taken as {field}; the other fields go in the query.")},
            });
            content["multipart/form-data"] = json!({
                "schema": {
                    "type": "object",
                    "description": format!("A form; its file is taken as {field}."),
                    "properties": {"name": {"type": "string"}, field: {"type": "string", "format": "binary"}},
                },
            });
        }
        if endpoint.input.is_file() {
            content["application/octet-stream"] = json!({"schema": {"type": "string", "format": "binary"}});
        }
        operation["requestBody"] = json!({"required": endpoint.input.is_required(), "content": content});
    }
    operation
}

fn parameters(endpoint: &Endpoint, generators: &mut Generators) -> Vec<Value> {
    let mut parameters: Vec<Value> = crate::table::placeholders(endpoint.path)
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if let (true, Some(rest)) = (endpoint.location == Location::RestOfRoot, parameters.last_mut()) {
        rest["description"] = json!("The rest of the path, which may contain slashes.");
    }
    parameters.extend(endpoint.queries.iter().flat_map(|query| generators.query(query.schema)));
    if endpoint.input.is_file() {
        parameters.push(json!({
            "name": "X-Passphrase", "in": "header", "schema": {"type": "string", "format": "password"},
            "description": "Passphrase of the file, if the body is the file itself.",
        }));
    }
    for name in filter_names(endpoint, generators) {
        parameters.push(json!({
            "name": name, "in": "query", "description": "Only objects with this value.", "schema": {"type": "string"},
        }));
    }
    // A new object has no revision yet.
    let changes = matches!(endpoint.method, Method::Put | Method::Delete) || endpoint.path.contains('{');
    if endpoint.versions == Versions::Tagged && changes && endpoint.method != Method::Get {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "schema": {"type": "string"},
            "description": "ETag of the version that the change is based on. The response is 412 if the object has changed since.",
        }));
    }
    parameters
}

/// Returns the successful response of an endpoint.
fn success(endpoint: &Endpoint, generators: &mut Generators) -> Value {
    let mut success = json!({"description": "Success"});
    match (endpoint.output.media(), endpoint.output.schema()) {
        (Some(media), _) => success["content"] = json!({media: {}}),
        (None, Some(output)) => {
            let mut data = generators.output(output);
            if endpoint.output.is_list() {
                data = json!({"type": "array", "items": data});
            }
            success["content"] = json!({"application/json": {"schema": {
                "type": "object",
                "required": ["data"],
                "properties": {
                    "data": data,
                    "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/Warning"}},
                },
            }}});
        }
        (None, None) => {}
    }
    let mut headers = Map::new();
    headers.insert("X-Request-Id".to_owned(), json!({"schema": {"type": "string"}}));
    if endpoint.versions == Versions::Tagged {
        headers.insert("ETag".to_owned(), json!({"schema": {"type": "string"}}));
    }
    if endpoint.output.is_list() {
        headers.insert("X-Total-Count".to_owned(), json!({"schema": {"type": "integer"}}));
    }
    if endpoint.status == 201 {
        headers.insert("Location".to_owned(), json!({"schema": {"type": "string"}}));
    }
    for (name, doc) in &endpoint.headers {
        headers.insert((*name).to_owned(), json!({"description": doc, "schema": {"type": "string"}}));
    }
    success["headers"] = Value::Object(headers);
    success
}

/// Returns the fields by which a list can be filtered: those of its objects that are plain values or lists of them.
fn filter_names(endpoint: &Endpoint, generators: &mut Generators) -> Vec<String> {
    let Output::FilteredList(output) = endpoint.output else { return Vec::new() };
    let schema = generators.output(output);
    let resolved = match schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        Some(name) => generators.output.definitions().get(name).cloned().unwrap_or_default(),
        None => schema,
    };
    resolved["properties"].as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

struct Generators {
    input: SchemaGenerator,
    output: SchemaGenerator,
    /// Without references: each parameter has its schema in place.
    query: SchemaGenerator,
}

impl Generators {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            input: settings().for_deserialize().into_generator(),
            output: settings().for_serialize().into_generator(),
            query: settings()
                .with(|settings| settings.inline_subschemas = true)
                .for_deserialize()
                .into_generator(),
        }
    }

    /// Returns the parameters of a type: its fields.
    fn query(&mut self, schema: SchemaSource) -> Vec<Value> {
        let mut schema = schema.generate(&mut self.query).to_value();
        let fields = schema["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
        let parameter = |(name, mut schema): (String, Value)| {
            let description = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
            json!({"name": name, "in": "query", "description": description, "schema": of_parameter(schema)})
        };
        fields.into_iter().map(parameter).collect()
    }

    fn input(&mut self, schema: SchemaSource) -> Value {
        let mut value = schema.generate(&mut self.input).to_value();
        suffix_references(&mut value);
        value
    }

    fn output(&mut self, schema: SchemaSource) -> Value {
        schema.generate(&mut self.output).to_value()
    }

    fn finish(mut self) -> Map<String, Value> {
        let mut schemas: BTreeMap<String, Value> = self.output.take_definitions(true).into_iter().collect();
        for (name, mut schema) in self.input.take_definitions(true) {
            suffix_references(&mut schema);
            schemas.insert(format!("{name}{INPUT}"), schema);
        }
        schemas.into_iter().collect()
    }
}

/// Returns the schema of a parameter. One that is left out is absent, not null; a choice of words is an `enum`.
fn of_parameter(mut schema: Value) -> Value {
    let is_null = |schema: &Value| schema["type"] == "null";
    if let Some(choices) = schema["anyOf"].as_array()
        && let [choice] = choices.iter().filter(|choice| !is_null(choice)).collect::<Vec<_>>()[..]
    {
        return of_parameter(choice.clone());
    }
    let words = |choices: &Vec<Value>| choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(words) =
        schema["oneOf"].as_array().and_then(|choices| -> Option<Vec<Value>> { words(choices) })
    {
        return json!({"type": "string", "enum": words});
    }
    if let Some(schema) = schema.as_object_mut() {
        if schema.get("default").is_some_and(Value::is_null) {
            schema.shift_remove("default");
        }
        if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            words.retain(|word| !word.is_null());
        }
        if let Some(types) = schema.get_mut("type").filter(|types| types.is_array()) {
            let only = types.as_array().into_iter().flatten().find(|name| *name != "null").cloned();
            *types = only.unwrap_or_default();
        }
        for unsigned in ["uint8", "uint16", "uint32", "uint64", "uint"] {
            if schema.get("format").is_some_and(|format| format == unsigned) {
                schema.shift_remove("format");
            }
        }
    }
    schema
}

fn suffix_references(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(target) if key == "$ref" => target.push_str(INPUT),
                    other => suffix_references(other),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(suffix_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "enum": Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()},
                "message": {"type": "string", "description": "A sentence for people; code is the contract."},
                "details": {
                    "type": "object",
                    "required": ["request_id"],
                    "properties": {"request_id": {"type": "string"}},
                },
            },
        }},
    })
}

fn warning_schema() -> Value {
    json!({
        "type": "object",
        "required": ["path", "message"],
        "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
    })
}
