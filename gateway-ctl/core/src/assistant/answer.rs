//! Answer to a question: the tools that the model asks for, its words, and the API calls that it suggests.

use gateway_model::text_enum;
use serde::Deserialize;
use serde_json::{Value, json};

use super::server_error::ReplyFormError;

/// Maximum number of tools of one question.
pub const MAX_TOOLS: usize = 4;
/// Maximum number of suggestions that are read of an answer.
pub const MAX_SUGGESTIONS: usize = 5;
/// Maximum length of an answer and of a field in the schema, in characters. Without them a small model writes until its
/// answer is cut off.
const MAX_WRITTEN: usize = 1000;
const MAX_FIELD: usize = 253;
/// Maximum length of an answer that is read, in characters.
const MAX_ANSWER: usize = 8000;

text_enum! {
    /// View of the gateway that answers rest on.
    pub enum Tool {
        /// Decision on the traffic of a device.
        Evaluate = "evaluate",
        /// Behaviour of the policies in each state of the tunnels.
        LeakMatrix = "leak_matrix",
        /// Conflicts between policies.
        Conflicts = "conflicts",
        /// Recent flows.
        Flows = "flows",
        /// Recent DNS queries.
        DnsLog = "dns_log",
        /// Tunnels and their states.
        Tunnels = "tunnels",
    }
}

/// Use of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ToolCall {
    pub tool: Tool,
    /// Name of a device; empty for none.
    #[serde(default)]
    pub device: String,
    /// Name or address of a destination; empty for none.
    #[serde(default)]
    pub destination: String,
}

/// API call that a model suggests, as it wrote it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SuggestedCall {
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub body: Value,
}

/// Words and suggestions of a model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ModelAnswer {
    pub answer: String,
    #[serde(default)]
    pub suggestions: Vec<SuggestedCall>,
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<ToolCall>,
}

/// Returns the schema for the choice of tools.
pub fn tools_schema() -> Value {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "maxItems": MAX_TOOLS,
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "enum": names},
                        "device": {"type": "string", "maxLength": MAX_FIELD},
                        "destination": {"type": "string", "maxLength": MAX_FIELD},
                    },
                    "required": ["tool", "device", "destination"],
                },
            },
        },
        "required": ["tools"],
    })
}

/// Reads the choice of tools. Repeated ones, and those beyond the limit, are left out.
pub fn read_tools(text: &str) -> Result<Vec<ToolCall>, ReplyFormError> {
    let Tools { tools } = serde_json::from_str(text.trim())?;
    let mut calls: Vec<ToolCall> = Vec::new();
    for call in tools {
        if calls.len() < MAX_TOOLS && !calls.contains(&call) {
            calls.push(call);
        }
    }
    Ok(calls)
}

/// Returns the schema of an answer.
pub fn answer_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "maxLength": MAX_WRITTEN},
            "suggestions": {
                "type": "array",
                "maxItems": MAX_SUGGESTIONS,
                "items": {
                    "type": "object",
                    "properties": {
                        "method": {"type": "string", "enum": ["POST", "PUT", "DELETE"]},
                        "path": {"type": "string", "maxLength": MAX_FIELD},
                        "body": {"type": "object"},
                    },
                    "required": ["method", "path", "body"],
                },
            },
        },
        "required": ["answer", "suggestions"],
    })
}

/// Reads an answer. Suggestions beyond the limit are left out, and all of them if the answer was cut off among them.
pub fn read_answer(text: &str) -> Result<ModelAnswer, ReplyFormError> {
    let mut answer: ModelAnswer = match serde_json::from_str(text.trim()) {
        Ok(answer) => answer,
        Err(error) => words_before_the_cut(text).ok_or(error)?,
    };
    answer.suggestions.truncate(MAX_SUGGESTIONS);
    answer.answer = answer.answer.chars().take(MAX_ANSWER).collect();
    Ok(answer)
}

/// Returns the words of an answer that was cut off behind them: small models write bodies of calls without an end.
fn words_before_the_cut(text: &str) -> Option<ModelAnswer> {
    let rest = text.trim_start().strip_prefix('{')?.trim_start();
    let rest = rest.strip_prefix("\"answer\"")?.trim_start().strip_prefix(':')?;
    let answer = serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()?;
    Some(ModelAnswer { answer, suggestions: Vec::new() })
}

/// Returns the names that a question contains as whole words, in the order of the list.
pub fn named_in<'a>(question: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let question = question.to_lowercase();
    let is_named = |name: &&str| {
        let name = name.trim().to_lowercase();
        !name.is_empty()
            && question.match_indices(&name).any(|(start, found)| {
                let before = question[..start].chars().next_back();
                let after = question[start + found.len()..].chars().next();
                !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
            })
    };
    names.into_iter().filter(is_named).collect()
}
