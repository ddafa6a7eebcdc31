//! Access of the endpoints to the assistant, and the errors of the API for what it lacks.

use std::sync::Arc;

use gateway_ctl::services::assistant::{Assistant, ModelError};
use gateway_model::problem::{Problems, code};

use crate::context::Cx;
use crate::error::{ApiError, Code};

/// Maximum length of the name of a model.
const MAX_MODEL_NAME: usize = 200;

pub(super) fn assistant(cx: &Cx) -> Result<&Arc<Assistant>, ApiError> {
    Ok(&cx.open()?.assistant)
}

/// Returns the error of a request that needs the model.
pub(super) fn refused(error: ModelError) -> ApiError {
    let state = |state: &str, message: &str| {
        ApiError::new(Code::InvalidState, message).detail("state", state).detail("allowed", ["enabled"])
    };
    match error {
        ModelError::Off => state("disabled", "The assistant is off: PUT /ai/config switches it on."),
        ModelError::Remote => state(
            "remote",
            "The endpoint of the assistant is another host, which allow_remote does not allow.",
        ),
        ModelError::NoModel => state("no_model", "The settings of the assistant name no model."),
        ModelError::NoAdministration => {
            ApiError::not_supported("a server with the API of Ollama (kind ollama in /ai/config)")
        }
        ModelError::Pulling(name) => {
            ApiError::new(Code::InvalidState, format!("{name} is being downloaded."))
                .detail("state", "pulling")
                .detail("allowed", ["idle"])
        }
        ModelError::Timeout(_) => {
            ApiError::new(Code::UpstreamTimeout, format!("The language model gave {error}."))
        }
        ModelError::Unreachable(_)
        | ModelError::Refused { .. }
        | ModelError::Form(_)
        | ModelError::PullFailed(_) => ApiError::new(
            Code::DependencyFailed,
            format!("The server of the language model failed: {error}."),
        )
        .detail("dependency", "ai"),
    }
}

/// Returns the name of a model in a request, or the one of the settings if it is empty.
pub(super) fn model_name(name: &str, fallback: &str) -> Result<String, ApiError> {
    let name = if name.trim().is_empty() { fallback } else { name.trim() };
    let mut problems = Problems::new();
    if name.is_empty() {
        problems.required("name");
    } else if name.chars().count() > MAX_MODEL_NAME || name.chars().any(|letter| letter.is_control()) {
        let message = format!("Expected a name of at most {MAX_MODEL_NAME} printable characters.");
        problems.add(code::FORMAT, "name", message);
    }
    match problems.is_empty() {
        true => Ok(name.to_owned()),
        false => Err(ApiError::validation(&problems)),
    }
}
