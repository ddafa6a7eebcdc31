//! Client of a server of language models, by the API of Ollama or one compatible with OpenAI's.
//!
//! It is off by default, acts only on request, and changes nothing on this gateway. Decision 0214 says why.

mod client;
mod model_error;
mod pull;

use std::sync::Arc;
use std::time::Duration;

use gateway_core::assistant::chat::{self, Message, SchemaForm};
use gateway_core::assistant::models::{self, InstalledModel, RunningModel};
use gateway_core::assistant::server_error::ReplyFormError;
use gateway_model::settings::groups::{AssistantConfig, AssistantKind, WipeLevel};
use gateway_outbound::Resolver;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::service;
use crate::store::Store;
use crate::tls::Factory;
use client::ModelClient;

pub use model_error::ModelError;
use pull::Pulls;
pub use pull::{Pull, PullState};

/// Timeout of requests that no model answers, in place of a longer one of the settings.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time of an answer. It is below the deadline of handlers, so that their clients get the reason.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(110);

/// Assistant of one gateway.
pub struct Assistant {
    store: Arc<Store>,
    client: ModelClient,
    pulls: Pulls,
    /// One answer at a time: a model takes all processors that it gets.
    turn: Semaphore,
}

/// Result of a look at the server.
#[derive(Clone, Debug, Default)]
pub struct ServerStatus {
    /// Version of the server; `None` if it does not say.
    pub version: Option<String>,
    pub models: Vec<InstalledModel>,
    /// Loaded models; `None` if the protocol does not say.
    pub running: Option<Vec<RunningModel>>,
}

impl Assistant {
    pub fn new(store: Arc<Store>, tls: &Arc<Factory>, endpoint_names: Resolver) -> Arc<Assistant> {
        let client = ModelClient::new(tls, endpoint_names);
        Arc::new(Assistant { store, client, pulls: Pulls::default(), turn: Semaphore::new(1) })
    }

    /// Returns the service that forgets the downloads in a wipe.
    pub fn service(self: &Arc<Self>) -> service::Service {
        let erased = self.clone();
        service::Service::idle("assistant").erases(move |_: WipeLevel| {
            erased.pulls.clear();
            std::future::ready(Ok(()))
        })
    }

    pub fn config(&self) -> AssistantConfig {
        self.store.current().group::<AssistantConfig>()
    }

    /// Returns the settings of an assistant that may be asked.
    pub fn enabled(&self) -> Result<AssistantConfig, ModelError> {
        let config = self.config();
        match config {
            AssistantConfig { enabled: false, .. } => Err(ModelError::Off),
            // A stored value of another version may be one that no change accepts now.
            ref config if !config.is_local() && !config.allow_remote => Err(ModelError::Remote),
            config => Ok(config),
        }
    }

    /// Asks the model for an answer by a schema.
    pub async fn ask(&self, messages: &[Message], schema: &Value) -> Result<String, ModelError> {
        let config = self.enabled()?;
        if config.model.is_empty() {
            return Err(ModelError::NoModel);
        }
        let timeout = Duration::from_secs(config.timeout_sec).min(MAX_ANSWER_TIME);
        let answer = async {
            let Ok(_turn) = self.turn.acquire().await else { return Err(ModelError::Off) };
            self.answer(&config, messages, schema, timeout).await
        };
        tokio::time::timeout(timeout, answer).await.unwrap_or(Err(ModelError::Timeout(timeout)))
    }

    async fn answer(
        &self,
        config: &AssistantConfig,
        messages: &[Message],
        schema: &Value,
        timeout: Duration,
    ) -> Result<String, ModelError> {
        let ask = async |form| {
            let request = chat::request(config.kind, &config.model, messages, schema, form);
            self.client.send(config, Method::POST, request.path, Some(request.body), timeout).await
        };
        let body = match ask(SchemaForm::JsonSchema).await {
            Err(ModelError::Refused { status, .. }) if chat::may_refuse_form(config.kind, status) => {
                ask(SchemaForm::JsonObject).await?
            }
            other => other?,
        };
        Ok(chat::reply(config.kind, &body)?)
    }

    /// Looks at the server: its version, its models, and the loaded ones.
    pub async fn look(&self, config: &AssistantConfig) -> Result<ServerStatus, ModelError> {
        let list = self.get(config, models::list_path(config.kind)).await?;
        let models = models::installed(config.kind, &list)?;
        if config.kind != AssistantKind::Ollama {
            return Ok(ServerStatus { models, ..ServerStatus::default() });
        }
        let running = Some(models::running(&self.get(config, "/api/ps").await?)?);
        let version: Value =
            serde_json::from_slice(&self.get(config, "/api/version").await?).map_err(ReplyFormError::from)?;
        let version = version["version"].as_str().map(gateway_core::assistant::server_error::shown);
        Ok(ServerStatus { version, models, running })
    }

    /// Returns the loaded models.
    pub async fn running(&self) -> Result<Vec<RunningModel>, ModelError> {
        let config = self.administered()?;
        Ok(models::running(&self.get(&config, "/api/ps").await?)?)
    }

    /// Loads a model into the memory of the server.
    pub async fn load(&self, name: &str) -> Result<(), ModelError> {
        self.generate(json!({"model": name, "stream": false})).await
    }

    /// Frees the memory of a model.
    pub async fn unload(&self, name: &str) -> Result<(), ModelError> {
        self.generate(json!({"model": name, "stream": false, "keep_alive": 0})).await
    }

    async fn generate(&self, body: Value) -> Result<(), ModelError> {
        let config = self.administered()?;
        let timeout = Duration::from_secs(config.timeout_sec).min(MAX_ANSWER_TIME);
        self.client.send(&config, Method::POST, "/api/generate", Some(body), timeout).await.map(drop)
    }

    /// Starts the download of a model. Returns its state at the start.
    pub fn pull(self: &Arc<Self>, name: &str) -> Result<Pull, ModelError> {
        let config = self.administered()?;
        self.pulls.start(name, self.store.clock().now(), |pull| {
            let (assistant, name) = (self.clone(), name.to_owned());
            tokio::spawn(async move {
                let result = assistant.client.pull(&config, &name, &pull).await;
                pull.end(assistant.store.clock().now(), result.map_err(|error| error.to_string()));
            })
        })
    }

    /// Returns the downloads since the start, the newest first.
    pub fn pulls(&self) -> Vec<Pull> {
        self.pulls.list()
    }

    /// Stops the download of a model that runs. Reports whether there was one.
    pub fn stop_pull(&self, name: &str) -> bool {
        self.pulls.stop(name, self.store.clock().now())
    }

    /// Removes a model from the disk of the server.
    pub async fn delete(&self, name: &str) -> Result<(), ModelError> {
        let config = self.administered()?;
        let body = Some(json!({"model": name}));
        self.client.send(&config, Method::DELETE, "/api/delete", body, STATUS_TIMEOUT).await.map(drop)
    }

    /// Returns the settings of a server whose models can be administered.
    pub fn administered(&self) -> Result<AssistantConfig, ModelError> {
        let config = self.enabled()?;
        match config.kind {
            AssistantKind::Ollama => Ok(config),
            AssistantKind::Openai => Err(ModelError::NoAdministration),
        }
    }

    async fn get(&self, config: &AssistantConfig, path: &str) -> Result<Vec<u8>, ModelError> {
        self.client.send(config, Method::GET, path, None, STATUS_TIMEOUT).await
    }
}

impl std::fmt::Debug for Assistant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assistant").finish_non_exhaustive()
    }
}
