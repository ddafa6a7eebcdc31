//! Models of the server: loaded ones, load and unload, download, removal.

use gateway_core::assistant::models::RunningModel;
use gateway_ctl::services::assistant::{ModelError, Pull};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model_access::{assistant, model_name, refused};
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

const NOUN: &str = "ai_model";
const FAILURES: &[Code] =
    &[Code::InvalidState, Code::NotSupported, Code::DependencyFailed, Code::UpstreamTimeout];

const fn acts(action: &'static str) -> Effect {
    Effect::Acts(Audit { action, resource_type: NOUN })
}

pub(super) fn rows(t: &mut Table) {
    t.view("/ai/models/running", "list_running_ai_models", running)
        .summary("Models in the memory of the server")
        .answers(FAILURES);
    t.action("/ai/models/load", "load_ai_model", acts("load_ai_model"), load)
        .summary("Load a model into the memory of the server")
        .answers(FAILURES)
        .answers(&[Code::NotFound]);
    t.action("/ai/models/unload", "unload_ai_model", acts("unload_ai_model"), unload)
        .summary("Free the memory of a model")
        .answers(FAILURES)
        .answers(&[Code::NotFound]);
    t.action("/ai/models/pull", "pull_ai_model", acts("pull_ai_model"), pull)
        .summary("Download a model to the server")
        .doc("Answers at once; `pulls` of /ai/status has the progress. DELETE of the model stops the download.")
        .answers(FAILURES)
        .status(202);
    t.erase("/ai/models/{name}", "delete_ai_model", acts("delete_ai_model"), delete)
        .summary("Remove a model from the disk of the server, or stop its download")
        .answers(FAILURES);
}

/// Model of a request.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ModelInput {
    /// Name of the model. Empty: that of the settings.
    name: String,
}

/// Result of a load or unload.
#[derive(Debug, Serialize, JsonSchema)]
struct LoadedModel {
    name: String,
    /// The model is in memory.
    loaded: bool,
}

/// Result of a removal.
#[derive(Debug, Serialize, JsonSchema)]
struct DeletedModel {
    name: String,
    /// The model is gone from the disk of the server. False if only its download was stopped.
    deleted: bool,
    /// A download was stopped.
    stopped: bool,
}

/// Returns the error about one model. A server answers 404 for one that it does not have.
fn about_model(name: &str) -> impl Fn(ModelError) -> ApiError {
    move |error| match error {
        ModelError::Refused { status: 404, .. } => ApiError::not_found(NOUN, name),
        error => refused(error),
    }
}

async fn running(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<RunningModel>>, ApiError> {
    Ok(WithHeaders::counted(assistant(&cx)?.running().await.map_err(refused)?))
}

async fn load(cx: Cx, request: Req<ModelInput>) -> Result<WithHeaders<LoadedModel>, ApiError> {
    let assistant = assistant(&cx)?;
    let config = assistant.administered().map_err(refused)?;
    let name = model_name(&request.input.name, &config.model)?;
    assistant.load(&name).await.map_err(about_model(&name))?;
    Ok(about(name.clone(), LoadedModel { name, loaded: true }))
}

async fn unload(cx: Cx, request: Req<ModelInput>) -> Result<WithHeaders<LoadedModel>, ApiError> {
    let assistant = assistant(&cx)?;
    let config = assistant.administered().map_err(refused)?;
    let name = model_name(&request.input.name, &config.model)?;
    assistant.unload(&name).await.map_err(about_model(&name))?;
    Ok(about(name.clone(), LoadedModel { name, loaded: false }))
}

async fn pull(cx: Cx, request: Req<ModelInput>) -> Result<WithHeaders<Pull>, ApiError> {
    let assistant = assistant(&cx)?;
    let config = assistant.administered().map_err(refused)?;
    let name = model_name(&request.input.name, &config.model)?;
    let started = assistant.pull(&name).map_err(refused)?;
    let mut answer = about(name, started);
    answer.status = StatusCode::ACCEPTED;
    answer.location = Some("/ai/status".to_owned());
    Ok(answer)
}

async fn delete(cx: Cx, request: Req<()>) -> Result<DeletedModel, ApiError> {
    let assistant = assistant(&cx)?;
    assistant.administered().map_err(refused)?;
    let name = model_name(request.params.get("name"), "")?;
    let stopped = assistant.stop_pull(&name);
    match assistant.delete(&name).await {
        Ok(()) => Ok(DeletedModel { name, deleted: true, stopped }),
        Err(ModelError::Refused { status: 404, .. }) if stopped => {
            Ok(DeletedModel { name, deleted: false, stopped })
        }
        Err(error) => Err(about_model(&name)(error)),
    }
}

/// Returns a result with its model as the subject of the audit entry.
fn about<T>(name: String, data: T) -> WithHeaders<T> {
    let mut answer = WithHeaders::new(data);
    answer.subject = Some(name);
    answer
}
