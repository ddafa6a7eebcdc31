//! The assistant with a real small language model. `cargo xtask test --long` runs this suite, and `--only
//! assistant_model`.
//!
//! The model is wrong often. What must hold is that an answer has the form of the schema, that nothing is applied, and that
//! a suggestion with an error is shown as not valid. The share of right answers is printed.

use std::path::Path;

use gateway_tests::language_model::LanguageModel;
use serde_json::{Value, json};

use crate::contract::client::{Answer, Client};

/// Outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Right,
    /// Another answer, which is valid as a call.
    Other,
    /// A call that the check refuses.
    Refused,
    /// No answer in the form of the schema.
    Unreadable,
}

/// Returns the questions: `text` with `policy`, the fields of the right policy with names in place of ids, or with `tool`, the
/// view that answers it.
fn questions() -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/assistant/questions.json");
    let text = std::fs::read_to_string(file).expect("the questions");
    serde_json::from_str(&text).expect("a list of questions")
}

/// Returns the API with the objects that the questions are about.
async fn home(model: &LanguageModel) -> Client {
    let client = Client::new();
    for (number, device) in ["tv", "laptop", "phone", "printer", "camera"].iter().enumerate() {
        let mac = format!("02:00:00:00:00:{number:02x}");
        client.post("/devices", json!({"name": device, "mac": mac})).await.data();
    }
    for group in ["guests", "kids"] {
        client.post("/device-groups", json!({"name": group})).await.data();
    }
    for (number, name) in ["sweden", "nl"].iter().enumerate() {
        let mut tunnel = gateway_tests::examples::tunnel(u8::try_from(number).expect("few"));
        tunnel["name"] = json!(name);
        client.post("/tunnels", tunnel).await.data();
    }
    let config = json!({"enabled": true, "kind": "openai", "endpoint": model.url, "model": "small", "timeout_sec": 600});
    client.put("/ai/config", config).await.data();
    client
}

#[tokio::test]
async fn sixty_questions_change_nothing_and_invalid_calls_are_shown_as_such() {
    let model = LanguageModel::start().expect("a language model");
    let client = home(&model).await;
    let questions = questions();
    assert_eq!(questions.len(), 60);
    let before = exported(&client).await;
    let mut outcomes = Vec::new();
    for question in &questions {
        let outcome = match question["policy"].is_object() {
            true => policy_of(&client, question).await,
            false => tool_of(&client, question).await,
        };
        println!("{outcome:?}: {}", question["text"]);
        outcomes.push(outcome);
    }
    assert_eq!(exported(&client).await["resources"], before["resources"], "nothing is stored");
    let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    println!(
        "right: {} of 60; another valid answer: {}; refused by the check: {}; unreadable: {}",
        count(Outcome::Right),
        count(Outcome::Other),
        count(Outcome::Refused),
        count(Outcome::Unreadable)
    );
    // A model that answers by the schema. How often it is right is no promise of the gateway.
    assert!(count(Outcome::Unreadable) <= 6, "{outcomes:?}");
}

async fn exported(client: &Client) -> Value {
    client.get("/config/export").await.data()
}

/// The model has not answered, or not in the form of the schema.
fn check_failure(answer: &Answer) {
    let code = &answer.json()["error"]["code"];
    assert!(code == "dependency_failed" || code == "upstream_timeout", "{}", answer.text);
}

async fn policy_of(client: &Client, question: &Value) -> Outcome {
    let answer = client.post("/ai/policy", json!({"text": question["text"]})).await;
    if answer.status != 200 {
        check_failure(&answer);
        return Outcome::Unreadable;
    }
    let answer = answer.data();
    assert_eq!(answer["applied"], false);
    let suggestion = &answer["suggestions"][0];
    // The check agrees with what the API itself says of the call.
    let stored = client.send("POST", "/routing/policies", Some(suggestion["body"].clone()), &[]).await;
    if stored.status == 201 {
        let id = stored.data()["id"].as_str().expect("an id").to_owned();
        client.send("DELETE", &format!("/routing/policies/{id}"), None, &[]).await.data();
    }
    assert!(stored.status == 201 || suggestion["valid"] == false, "{suggestion:#}");
    if suggestion["valid"] == false {
        return Outcome::Refused;
    }
    let body = named(client, suggestion["body"].clone()).await;
    let is_right =
        question["policy"].as_object().expect("fields").iter().all(|(field, value)| body[field] == *value);
    if is_right { Outcome::Right } else { Outcome::Other }
}

/// Puts names in place of the ids of a policy.
async fn named(client: &Client, mut body: Value) -> Value {
    for collection in ["/devices", "/device-groups"] {
        let objects = client.get(collection).await.data();
        for object in objects.as_array().into_iter().flatten() {
            if body["source_value"] == object["id"] {
                body["source_value"] = object["name"].clone();
            }
        }
    }
    body
}

async fn tool_of(client: &Client, question: &Value) -> Outcome {
    let answer = client.post("/ai/query", json!({"text": question["text"]})).await;
    if answer.status != 200 {
        check_failure(&answer);
        return Outcome::Unreadable;
    }
    let answer = answer.data();
    assert_eq!(answer["applied"], false);
    let wanted = &question["tool"];
    let sources = answer["sources"].as_array().expect("sources");
    let is_right = sources.iter().any(|source| source["tool"] == *wanted && source["error"].is_null());
    if is_right { Outcome::Right } else { Outcome::Other }
}
