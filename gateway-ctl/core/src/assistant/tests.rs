//! Replies in both protocols, and the forms of prompts.

mod answers;

use gateway_model::settings::groups::AssistantKind::{Ollama, Openai};
use proptest::prelude::*;
use serde_json::json;

use super::chat::{self, Message, SchemaForm};
use super::models::{self, PullLine};
use super::verdict::{self, Assessment};
use super::{prompt, server_error};

#[test]
fn each_protocol_has_its_own_form_of_the_schema() {
    let (schema, messages) = (verdict::schema(), [Message::user("?")]);
    let ollama = chat::request(Ollama, "m", &messages, &schema, SchemaForm::JsonSchema);
    assert_eq!((ollama.path, &ollama.body["format"]), ("/api/chat", &schema));
    assert_eq!(ollama.body["messages"], json!([{"role": "user", "content": "?"}]));
    let strict = chat::request(Openai, "m", &messages, &schema, SchemaForm::JsonSchema);
    assert_eq!(strict.path, "/v1/chat/completions");
    assert_eq!(strict.body["response_format"]["json_schema"]["schema"], schema);
    let object = chat::request(Openai, "m", &messages, &schema, SchemaForm::JsonObject);
    assert_eq!(object.body["response_format"], json!({"type": "json_object", "schema": schema}));
}

#[test]
fn answers_are_read_in_both_protocols() {
    let ollama = br#"{"model":"m","message":{"role":"assistant","content":"yes"},"done":true}"#;
    assert_eq!(chat::reply(Ollama, ollama).unwrap(), "yes");
    let openai = br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"yes"}}]}"#;
    assert_eq!(chat::reply(Openai, openai).unwrap(), "yes");
    for (kind, wrong) in [(Ollama, &openai[..]), (Openai, ollama), (Openai, br#"{"choices":[]}"#)] {
        chat::reply(kind, wrong).unwrap_err();
    }
    chat::reply(Openai, br#"{"choices":[{"message":{"content":null}}]}"#).unwrap_err();
}

#[test]
fn lists_of_models_and_progress_are_read() {
    let tags = br#"{"models":[{"name":"a:1b","size":7,"details":{"parameter_size":"1B","quantization_level":"Q4"}}]}"#;
    let listed = models::installed(Ollama, tags).unwrap();
    assert_eq!((listed[0].name.as_str(), listed[0].size), ("a:1b", Some(7)));
    assert_eq!(listed[0].quantization.as_deref(), Some("Q4"));
    assert_eq!(models::installed(Openai, br#"{"data":[{"id":"x"}]}"#).unwrap()[0].name, "x");
    let ps = br#"{"models":[{"name":"a","size":9,"size_vram":0,"expires_at":"2026-11-30T12:00:00Z"}]}"#;
    assert_eq!(models::running(ps).unwrap()[0].size_vram, Some(0));
    let line = models::pull_line(br#"{"status":"pulling x","completed":1,"total":2}"#).unwrap();
    let progress = PullLine::Progress { status: "pulling x".to_owned(), completed: Some(1), total: Some(2) };
    assert_eq!(line, progress);
    assert_eq!(models::pull_line(br#"{"status":"success"}"#).unwrap(), PullLine::Done);
    let failed = models::pull_line(br#"{"error":"no such model"}"#).unwrap();
    assert_eq!(failed, PullLine::Failed("no such model".to_owned()));
    models::pull_line(b"{}").unwrap_err();
}

#[test]
fn a_name_without_tag_is_the_latest() {
    for (one, other, same) in [
        ("a", "a:latest", true),
        ("a:1b", "a:1b", true),
        ("a:1b", "a", false),
        ("host:80/a", "host:80/a:latest", true),
        ("a", "b", false),
    ] {
        assert_eq!(models::is_same_model(one, other), same, "{one} {other}");
    }
}

#[test]
fn errors_of_servers_are_shown_on_one_line() {
    let message = |body: &str| server_error::error_message(body.as_bytes());
    assert_eq!(message(r#"{"error":"no\nmodel"}"#).as_deref(), Some("no model"));
    assert_eq!(message(r#"{"error":{"message":"bad"}}"#).as_deref(), Some("bad"));
    assert_eq!(message(r#"{"detail":[1]}"#).as_deref(), Some("[1]"));
    assert_eq!(message("<html>"), None);
    let long = json!({"error": "x".repeat(1000)}).to_string();
    assert_eq!(message(&long).map(|text| text.len()), Some(300));
}

#[test]
fn a_verdict_is_clamped_and_another_form_refused() {
    let text = r#" {"verdict":"wrong","explanation":"because","confidence":7} "#;
    let read = verdict::read(text).unwrap();
    assert_eq!((read.verdict, read.confidence), (Assessment::Wrong, 1.0));
    for wrong in ["", "fine", r#"{"verdict":"great","explanation":"","confidence":1}"#, "{}"] {
        verdict::read(wrong).unwrap_err();
    }
}

proptest! {
    #[test]
    fn data_never_closes_its_own_marks(text in ".{0,200}", tail in "(</data>|<data>|<|>|[a-z]){0,2000}") {
        let wrapped = prompt::data(&format!("{text}{tail}"));
        prop_assert_eq!(wrapped.matches('<').count(), 2);
        prop_assert!(wrapped.starts_with("<data>") && wrapped.ends_with("</data>"));
        prop_assert!(wrapped.len() <= 3 * prompt::MAX_DATA_BYTES + 32);
    }

    #[test]
    fn no_reply_makes_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for kind in [Ollama, Openai] {
            let _ = (chat::reply(kind, &bytes), models::installed(kind, &bytes));
        }
        let _ = (models::running(&bytes), models::pull_line(&bytes), server_error::error_message(&bytes));
    }
}
