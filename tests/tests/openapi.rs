//! The API against its own description: schemathesis generates requests from the OpenAPI document, valid and invalid
//! ones, and checks each response. There is no server error and no undeclared status of an endpoint, and every body
//! matches its schema. Needs neither root nor network; `cargo xtask setup` installs schemathesis.

mod clients;
mod description;
mod raw;
mod seeds;
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gateway_api::{endpoints, openapi};
use gateway_tests::process::describe;
use serde_json::{Value, json};
use server::Server;

/// Endpoints that are not tested here, with the location of their tests.
const ELSEWHERE: &[(&str, &str)] = &[
    ("GET /flows/stream", "goes on for ever: e2e flows"),
    ("GET /events", "goes on for ever: contract views::events_tell_of_each_commit"),
    ("POST /mesh/register", "would send to whatever URL was made up: contract mesh_member"),
    ("POST /nodes/exchange", "would send to whatever URL was made up: e2e federation"),
    ("POST /alerts/email/test", "would send to whatever server was made up: the suite deliveries"),
    ("POST /alerts/mqtt/test", "would publish at whatever broker was made up: the suite deliveries"),
    ("POST /alerts/webhook/test", "would send to whatever URL was made up: the suite deliveries"),
    ("POST /system/wipe", "takes away what the others are tried on: contract security, e2e wipe"),
];

/// The server of this suite has no kernel, so it has no captures.
const NO_KERNEL: &str = "needs interfaces: e2e captures";
/// No client joins the mesh of this suite.
const NO_PEER: &str = "needs a node: e2e mesh";

/// The server of this suite has no language model.
const NO_MODEL: &str = "needs a language model: contract assistant";

/// No encrypted storage is set up in this suite, whatever the host has.
const NO_STORAGE: &str = "needs device-mapper: vm encrypted_storage";

/// The host of this suite has no Bluetooth adapter.
const NO_ADAPTER: &str = "needs a Bluetooth adapter: e2e bluetooth";

/// Endpoints whose success is impossible here, with the reason. They are tested regardless.
const REFUSED: &[(&str, &str)] = &[
    ("GET /ai/models/running", NO_MODEL),
    ("POST /ai/models/load", NO_MODEL),
    ("POST /ai/models/unload", NO_MODEL),
    ("POST /ai/models/pull", NO_MODEL),
    ("DELETE /ai/models/{name}", NO_MODEL),
    ("POST /ai/policy", NO_MODEL),
    ("POST /ai/query", NO_MODEL),
    ("POST /ai/service", "needs systemd with the unit of Ollama"),
    ("POST /apply/confirm", "succeeds only while a change waits for it: contract apply"),
    ("POST /apply/revert", "a change that waits for it would bar the others: contract apply"),
    ("POST /backup/run", "backups are off, so that no folder is written to: the suite backup"),
    (
        "POST /dns/extfilter/enable",
        "a filter that is set would be asked by whatever address was made up: contract extfilter",
    ),
    ("GET /bluetooth/rssi/{mac}", NO_ADAPTER),
    ("POST /bluetooth/enable", NO_ADAPTER),
    ("POST /bluetooth/disable", NO_ADAPTER),
    ("POST /bluetooth/scan", NO_ADAPTER),
    ("POST /bluetooth/pair", NO_ADAPTER),
    ("POST /bluetooth/pan/connect", NO_ADAPTER),
    ("POST /bluetooth/pan/disconnect", NO_ADAPTER),
    ("POST /bluetooth/nap/start", NO_ADAPTER),
    ("POST /bluetooth/nap/stop", NO_ADAPTER),
    ("PUT /bluetooth/name", NO_ADAPTER),
    ("DELETE /bluetooth/devices/{mac}", NO_ADAPTER),
    ("POST /federation/exchange", "another gateway signs it: e2e federation"),
    ("GET /federation/hub", "needs a key, which an exchange makes: e2e federation_bus"),
    ("POST /federation/rotate-key", "needs a key, which an exchange makes: e2e federation"),
    ("POST /federation/notice", "another gateway signs it: e2e federation"),
    ("POST /federation/pull", "another gateway signs it: e2e federation"),
    ("POST /auth/setup", "there are accounts already: authz accounts"),
    ("GET /diagnostics/bundle/{id}", "the id of a bundle is not among the examples: contract support_bundle"),
    ("GET /diagnostics/bundle/{id}/archive", "as above"),
    ("POST /storage/encrypted/setup", NO_STORAGE),
    ("POST /storage/encrypted/teardown", NO_STORAGE),
    ("POST /storage/encrypted/unlock", NO_STORAGE),
    ("POST /storage/encrypted/lock", NO_STORAGE),
    ("PUT /storage/encrypted/passphrase", NO_STORAGE),
    ("PUT /storage/encrypted/stored-key", NO_STORAGE),
    ("DELETE /storage/encrypted/stored-key", NO_STORAGE),
    ("PUT /storage/encrypted/tpm2-key", NO_STORAGE),
    ("DELETE /storage/encrypted/tpm2-key", NO_STORAGE),
    ("POST /mesh/create-key", "the coordinator is off: contract mesh"),
    ("POST /mesh/up", "the gateway is registered nowhere: contract mesh_member"),
    ("POST /mesh/down", "the gateway is registered nowhere: contract mesh_member"),
    ("GET /mesh/peers/{id}", NO_PEER),
    ("DELETE /mesh/peers/{id}", NO_PEER),
    ("POST /mesh/peers/{id}/routes", NO_PEER),
    ("POST /diagnostics/capture", NO_KERNEL),
    ("GET /diagnostics/capture/{id}", NO_KERNEL),
    ("DELETE /diagnostics/capture/{id}", NO_KERNEL),
    ("GET /diagnostics/capture/{id}/stream", NO_KERNEL),
    ("GET /diagnostics/capture/{id}/pcapng", NO_KERNEL),
];

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,allow_header_conformance";

