//! `/health`: liveness for monitors, which need no credential. Details are for those who may read the gateway.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gateway_core::health::{Check, CheckState, Code, Finding, TrackedCheck};
use gateway_ctl::service;
use gateway_ctl::services::storage;
use gateway_model::text_enum;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::{Gateway, Open};
use crate::request::Req;

text_enum! {
    /// State of the daemon.
    pub enum DaemonState {
        Ok = "ok",
        /// The gateway enforces its plan, but another part fails; or programs, nftables or rules differ from the plan.
        Degraded = "degraded",
        /// The store cannot be used.
        Blocked = "blocked",
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ServiceHealth")]
pub(super) struct Health {
    /// State of the daemon; `checks` has the functions.
    pub status: DaemonState,
    /// Human-readable reason. Left out if the status is `ok`, and for callers who may not read the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Cause of the status. `blocked`: `not_initialised` (run `gatewayd init`), `store_missing` (the store of an
    /// initialised gateway was lost) or `store_unusable`. `degraded`: `storage_full`, `drift` (programs, nftables or
    /// rules), `lan_without_ethernet` (the gateway forwards nothing from that LAN interface) or `task_failed`. Left out
    /// if the status is `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Functions of the gateway, as its hosts have them. Empty before the first check.
    pub checks: Vec<FunctionCheck>,
}

/// Check of a function. Callers who may not read the gateway get name and state only.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FunctionCheck {
    pub name: &'static str,
    pub state: CheckState,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub details: Option<CheckDetails>,
}

/// Reason of the state of a check.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CheckDetails {
    /// Code of the reason, as the documentation lists it; `ok` if all is well.
    #[schemars(with = "CheckCode")]
    pub code: &'static str,
    /// Parameters of the sentence.
    pub params: BTreeMap<&'static str, String>,
    /// Human-readable reason.
    pub message: String,
    /// Human-readable remedy. Empty if none is needed.
    pub remedy: String,
    /// All reasons, the sentence in parts. Left out if all is well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingView>,
    /// Time since which the check has this state and code.
    pub since: Timestamp,
}

/// One reason for which a function does not work, or only partially.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CheckFinding")]
pub(crate) struct FindingView {
    #[schemars(with = "CheckCode")]
    pub code: &'static str,
    pub params: BTreeMap<&'static str, String>,
    /// Human-readable reason.
    pub message: String,
    /// Human-readable remedy. Empty if none is needed.
    pub remedy: String,
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> FindingView {
        let Finding { code, params, message, remedy, .. } = finding.clone();
        FindingView { code: code.as_str(), params, message, remedy }
    }
}

/// Code of a check, as the OpenAPI document lists it.
pub(super) struct CheckCode;

impl JsonSchema for CheckCode {
    fn schema_name() -> Cow<'static, str> {
        "CheckCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({
            "type": "string",
            "enum": codes,
            "description": "Code of a check. Later versions may have others.",
        })
    }
}

impl FunctionCheck {
    /// Returns the check as the API shows it.
    pub(crate) fn new(tracked: &TrackedCheck, with_details: bool) -> FunctionCheck {
        let TrackedCheck { check, since } = tracked;
        let Check { name, state, code, params, findings, message, remedy } = check;
        let details = with_details.then(|| CheckDetails {
            code: code.as_str(),
            params: params.clone(),
            message: message.clone(),
            remedy: remedy.clone(),
            findings: findings.iter().map(FindingView::from).collect(),
            since: *since,
        });
        FunctionCheck { name, state: *state, details }
    }
}

/// Query of the health.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct HealthQuery {
    /// Answer 503 if a check has failed or the gateway is blocked.
    full: bool,
}

pub(super) async fn health(cx: Cx, request: Req<()>) -> Result<Health, ApiError> {
    let HealthQuery { full: is_full } = request.query.read()?;
    let health = match &cx.api.gateway {
        Gateway::Open(open) => {
            let (status, cause, reason) = match of_daemon(open) {
                Some((cause, reason)) => (DaemonState::Degraded, Some(cause), Some(reason)),
                None => (DaemonState::Ok, None, None),
            };
            let with_details = cx.require(Access::Read).is_ok();
            let reason = reason.filter(|_| with_details);
            if open.checks.last().is_empty() {
                open.check().await;
            }
            let checks = open.checks.last();
            let checks = checks.iter().map(|tracked| FunctionCheck::new(tracked, with_details)).collect();
            Health { status, reason, cause, checks }
        }
        Gateway::Blocked { reason, cause, .. } => Health {
            status: DaemonState::Blocked,
            reason: Some(reason.clone()),
            cause: Some(*cause),
            checks: Vec::new(),
        },
    };
    let failed = health.checks.iter().filter(|check| check.state == CheckState::Failed);
    let failed: Vec<&str> = failed.map(|check| check.name).collect();
    if is_full && (!failed.is_empty() || health.status == DaemonState::Blocked) {
        let message = match health.status {
            DaemonState::Blocked => "All traffic is blocked.".to_owned(),
            DaemonState::Ok | DaemonState::Degraded => format!("Failed checks: {}.", failed.join(", ")),
        };
        return Err(ApiError::not_ready(message).detail("checks", json!(health.checks)));
    }
    Ok(health)
}

/// Returns cause and reason for which the daemon itself is degraded.
fn of_daemon(open: &Open) -> Option<(&'static str, String)> {
    let world = open.world();
    let full = storage::health(&open.store).filter(|health| health.check.state == CheckState::Failed);
    if let Some(service::Health { check, .. }) = full {
        return Some(("storage_full", check.message));
    }
    if let Some(reason) = world.status.enforcement_failure() {
        return Some(("drift", reason));
    }
    let blocked_lan = world.live().findings.iter().find(|finding| finding.code == "lan_without_ethernet");
    if let Some(finding) = blocked_lan {
        return Some(("lan_without_ethernet", finding.message.clone()));
    }
    Some(("task_failed", open.services.supervisor().failure()?))
}
