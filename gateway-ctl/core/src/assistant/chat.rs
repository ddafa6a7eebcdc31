//! Requests for one answer of a model, and the replies, in both protocols.

use gateway_model::settings::groups::AssistantKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::server_error::ReplyFormError;

/// Maximum length of an answer, in tokens.
const MAX_ANSWER_TOKENS: u32 = 1024;

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

/// Message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
}

impl Message {
    pub fn system(content: impl Into<String>) -> Message {
        Message { role: Role::System, content: content.into() }
    }

    pub fn user(content: impl Into<String>) -> Message {
        Message { role: Role::User, content: content.into() }
    }

    pub fn assistant(content: impl Into<String>) -> Message {
        Message { role: Role::Assistant, content: content.into() }
    }
}

/// Form in which a server with the API of OpenAI takes the schema of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaForm {
    /// `{"type": "json_schema"}`, as OpenAI has it.
    JsonSchema,
    /// `{"type": "json_object", "schema": …}`, as servers of llama.cpp have it.
    JsonObject,
}

/// Path and body of a request to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRequest {
    pub path: &'static str,
    pub body: Value,
}

/// Returns the request for one answer that conforms to a schema.
pub fn request(
    kind: AssistantKind,
    model: &str,
    messages: &[Message],
    schema: &Value,
    form: SchemaForm,
) -> ServerRequest {
    match kind {
        AssistantKind::Ollama => ServerRequest {
            path: "/api/chat",
            body: json!({
                "model": model,
                "messages": messages,
                "stream": false,
                "format": schema,
                "options": {"temperature": 0, "num_predict": MAX_ANSWER_TOKENS},
            }),
        },
        AssistantKind::Openai => ServerRequest {
            path: "/v1/chat/completions",
            body: json!({
                "model": model,
                "messages": messages,
                "stream": false,
                "temperature": 0,
                "max_tokens": MAX_ANSWER_TOKENS,
                "response_format": response_format(schema, form),
            }),
        },
    }
}

fn response_format(schema: &Value, form: SchemaForm) -> Value {
    match form {
        SchemaForm::JsonSchema => {
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}})
        }
        SchemaForm::JsonObject => json!({"type": "json_object", "schema": schema}),
    }
}

/// Reports whether a server may have refused the form of the schema and not the request.
pub fn may_refuse_form(kind: AssistantKind, status: u16) -> bool {
    kind == AssistantKind::Openai && matches!(status, 400 | 422)
}

#[derive(Deserialize)]
struct OllamaReply {
    message: Content,
}

#[derive(Deserialize)]
struct OpenaiReply {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Content,
}

#[derive(Deserialize)]
struct Content {
    /// Null if the model refuses.
    content: Option<String>,
}

/// Returns the text of the answer in the body of a reply.
pub fn reply(kind: AssistantKind, body: &[u8]) -> Result<String, ReplyFormError> {
    let content = match kind {
        AssistantKind::Ollama => serde_json::from_slice::<OllamaReply>(body)?.message.content,
        AssistantKind::Openai => {
            let first = serde_json::from_slice::<OpenaiReply>(body)?.choices.into_iter().next();
            first.ok_or_else(|| ReplyFormError("it has no choice".to_owned()))?.message.content
        }
    };
    content.ok_or_else(|| ReplyFormError("it has no content".to_owned()))
}
