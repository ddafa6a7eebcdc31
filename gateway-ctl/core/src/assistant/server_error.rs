//! Error message in the reply of a server of language models.

use serde_json::Value;

/// Maximum length of a message that is shown, in characters.
const MAX_CHARACTERS: usize = 300;

/// Reason why the body of a reply is not the one that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its answer has another form: {0}")]
pub struct ReplyFormError(pub String);

impl From<serde_json::Error> for ReplyFormError {
    fn from(error: serde_json::Error) -> ReplyFormError {
        ReplyFormError(error.to_string())
    }
}

/// Returns the message of an error reply: `{"error": "…"}`, `{"error": {"message": "…"}}` or `{"detail": …}`.
pub fn error_message(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = value.get("error").or_else(|| value.get("detail"))?;
    let text = match error {
        Value::String(text) => text.clone(),
        Value::Object(object) => object.get("message")?.as_str()?.to_owned(),
        other => other.to_string(),
    };
    Some(shown(&text))
}

/// Returns a text of a server as it may be shown: on one line, and not too long.
pub fn shown(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(MAX_CHARACTERS).collect::<String>().trim().to_owned()
}
