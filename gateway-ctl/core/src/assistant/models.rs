//! Models of a server: installed and loaded ones, and the progress of a download.

use gateway_model::settings::groups::AssistantKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server_error::{ReplyFormError, shown};

/// Maximum number of models that are listed.
const MAX_MODELS: usize = 500;
/// Tag that a name without one has at a server of the Ollama API.
const DEFAULT_TAG: &str = "latest";

/// Model that a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstalledModel {
    pub name: String,
    /// Size on the disk of the server, in bytes; null if the server does not say.
    pub size: Option<u64>,
    /// Number of parameters as the server writes it; null if the server does not say.
    pub parameters: Option<String>,
    /// Quantization of the weights; null if the server does not say.
    pub quantization: Option<String>,
}

/// Model in the memory of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningModel {
    pub name: String,
    /// Memory in bytes; null if the server does not say.
    pub size: Option<u64>,
    /// Part of it in the memory of a graphics card, in bytes; null if the server does not say.
    pub size_vram: Option<u64>,
    /// Time at which the server unloads it, as the server writes it; null if the server does not say.
    pub expires_at: Option<String>,
}

#[derive(Deserialize)]
struct OllamaModels {
    #[serde(default)]
    models: Vec<OllamaModel>,
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
    size: Option<u64>,
    size_vram: Option<u64>,
    expires_at: Option<String>,
    details: Option<OllamaDetails>,
}

#[derive(Default, Deserialize)]
struct OllamaDetails {
    parameter_size: Option<String>,
    quantization_level: Option<String>,
}

#[derive(Deserialize)]
struct OpenaiModels {
    data: Vec<OpenaiModel>,
}

#[derive(Deserialize)]
struct OpenaiModel {
    id: String,
}

/// Returns the path of the list of models.
pub fn list_path(kind: AssistantKind) -> &'static str {
    match kind {
        AssistantKind::Ollama => "/api/tags",
        AssistantKind::Openai => "/v1/models",
    }
}

/// Returns the models in the reply for [`list_path`].
pub fn installed(kind: AssistantKind, body: &[u8]) -> Result<Vec<InstalledModel>, ReplyFormError> {
    let models = match kind {
        AssistantKind::Ollama => {
            let listed = serde_json::from_slice::<OllamaModels>(body)?.models.into_iter();
            let model = |model: OllamaModel| {
                let details = model.details.unwrap_or_default();
                InstalledModel {
                    name: shown(&model.name),
                    size: model.size,
                    parameters: details.parameter_size.map(|text| shown(&text)),
                    quantization: details.quantization_level.map(|text| shown(&text)),
                }
            };
            listed.take(MAX_MODELS).map(model).collect()
        }
        AssistantKind::Openai => {
            let listed = serde_json::from_slice::<OpenaiModels>(body)?.data.into_iter();
            let model = |model: OpenaiModel| InstalledModel { name: shown(&model.id), ..Default::default() };
            listed.take(MAX_MODELS).map(model).collect()
        }
    };
    Ok(models)
}

/// Returns the models in a reply of `/api/ps`.
pub fn running(body: &[u8]) -> Result<Vec<RunningModel>, ReplyFormError> {
    let listed = serde_json::from_slice::<OllamaModels>(body)?.models.into_iter();
    let model = |model: OllamaModel| RunningModel {
        name: shown(&model.name),
        size: model.size,
        size_vram: model.size_vram,
        expires_at: model.expires_at.map(|text| shown(&text)),
    };
    Ok(listed.take(MAX_MODELS).map(model).collect())
}

/// Reports whether two names are those of one model. A name without a tag has the tag `latest`.
pub fn is_same_model(one: &str, other: &str) -> bool {
    fn parts(name: &str) -> (&str, &str) {
        let colon = name.rfind(':').filter(|colon| !name[*colon..].contains('/'));
        colon.map_or((name, DEFAULT_TAG), |colon| (&name[..colon], &name[colon + 1..]))
    }
    parts(one) == parts(other)
}

/// Line of the progress of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullLine {
    Progress { status: String, completed: Option<u64>, total: Option<u64> },
    Done,
    Failed(String),
}

#[derive(Deserialize)]
struct RawPullLine {
    status: Option<String>,
    error: Option<String>,
    completed: Option<u64>,
    total: Option<u64>,
}

/// Reads a line of the progress of a download.
pub fn pull_line(line: &[u8]) -> Result<PullLine, ReplyFormError> {
    let RawPullLine { status, error, completed, total } = serde_json::from_slice(line)?;
    match (error, status) {
        (Some(error), _) => Ok(PullLine::Failed(shown(&error))),
        (None, Some(status)) if status == "success" => Ok(PullLine::Done),
        (None, Some(status)) => Ok(PullLine::Progress { status: shown(&status), completed, total }),
        (None, None) => Err(ReplyFormError("a line has neither status nor error".to_owned())),
    }
}
