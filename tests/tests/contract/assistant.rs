//! The assistant through the API, against a server of language models in both protocols.

use std::time::Duration;

use gateway_tests::model_server::{ENDLESS, MODEL, ModelServer, Protocol};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::contract::client::Client;

const DEADLINE: Duration = Duration::from_secs(20);
const KEY: &str = "sk-s3cret-of-the-model";

/// Returns a verdict as a model gives it.
fn verdict() -> Option<String> {
    Some(json!({"verdict": "fine", "explanation": "It blocks all.", "confidence": 0.75}).to_string())
}

async fn configured(kind: &str, server: &ModelServer) -> Client {
    let client = Client::new();
    let config =
        json!({"enabled": true, "kind": kind, "endpoint": server.url(), "model": "small", "api_key": KEY});
    let set = client.put("/ai/config", config).await;
    assert_eq!((set.status, set.json().get("warnings")), (200, None), "{}", set.text);
    client
}

fn policy() -> Value {
    json!({"policy": {"name": "guests", "priority": 50, "source_type": "all", "hops": [], "fail_policy": "fail-closed"}})
}

#[tokio::test]
async fn off_by_default_it_asks_no_server_and_still_checks_policies() {
    let client = Client::new();
    let status = client.get("/ai/status").await.data();
    assert_eq!((&status["enabled"], &status["reachable"]), (&json!(false), &Value::Null));
    assert_eq!((&status["error"], &status["running"]), (&Value::Null, &Value::Null));
    client.get("/ai/models/running").await.error(409, "invalid_state");
    for path in ["/ai/models/load", "/ai/models/unload", "/ai/models/pull"] {
        client.post(path, json!({"name": "x"})).await.error(409, "invalid_state");
    }
    client.send("DELETE", "/ai/models/x", None, &[]).await.error(409, "invalid_state");

    let checked = client.post("/ai/validate", policy()).await;
    assert_eq!(checked.status, 200, "{}", checked.text);
    let checked = checked.data();
    assert_eq!((&checked["valid"], &checked["ai"]), (&json!(true), &Value::Null));
    assert_eq!(checked["ai_error"], "the assistant is off");
    assert_eq!(checked["changes"][0]["op"], "create");
    assert_eq!(checked["plan"]["changed"], true);
    assert_eq!(client.get("/routing/policies").await.data(), json!([]), "nothing is stored");
}

