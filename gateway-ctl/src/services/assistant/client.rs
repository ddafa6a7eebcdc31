//! Requests to a server of language models.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_core::assistant::models::{PullLine, pull_line};
use gateway_core::assistant::server_error::{ReplyFormError, error_message};
use gateway_model::settings::groups::AssistantConfig;
use gateway_outbound::causes::with_causes;
use gateway_outbound::http::{self as outbound, Body, Limits};
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response};
use serde_json::{Value, json};

use super::model_error::ModelError;
use super::pull::RunningPull;
use crate::tls::{Client, Factory};

/// Maximum size of a reply: an answer of a model, or a list of models.
const MAX_REPLY_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum size of the progress of a download, which has a line every fraction of a second.
const MAX_PROGRESS_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum length of a line of the progress.
const MAX_LINE_BYTES: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum silence of a download.
const SILENCE: Duration = Duration::from_secs(120);

pub(super) struct ModelClient {
    tls: Client,
    endpoint_names: Resolver,
}

impl ModelClient {
    pub(super) fn new(tls: &Arc<Factory>, endpoint_names: Resolver) -> ModelClient {
        ModelClient { tls: tls.client("assistant"), endpoint_names }
    }

    /// Sends a request and returns the whole reply.
    pub(super) async fn send(
        &self,
        config: &AssistantConfig,
        method: Method,
        path: &str,
        body: Option<Value>,
        timeout: Duration,
    ) -> Result<Vec<u8>, ModelError> {
        let exchange = async {
            // The deadline of the whole comes first.
            let limits = Limits::within(timeout + CONNECT_TIMEOUT, MAX_REPLY_BYTES);
            let response = self.exchange(config, method, path, body, limits).await?;
            let collected = response.into_body().collect().await;
            Ok(collected.map_err(|error| unreachable(&error))?.to_vec())
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(ModelError::Timeout(timeout)))
    }

    /// Downloads a model, and reports the progress.
    pub(super) async fn pull(
        &self,
        config: &AssistantConfig,
        name: &str,
        pull: &RunningPull,
    ) -> Result<(), ModelError> {
        let body = json!({"model": name, "stream": true});
        let limits = Limits::within(SILENCE, MAX_PROGRESS_BYTES);
        let response = self.exchange(config, Method::POST, "/api/pull", Some(body), limits).await?;
        let mut body = response.into_body();
        let mut rest: Vec<u8> = Vec::new();
        while let Some(piece) = body.piece().await.map_err(|error| unreachable(&error))? {
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                if let Some(ended) = follow(&line, pull)? {
                    return ended;
                }
            }
            if rest.len() > MAX_LINE_BYTES {
                return Err(ReplyFormError("a line of the progress is too long".to_owned()).into());
            }
        }
        let ended = if rest.is_empty() { None } else { follow(&rest, pull)? };
        ended.unwrap_or_else(|| Err(ModelError::PullFailed("the server ended without a result".to_owned())))
    }

    async fn exchange(
        &self,
        config: &AssistantConfig,
        method: Method,
        path: &str,
        body: Option<Value>,
        limits: Limits,
    ) -> Result<Response<Body>, ModelError> {
        let request = request(config, method, path, body)?;
        let dialer = Dialer::by_default_route(&KernelSockets::QUICK, &self.endpoint_names, CONNECT_TIMEOUT);
        let client = outbound::Client { dialer, tls: &self.tls, limits };
        let response = client.send(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.into_body().collect().await.unwrap_or_default();
        let message = error_message(&body).unwrap_or_else(|| "no reason given".to_owned());
        Err(ModelError::Refused { status: status.as_u16(), message: without_key(config, message) })
    }
}

/// Reads a line of the progress. Returns the result of the download in its last line.
fn follow(line: &[u8], pull: &RunningPull) -> Result<Option<Result<(), ModelError>>, ModelError> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    Ok(match pull_line(line)? {
        PullLine::Progress { status, completed, total } => {
            pull.progress(status, completed, total);
            None
        }
        PullLine::Done => Some(Ok(())),
        PullLine::Failed(error) => Some(Err(ModelError::PullFailed(error))),
    })
}

fn request(
    config: &AssistantConfig,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Request<Bytes>, ModelError> {
    let mut base = config.endpoint.trim_end_matches('/');
    if path.starts_with("/v1/") {
        base = base.strip_suffix("/v1").unwrap_or(base);
    }
    let mut request =
        Request::builder().method(method).uri(format!("{base}{path}")).header(USER_AGENT, "gatewayd");
    if config.api_key.is_set() {
        let value = HeaderValue::try_from(format!("Bearer {}", config.api_key.expose()));
        let invalid = |_| ModelError::Unreachable("the key has characters that no header has".to_owned());
        let mut value = value.map_err(invalid)?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    request.body(body).map_err(|_| ModelError::Unreachable("the URL is not valid".to_owned()))
}

fn unreachable(error: &outbound::Error) -> ModelError {
    ModelError::Unreachable(with_causes(error))
}

/// Removes the key from a message: a server may repeat it.
fn without_key(config: &AssistantConfig, message: String) -> String {
    match config.api_key.is_set() {
        true => message.replace(config.api_key.expose(), "(key)"),
        false => message,
    }
}
