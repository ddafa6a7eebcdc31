//! Target: replies of servers of language models, and the answers in them.

use gateway_core::assistant::answer::{MAX_SUGGESTIONS, MAX_TOOLS, read_answer, read_tools};
use gateway_core::assistant::{chat, models, policy_wish, prompt, server_error, verdict};
use gateway_model::settings::groups::AssistantKind;

/// Reads the bytes as each reply. What is read is bounded, and a text of it in a prompt stays data.
pub fn assistant(data: &[u8]) {
    for kind in AssistantKind::ALL {
        if let Ok(text) = chat::reply(*kind, data) {
            answers(&text);
        }
        for model in models::installed(*kind, data).unwrap_or_default() {
            shown(&model.name);
        }
    }
    models::running(data).unwrap_or_default().iter().for_each(|model| shown(&model.name));
    match models::pull_line(data) {
        Ok(models::PullLine::Progress { status, .. }) => shown(&status),
        Ok(models::PullLine::Failed(error)) => shown(&error),
        Ok(models::PullLine::Done) | Err(_) => {}
    }
    server_error::error_message(data).iter().for_each(|message| shown(message));
    answers(&String::from_utf8_lossy(data));
}

/// Checks a text of a server that is shown.
fn shown(text: &str) {
    assert!(text.chars().count() <= 300 && !text.chars().any(char::is_control), "{text:?}");
}

fn answers(text: &str) {
    let data = prompt::data(text);
    assert_eq!(data.matches('<').count(), 2, "the data has marks of its own: {data}");
    if let Ok(verdict) = verdict::read(text) {
        assert!((0.0..=1.0).contains(&verdict.confidence));
    }
    if let Ok(tools) = read_tools(text) {
        assert!(tools.len() <= MAX_TOOLS);
    }
    if let Ok(answer) = read_answer(text) {
        assert!(answer.suggestions.len() <= MAX_SUGGESTIONS);
    }
    if let Ok(wish) = policy_wish::read(text) {
        assert!(wish.body(1).contains_key("source_type"));
    }
}
