//! Requests to the API of another gateway.

use std::sync::Arc;
use std::time::Duration;

use ::http::Request;
use ::http::header::{CONTENT_TYPE, USER_AGENT};
use bytes::Bytes;
use gateway_outbound::causes::with_causes;
use gateway_outbound::http::{self, Limits};
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use serde::Deserialize;
use serde_json::Value;

use crate::tls::{Client, Factory, with_authorities};

/// Path of the API, below the URL of a node.
const API_PATH: &str = "/api/v1";
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest reply: some 100 000 objects.
const MAX_REPLY_BYTES: u64 = 64 * 1024 * 1024;

pub(super) struct PeerClient {
    pub(super) tls: Client,
    pub(super) endpoint_names: Resolver,
}

/// Reason why a peer gave no answer of use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerError {
    /// It was not reached.
    #[error("{0}")]
    Unreachable(String),
    /// It answered with an error.
    #[error("it answered {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("its answer is not one of a gateway: {0}")]
    Form(String),
}

#[derive(Deserialize)]
struct Success {
    data: Value,
}

#[derive(Deserialize)]
struct Failure {
    error: FailureBody,
}

#[derive(Deserialize)]
struct FailureBody {
    message: String,
}

impl PeerClient {
    pub(super) fn new(tls: &Arc<Factory>, endpoint_names: Resolver) -> PeerClient {
        PeerClient { tls: tls.client("federation"), endpoint_names }
    }

    /// Posts a JSON body and returns the bytes of the value in the answer.
    pub(super) async fn post(
        &self,
        url: &str,
        ca_certificate: &str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, PeerError> {
        let uri = format!("{}{API_PATH}{path}", url.trim_end_matches('/'));
        let request = Request::post(uri)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "gatewayd")
            .body(Bytes::from(body))
            .map_err(|_| PeerError::Unreachable("the URL is not valid".to_owned()))?;
        let tls = with_authorities(&self.tls, ca_certificate).map_err(PeerError::Unreachable)?;
        let dialer = Dialer::by_default_route(&KernelSockets::QUICK, &self.endpoint_names, TIMEOUT);
        let limits = Limits::within(TIMEOUT, MAX_REPLY_BYTES);
        let explain = |error: http::Error| PeerError::Unreachable(with_causes(&error));
        let response = http::Client { dialer, tls: &tls, limits }.send(request).await.map_err(explain)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(explain)?;
        if !status.is_success() {
            let failure: Result<Failure, _> = serde_json::from_slice(&body);
            let message =
                failure.map_or_else(|_| "no reason given".to_owned(), |failure| failure.error.message);
            return Err(PeerError::Refused { status: status.as_u16(), message });
        }
        let success: Result<Success, _> = serde_json::from_slice(&body);
        let Success { data } = success.map_err(|error| PeerError::Form(error.to_string()))?;
        serde_json::to_vec(&data).map_err(|error| PeerError::Form(error.to_string()))
    }
}