#[test]
fn every_row_answers_as_its_description_says() {
    let server = Server::start();
    let document = description::with_examples(&server, ELSEWHERE);
    let outcome = run(&server, &document);
    println!("{}", outcome.said);
    assert!(outcome.passed, "see above");

    let seen = server.seen();
    let silent = |endpoint: &str| ELSEWHERE.iter().any(|(known, _)| *known == endpoint);
    let (mut untried, mut never, mut tried) = (Vec::new(), Vec::new(), 0);
    for endpoint in endpoints::table().endpoints() {
        let name = format!("{} {}", endpoint.method.as_str(), endpoint.path);
        match seen.get(&endpoint.operation) {
            None if silent(&name) => {}
            None => untried.push(name),
            Some(statuses) => {
                tried += statuses.values().sum::<usize>();
                let succeeded = statuses.keys().any(|status| *status < 300);
                if endpoint.needs().is_none() && !succeeded {
                    never.push(format!("{name}: {statuses:?}"));
                }
            }
        }
    }
    println!("{tried} requests to {} endpoints", seen.len());
    assert!(untried.is_empty(), "never asked: {untried:#?}");
    let known: BTreeSet<&str> = REFUSED.iter().map(|(endpoint, _)| *endpoint).collect();
    never.retain(|endpoint| !known.iter().any(|known| endpoint.starts_with(&format!("{known}:"))));
    assert!(never.is_empty(), "asked, and never with success: {never:#?}");
    // A run with too few requests would find nothing.
    assert!(tried > 5_000, "{tried} requests");
}

/// Negative control: a check that never fails would prove nothing.
#[test]
fn a_description_that_lies_is_found_out() {
    let server = Server::start();
    let honest = openapi::document(&endpoints::table())["paths"]["/version"]["get"].clone();
    let document = |operation: &Value| {
        let mut document = openapi::document(&endpoints::table());
        document["paths"] = json!({"/api/v1/version": {"get": operation}});
        document
    };
    let outcome = run(&server, &document(&honest));
    assert!(outcome.passed, "{}", outcome.said);
    let mut lies = vec![honest.clone(), honest.clone()];
    lies[0]["responses"] = json!({"204": {"description": "Nothing"}});
    lies[1]["responses"]["200"]["content"]["application/json"]["schema"] = json!({"type": "array"});
    for lie in lies {
        let outcome = run(&server, &document(&lie));
        assert!(!outcome.passed, "{}", outcome.said);
        assert!(outcome.said.contains("GET /api/v1/version"), "{}", outcome.said);
    }
}

/// Validates the document against the specification of OpenAPI 3.1. Each default is a value that its own schema
/// accepts.
#[test]
fn the_document_is_valid_openapi() {
    let folder = tempfile::tempdir().expect("a folder");
    let validate = |document: &Value| {
        let file = folder.path().join("openapi.json");
        fs::write(&file, document.to_string()).expect("written");
        let validator = program().with_file_name("openapi-spec-validator");
        let output = Command::new(validator)
            .args(["--validation-errors", "all"])
            .arg(&file)
            .output()
            .expect("openapi-spec-validator starts");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let mut document = openapi::document(&endpoints::table());
    let (valid, text) = validate(&document);
    assert!(valid, "{text}");
    document["components"]["schemas"]["Warning"]["properties"]["path"]["default"] = json!(7);
    let (valid, text) = validate(&document);
    assert!(!valid, "a default of another type is not found: {text}");
}

struct Outcome {
    passed: bool,
    said: String,
}

fn run(server: &Server, document: &Value) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("openapi.json");
    fs::write(&file, document.to_string()).expect("written");
    let configuration = folder.path().join("schemathesis.toml");
    fs::write(&configuration, description::configuration(&endpoints::table())).expect("written");
    let output = Command::new(program())
        .current_dir(folder.path())
        .arg("--config-file")
        .arg(&configuration)
        .arg("run")
        .arg(&file)
        .args([
            "--url",
            &server.origin(),
            "--checks",
            CHECKS,
            "--phases",
            "examples,coverage,fuzzing,stateful",
        ])
        .args([
            "--max-examples",
            "8",
            "--seed",
            "20261121",
            "--generation-database",
            "none",
            "--workers",
            "2",
        ])
        .args(["--request-timeout", "60", "--continue-on-failure", "--no-color", "--warnings", "off"])
        .output()
        .expect("schemathesis starts");
    let said = [output.stdout, output.stderr].concat();
    let said = format!("{}\n{}", String::from_utf8_lossy(&said), describe(output.status));
    Outcome { passed: output.status.success(), said }
}

/// Returns `SCHEMATHESIS`, or the path of the set-up.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("SCHEMATHESIS") {
        return named.into();
    }
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/schemathesis/bin/schemathesis");
    assert!(place.is_file(), "no schemathesis: run `cargo xtask setup`, or name it in SCHEMATHESIS");
    place
}