#[tokio::test]
async fn another_host_is_refused_unless_allowed() {
    let client = Client::new();
    let remote = json!({"enabled": true, "endpoint": "http://192.0.2.1:11434", "model": "small"});
    let refused = client.put("/ai/config", remote.clone()).await;
    refused.error(422, "validation_failed");
    assert_eq!(refused.json()["error"]["details"]["fields"][0]["path"], "endpoint");
    let mut allowed = remote;
    allowed["allow_remote"] = json!(true);
    let set = client.put("/ai/config", allowed.clone()).await;
    assert_eq!((set.status, &set.json()["warnings"][0]["path"]), (200, &json!("pseudonyms")), "{}", set.text);
    allowed["endpoint"] = json!("http://169.254.169.254/");
    client.put("/ai/config", allowed).await.error(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_loaded_downloaded_and_removed() {
    let server = ModelServer::start(Protocol::Ollama, KEY, |_| verdict()).expect("a server");
    let client = configured("ollama", &server).await;
    let status = client.get("/ai/status").await.data();
    assert_eq!((&status["reachable"], &status["version"]), (&json!(true), &json!("0.5.7")), "{status}");
    assert_eq!((&status["model_installed"], &status["model_loaded"]), (&json!(true), &json!(false)));
    assert_eq!(status["models"][0]["quantization"], "Q4_1");
    let loaded = client.post("/ai/models/load", json!({})).await;
    assert_eq!(loaded.data(), json!({"name": "small", "loaded": true}), "{}", loaded.text);
    let entry = client.last_audit().await;
    assert_eq!(
        (&entry["action"], &entry["resource_id"]),
        (&json!("load_ai_model"), &json!("small")),
        "{entry}"
    );
    assert_eq!(
        (&entry["resource_type"], &entry["result"]),
        (&json!("ai_model"), &json!("success")),
        "{entry}"
    );
    let running = client.get("/ai/models/running").await.data();
    assert_eq!((&running[0]["name"], &running[0]["size_vram"]), (&json!(MODEL), &json!(0)));
    assert_eq!(client.get("/ai/status").await.data()["model_loaded"], true);
    client.post("/ai/models/unload", json!({"name": "small"})).await.data();
    assert_eq!(client.get("/ai/models/running").await.data(), json!([]));
    client.post("/ai/models/load", json!({"name": "none"})).await.error(404, "not_found");

    let pull = client.post("/ai/models/pull", json!({"name": "other"})).await;
    assert_eq!((pull.status, &pull.data()["state"]), (202, &json!("running")), "{}", pull.text);
    let done = pull_of(&client, "other", "done");
    assert_eq!(done["completed"], Value::Null, "{done}");
    client.post("/ai/models/pull", json!({"name": "missing"})).await.data();
    let failed = pull_of(&client, "missing", "failed");
    assert_eq!(failed["error"], "pull model manifest: file does not exist");

    let deleted = client.send("DELETE", "/ai/models/other", None, &[]).await.data();
    assert_eq!(deleted, json!({"name": "other", "deleted": true, "stopped": false}));
    client.send("DELETE", "/ai/models/other", None, &[]).await.error(404, "not_found");
    let actions = client.get("/audit").await.text;
    for action in
        ["load_ai_model", "unload_ai_model", "pull_ai_model", "delete_ai_model", "replace_ai_config"]
    {
        assert!(actions.contains(action), "{action}");
    }
}

/// Waits until the download has a state.
fn pull_of(client: &Client, name: &str, state: &str) -> Value {
    wait_ok(DEADLINE, "the state of a download", || {
        let pulls = now(client.get("/ai/status")).data()["pulls"].clone();
        let pull = pulls.as_array().into_iter().flatten().find(|pull| pull["name"] == name).cloned();
        match pull {
            Some(pull) if pull["state"] == state => Ok(pull),
            other => anyhow::bail!("{other:?}"),
        }
    })
    .expect("the state comes")
}

/// Waits for a future inside of a probe.
fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| Handle::current().block_on(future))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_stopped_and_runs_once() {
    let server = ModelServer::start(Protocol::Ollama, "", |_| verdict()).expect("a server");
    let client = configured("ollama", &server).await;
    client.post("/ai/models/pull", json!({"name": ENDLESS})).await.data();
    client
        .post("/ai/models/pull", json!({"name": format!("{ENDLESS}:latest")}))
        .await
        .error(409, "invalid_state");
    let has_total = || now(client.get("/ai/status")).data()["pulls"][0]["total"] == 807_694_464_u64;
    wait_for(DEADLINE, "progress", has_total).expect("progress");
    let stopped = client.send("DELETE", &format!("/ai/models/{ENDLESS}"), None, &[]).await.data();
    assert_eq!((&stopped["stopped"], &stopped["deleted"]), (&json!(true), &json!(false)));
    assert_eq!(client.get("/ai/status").await.data()["pulls"][0]["state"], "stopped");
    wait_for(DEADLINE, "the end of the connection", || server.abandoned() == 1).expect("the server sees it");
}

#[tokio::test]
async fn the_model_speaks_beside_the_check_in_both_protocols() {
    for (protocol, kind) in
        [(Protocol::Ollama, "ollama"), (Protocol::Openai, "openai"), (Protocol::LlamaCpp, "openai")]
    {
        let server = ModelServer::start(protocol, KEY, |_| verdict()).expect("a server");
        let client = configured(kind, &server).await;
        let answer = client.post("/ai/validate", policy()).await.data();
        let words = json!({"verdict": "fine", "explanation": "It blocks all.", "confidence": 0.75});
        assert_eq!((&answer["valid"], &answer["ai"]), (&json!(true), &words), "{protocol:?}: {answer}");
        let requests = server.requests();
        let last = requests.last().expect("a request");
        assert_eq!(last.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        let schema = &last.json();
        let schema = match protocol {
            Protocol::Ollama => &schema["format"],
            Protocol::Openai => &schema["response_format"]["json_schema"]["schema"],
            Protocol::LlamaCpp => &schema["response_format"]["schema"],
        };
        assert_eq!(schema["required"], json!(["verdict", "explanation", "confidence"]), "{protocol:?}");
        let audit = client.get("/audit").await.text;
        assert!(audit.contains("ask_assistant") && !audit.contains(KEY), "{protocol:?}");
        if kind == "openai" {
            assert_eq!(client.get("/ai/status").await.data()["running"], Value::Null);
            client.get("/ai/models/running").await.error(501, "not_supported");
        }
    }
}

#[tokio::test]
async fn the_check_refuses_what_the_model_praises() {
    let server = ModelServer::start(Protocol::Ollama, "", |_| verdict()).expect("a server");
    let client = configured("ollama", &server).await;
    let mut wrong = policy();
    wrong["policy"]["hops"] = json!([{"type": "vpn", "target": "no-such-tunnel"}]);
    let answer = client.post("/ai/validate", wrong).await.data();
    assert_eq!((&answer["valid"], &answer["ai"]["verdict"]), (&json!(false), &json!("fine")), "{answer}");
    let path = answer["issues"][0]["path"].as_str().expect("a path");
    assert_eq!(path, "policy.hops[0].target");
    client.post("/ai/validate", json!({})).await.error(422, "validation_failed");
}

#[tokio::test]
async fn failures_of_the_server_are_said_and_show_no_key() {
    let server = ModelServer::start(Protocol::Openai, "another key", |_| verdict()).expect("a server");
    let client = configured("openai", &server).await;
    let answer = client.post("/ai/validate", policy()).await;
    assert!(!answer.text.contains(KEY), "{}", answer.text);
    let error = answer.data()["ai_error"].as_str().expect("a reason").to_owned();
    assert!(error.contains("401") && error.contains("(key)"), "{error}");
    let status = client.get("/ai/status").await.data();
    assert_eq!((&status["reachable"], &status["models"]), (&json!(false), &json!([])));
    drop(server);
    let status = client.get("/ai/status").await.data();
    assert_eq!(status["reachable"], false);
    for place in ["/ai/config", "/settings", "/secrets", "/audit"] {
        assert!(!client.get(place).await.text.contains(KEY), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_silent_or_babbles_is_no_answer() {
    let server = ModelServer::start(Protocol::Ollama, "", |_| None).expect("a server");
    let client = configured("ollama", &server).await;
    let mut config = client.get("/ai/config").await.data();
    config["timeout_sec"] = json!(1);
    client.put("/ai/config", config).await.data();
    let answer = client.post("/ai/validate", policy()).await.data();
    assert_eq!((&answer["valid"], &answer["ai_error"]), (&json!(true), &json!("no answer within 1 s")));
    wait_for(DEADLINE, "the end of the connection", || server.abandoned() == 1).expect("the server sees it");
    let babbling =
        ModelServer::start(Protocol::Ollama, "", |_| Some("Sure! Here it is".to_owned())).expect("one");
    let client = configured("ollama", &babbling).await;
    let answer = client.post("/ai/validate", policy()).await.data();
    assert!(answer["ai_error"].as_str().expect("a reason").contains("another form"), "{answer}");
}

#[tokio::test]
async fn the_runtime_needs_systemd() {
    let client = Client::new();
    client.put("/ai/config", json!({"enabled": true})).await.data();
    client.post("/ai/service", json!({"action": "restart"})).await.error(422, "validation_failed");
    let answer = client.post("/ai/service", json!({"action": "start"})).await;
    match client.get("/ai/status").await.data()["service"].clone() {
        // Without systemd, or without the unit, the answer says what is needed.
        Value::Null => assert!(answer.json()["error"]["details"]["needs"].to_string().contains("systemd")),
        unit if unit["installed"] == false => {
            assert!(answer.json()["error"]["details"]["needs"].to_string().contains("ollama.service"));
        }
        _ => assert_eq!(answer.status, 200, "{}", answer.text),
    }
}
