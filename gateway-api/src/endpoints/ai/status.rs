//! State of the assistant and of its server.

use gateway_core::assistant::models::{InstalledModel, RunningModel, is_same_model};
use gateway_ctl::os::required_programs;
use gateway_ctl::services::assistant::{Pull, ServerStatus};
use gateway_model::settings::groups::{AssistantConfig, AssistantKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::model_access::assistant;
use super::runtime::{RuntimeUnit, UNIT};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/ai/status", "get_ai_status", status)
        .summary("State of the assistant, its server and its models")
        .doc("Asks the server if the assistant is on. What is not known is null.");
}

/// State of the assistant.
#[derive(Debug, Serialize, JsonSchema)]
struct AssistantStatus {
    enabled: bool,
    kind: AssistantKind,
    endpoint: String,
    /// The endpoint is another host.
    remote: bool,
    /// The server has answered; null while the assistant is off.
    reachable: Option<bool>,
    /// Human-readable reason for which the server is not of use; null without one.
    error: Option<String>,
    /// Version of the server; null if unknown.
    version: Option<String>,
    /// Model of the settings; empty if none is set.
    model: String,
    /// The server has the model of the settings; null if unknown.
    model_installed: Option<bool>,
    /// The model of the settings is in memory; null if unknown.
    model_loaded: Option<bool>,
    /// Models of the server; empty if unknown.
    models: Vec<InstalledModel>,
    /// Models in memory; null if unknown.
    running: Option<Vec<RunningModel>>,
    /// Downloads since the start of the daemon, the newest first.
    pulls: Vec<Pull>,
    /// Unit of the local server; null while the assistant is off, for another host, and without systemd.
    service: Option<RuntimeUnit>,
}

async fn status(cx: Cx, _: Req<()>) -> Result<AssistantStatus, ApiError> {
    let assistant = assistant(&cx)?;
    let config = assistant.config();
    let looked = match assistant.enabled() {
        Ok(config) => Some(assistant.look(&config).await),
        Err(_) if !config.enabled => None,
        Err(error) => Some(Err(error)),
    };
    let service = match config.enabled && config.is_local() {
        true => blocking(|| required_programs::unit(UNIT).map(RuntimeUnit::of)).await?,
        false => None,
    };
    let reachable = looked.as_ref().map(Result::is_ok);
    let (seen, error) = match looked {
        None => (None, None),
        Some(Ok(seen)) => (Some(seen), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    Ok(with_models(
        &config,
        seen,
        AssistantStatus {
            enabled: config.enabled,
            kind: config.kind,
            endpoint: config.endpoint.clone(),
            remote: !config.is_local(),
            reachable,
            error,
            version: None,
            model: config.model.clone(),
            model_installed: None,
            model_loaded: None,
            models: Vec::new(),
            running: None,
            pulls: assistant.pulls(),
            service,
        },
    ))
}

fn with_models(
    config: &AssistantConfig,
    seen: Option<ServerStatus>,
    status: AssistantStatus,
) -> AssistantStatus {
    let Some(ServerStatus { version, models, running }) = seen else { return status };
    let is_set = !config.model.is_empty();
    let is_loaded =
        |running: &Vec<RunningModel>| running.iter().any(|model| is_same_model(&model.name, &config.model));
    AssistantStatus {
        version,
        model_installed: is_set.then(|| models.iter().any(|model| is_same_model(&model.name, &config.model))),
        model_loaded: running.as_ref().filter(|_| is_set).map(is_loaded),
        models,
        running,
        ..status
    }
}
