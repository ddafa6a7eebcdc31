//! Questions in words, and policies by requests in words. Answers rest on views of the API; suggestions are checked and
//! never sent.

use std::time::Duration;

use gateway_core::assistant::answer::{self, MAX_TOOLS, ModelAnswer, SuggestedCall, Tool, ToolCall};
use gateway_core::assistant::policy_wish::{self, PolicyNames};
use gateway_core::assistant::privacy::PromptPrivacy;
use gateway_core::assistant::prompt::{self, ToolResult};
use gateway_ctl::services::assistant::ModelError;
use gateway_ctl::world::World;
use gateway_model::problem::{Problems, code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model_access::{assistant, refused};
use super::names::{described, policy_names};
use super::privacy;
use super::suggestions::{self, Suggestion};
use super::tools::{self, Source};
use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::{Audit, Table};

/// Maximum length of a question, in characters.
const MAX_TEXT: usize = 2000;
/// Maximum time of all steps, below the deadline of handlers.
const TIMEOUT: Duration = Duration::from_secs(110);
/// Maximum number of devices whose traffic is evaluated because the question names them.
const MAX_NAMED: usize = 2;
const FAILURES: &[Code] = &[Code::InvalidState, Code::DependencyFailed, Code::UpstreamTimeout];
const ASK: Audit = Audit { action: "ask_assistant", resource_type: "ai_model" };

pub(super) fn rows(t: &mut Table) {
    t.question("/ai/query", "ask_ai", query)
        .summary("Answer a question in words; applies nothing")
        .doc("The model chooses views of the API, which this gateway reads with the rights of the caller and quotes in sources. The words may be wrong; the sources are not of the model. A call that is suggested is checked first, and is not sent.")
        .access(Access::Operate)
        .answers(FAILURES)
        .requires_input();
    t.question("/ai/policy", "suggest_ai_policy", policy)
        .summary("Suggest a policy by a request in words; applies nothing")
        .doc("The suggestion is checked as by /ai/validate, and is not sent.")
        .access(Access::Operate)
        .answers(FAILURES)
        .requires_input();
}

/// Question or request in words.
#[derive(Debug, Deserialize, JsonSchema)]
struct TextInput {
    /// 1 to 2000 characters.
    text: String,
}

/// Answer of the assistant.
#[derive(Debug, Serialize, JsonSchema)]
struct AssistantAnswer {
    /// Words of the model. They may be wrong.
    answer: String,
    /// Calls that the model suggests, with the gateway's own check of each.
    suggestions: Vec<Suggestion>,
    /// Always false: the assistant applies nothing.
    applied: bool,
    /// Quotations of the views that the answer rests on.
    sources: Vec<Source>,
    /// Model that answered.
    model: String,
}

fn text_of(input: TextInput) -> Result<String, ApiError> {
    let mut problems = Problems::new();
    let text = input.text.trim().to_owned();
    if text.is_empty() {
        problems.required("text");
    } else if text.chars().count() > MAX_TEXT {
        problems.add(code::RANGE, "text", format!("At most {MAX_TEXT} characters."));
    }
    if problems.is_empty() { Ok(text) } else { Err(ApiError::validation(&problems)) }
}

async fn query(cx: Cx, request: Req<TextInput>) -> Result<AssistantAnswer, ApiError> {
    let text = text_of(request.input)?;
    within_time(answer_query(&cx, &text)).await
}

async fn policy(cx: Cx, request: Req<TextInput>) -> Result<AssistantAnswer, ApiError> {
    let text = text_of(request.input)?;
    within_time(answer_policy(&cx, &text)).await
}

async fn within_time(
    answer: impl Future<Output = Result<AssistantAnswer, ApiError>>,
) -> Result<AssistantAnswer, ApiError> {
    let late = |_| refused(ModelError::Timeout(TIMEOUT));
    tokio::time::timeout(TIMEOUT, answer).await.map_err(late)?
}

/// Returns the name of the model, with an audit entry of the request.
async fn begin(cx: &Cx) -> Result<String, ApiError> {
    let config = assistant(cx)?.enabled().map_err(refused)?;
    if config.model.is_empty() {
        return Err(refused(ModelError::NoModel));
    }
    cx.record_reading(ASK).await?;
    Ok(config.model)
}

async fn answer_query(cx: &Cx, text: &str) -> Result<AssistantAnswer, ApiError> {
    let model = begin(cx).await?;
    let mut privacy = privacy::of(cx).await?;
    let world = cx.open()?.world();
    let names = policy_names(&world);
    let (question, objects) = (privacy.hide(text), privacy.hide(&described(&world, &names)));
    let chosen = choose(cx, text, &question, &objects, (&world, &privacy)).await?;
    let mut sources = Vec::with_capacity(chosen.len());
    for call in &chosen {
        sources.push(tools::run(cx, call).await);
    }
    let texts: Vec<(&str, String)> = sources
        .iter()
        .map(|source| {
            let result = source.error.clone().unwrap_or_else(|| source.result.to_string());
            (source.tool.as_str(), privacy.hide(&result))
        })
        .collect();
    let results: Vec<ToolResult<'_>> = texts.iter().map(|(name, text)| ToolResult { name, text }).collect();
    let messages = prompt::answer(&question, &objects, &results);
    let reply = assistant(cx)?.ask(&messages, &answer::answer_schema()).await.map_err(refused)?;
    let read = answer::read_answer(&reply).map_err(|error| refused(error.into()))?;
    let ModelAnswer { answer, suggestions } = read;
    let mut checked = Vec::with_capacity(suggestions.len());
    for call in suggestions {
        checked.push(suggestions::check(cx, restored(&privacy, call)).await?);
    }
    Ok(AssistantAnswer {
        answer: privacy.restore(&answer),
        suggestions: checked,
        applied: false,
        sources,
        model,
    })
}

/// Returns the tools that the model chooses, behind those for the devices that the question names. An answer in another
/// form is no choice.
async fn choose(
    cx: &Cx,
    text: &str,
    question: &str,
    objects: &str,
    (world, privacy): (&World, &PromptPrivacy),
) -> Result<Vec<ToolCall>, ApiError> {
    let plain = |tool: Tool| ToolCall { tool, device: String::new(), destination: String::new() };
    let devices = world.state.devices.iter().map(|device| device.name.as_str());
    let mut chosen: Vec<ToolCall> = answer::named_in(text, devices)
        .into_iter()
        .take(MAX_NAMED)
        .map(|device| ToolCall { device: device.to_owned(), ..plain(Tool::Evaluate) })
        .collect();
    let asked = assistant(cx)?.ask(&prompt::tools(question, objects), &answer::tools_schema()).await;
    let wanted = match asked {
        Ok(reply) => answer::read_tools(&reply).unwrap_or_default(),
        Err(ModelError::Form(_)) => Vec::new(),
        Err(error) => return Err(refused(error)),
    };
    for call in wanted {
        let call = ToolCall {
            tool: call.tool,
            device: privacy.restore(&call.device),
            destination: privacy.restore(&call.destination),
        };
        if chosen.len() < MAX_TOOLS && !chosen.contains(&call) {
            chosen.push(call);
        }
    }
    if chosen.is_empty() {
        chosen = vec![plain(Tool::Tunnels), plain(Tool::LeakMatrix)];
    }
    Ok(chosen)
}

async fn answer_policy(cx: &Cx, text: &str) -> Result<AssistantAnswer, ApiError> {
    let model = begin(cx).await?;
    let mut privacy = privacy::of(cx).await?;
    let world = cx.open()?.world();
    let names = policy_names(&world);
    let (request, objects) = (privacy.hide(text), privacy.hide(&described(&world, &names)));
    let schema = policy_wish::schema(&hidden(&names, &mut privacy));
    let messages = prompt::policy(&request, &objects);
    let reply = assistant(cx)?.ask(&messages, &schema).await.map_err(refused)?;
    let wish = policy_wish::read(&reply).map_err(|error| refused(error.into()))?;
    let first = world.state.routing_policies.iter().map(|policy| policy.priority).min();
    let body = wish.body(first.map_or(100, |first| first.saturating_sub(10).max(1)));
    let call = SuggestedCall {
        method: "POST".to_owned(),
        path: "/routing/policies".to_owned(),
        body: Value::Object(body),
    };
    let suggestion = suggestions::check(cx, restored(&privacy, call)).await?;
    Ok(AssistantAnswer {
        answer: privacy.restore(&wish.explanation),
        suggestions: vec![suggestion],
        applied: false,
        sources: Vec::new(),
        model,
    })
}

/// Returns the names as the model may read them.
fn hidden(names: &PolicyNames, privacy: &mut PromptPrivacy) -> PolicyNames {
    let mut all = |names: &[String]| names.iter().map(|name| privacy.hide(name)).collect();
    PolicyNames {
        devices: all(&names.devices),
        device_groups: all(&names.device_groups),
        interfaces: all(&names.interfaces),
        tunnels: all(&names.tunnels),
        proxies: all(&names.proxies),
        uplinks: all(&names.uplinks),
    }
}

/// Puts the originals in place of the pseudonyms of a suggested call.
fn restored(privacy: &PromptPrivacy, call: SuggestedCall) -> SuggestedCall {
    fn value_of(privacy: &PromptPrivacy, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(privacy.restore(&text)),
            Value::Array(list) => list.into_iter().map(|one| value_of(privacy, one)).collect(),
            Value::Object(map) => map.into_iter().map(|(name, one)| (name, value_of(privacy, one))).collect(),
            other => other,
        }
    }
    SuggestedCall {
        method: call.method,
        path: privacy.restore(&call.path),
        body: value_of(privacy, call.body),
    }
}
