//! Suggested API calls: read against the table of endpoints, checked in a draft, never sent.

use gateway_core::assistant::answer::SuggestedCall;
use gateway_core::plan_check::{PlanCheck, check_edit};
use gateway_model::{EditError, KINDS, Kind, State, Warning};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::names::{find, with_ids};
use crate::authorization::{self, Access};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::table::{API_ROOT, Endpoint, Method};

/// API call that the model suggests. The gateway has not sent it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Suggestion {
    pub method: String,
    /// Path below the API root.
    pub path: String,
    /// Body of the call; null without one.
    pub body: Option<Value>,
    /// Operation of the API; null if there is none, or none that may be suggested.
    pub operation: Option<String>,
    /// The call may be suggested, and the gateway's check finds no error in it. Do not send another one.
    pub valid: bool,
    /// Human-readable reason for which the call may not be suggested; null if it may.
    pub refused: Option<String>,
    /// The gateway's own check; null if the call may not be suggested.
    pub check: Option<PlanCheck>,
}

/// Edit of one object.
#[derive(Clone, Debug)]
enum Edit {
    Create(Value),
    Replace(String, Value),
    Delete(String),
}

/// Checks a suggested call.
pub(super) async fn check(cx: &Cx, call: SuggestedCall) -> Result<Suggestion, ApiError> {
    let SuggestedCall { method, path, body } = call;
    let path = path.trim().strip_prefix(API_ROOT).unwrap_or(path.trim()).to_owned();
    let body = Some(body).filter(|body| body.as_object().is_some_and(|map| !map.is_empty()));
    let mut suggestion = Suggestion {
        method: method.trim().to_uppercase(),
        path,
        body,
        operation: None,
        valid: false,
        refused: None,
        check: None,
    };
    let (kind, edit, operation) = match read(cx, &mut suggestion)? {
        Ok(found) => found,
        Err(reason) => {
            suggestion.refused = Some(reason);
            return Ok(suggestion);
        }
    };
    suggestion.operation = Some(operation);
    let world = cx.open()?.world();
    let check = blocking(move || check_edit(&world.input(), |draft| make(kind, draft, edit))).await?;
    suggestion.valid = check.valid;
    suggestion.check = Some(check);
    Ok(suggestion)
}

type Found = (&'static Kind, Edit, String);

/// Finds the endpoint of a call. Puts ids in place of names. Returns the reason of a refusal.
fn read(cx: &Cx, suggestion: &mut Suggestion) -> Result<Result<Found, String>, ApiError> {
    let method = match suggestion.method.as_str() {
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        other => return Ok(Err(format!("{other:?} is no method of a change."))),
    };
    if !suggestion.path.starts_with('/') || suggestion.path.contains(['?', '#']) {
        return Ok(Err("The path is not one below the root of the API.".to_owned()));
    }
    let full = format!("{API_ROOT}{}", suggestion.path);
    let Some(matched) = cx.api.routes.find(&full) else {
        return Ok(Err(format!("There is no endpoint at {}.", suggestion.path)));
    };
    let Some(endpoint) = matched.endpoints.get(&method).map(|index| &cx.api.table.endpoints()[*index]) else {
        return Ok(Err(format!("{} has no {}.", suggestion.path, suggestion.method)));
    };
    let Some((kind, verb)) = edited_kind(endpoint) else {
        return Ok(Err(format!(
            "{} {} may not be suggested: only the creation, the replacement and the deletion of objects without \
             secrets may.",
            suggestion.method, endpoint.path
        )));
    };
    if let Err(error) = authorization::check(&cx.actor, endpoint.access) {
        return Ok(Err(error.message));
    }
    let state = cx.open()?.store.current();
    let named = matched.params(endpoint).0.into_values().next().unwrap_or_default();
    let id = find(kind, &state, &named);
    if let Some(id) = &id {
        suggestion.path = endpoint.path.replace("{id}", id);
    }
    let id = id.unwrap_or(named);
    let body = suggestion.body.take().map(|body| with_ids(kind, &state, body));
    suggestion.body = body.clone();
    let edit = match (verb, body) {
        ("create", Some(body)) => Edit::Create(body),
        ("replace", Some(body)) => Edit::Replace(id, body),
        ("delete", _) => Edit::Delete(id),
        _ => return Ok(Err("The call has no body.".to_owned())),
    };
    Ok(Ok((kind, edit, endpoint.operation.clone())))
}

/// Returns the kind that an endpoint creates, replaces or deletes one object of, with the verb. None for kinds with
/// secrets, and for those that only administrators edit: accounts, keys, other gateways.
fn edited_kind(endpoint: &Endpoint) -> Option<(&'static Kind, &'static str)> {
    let audit = endpoint.effect.audit()?;
    let (verb, noun) = audit.action.split_once('_')?;
    let kind = KINDS.iter().find(|kind| kind.noun == noun && kind.noun == audit.resource_type)?;
    let is_plain = kind.secrets.is_empty() && kind.exported && endpoint.access == Access::Operate;
    let is_one = match verb {
        "create" => !endpoint.path.contains('{'),
        "replace" | "delete" => endpoint.path.ends_with("/{id}"),
        _ => false,
    };
    (is_plain && is_one).then_some((kind, verb))
}

fn make(kind: &Kind, draft: &mut State, edit: Edit) -> Result<Vec<Warning>, EditError> {
    match edit {
        Edit::Create(body) => kind.create(draft, body).map(|written| written.warnings),
        Edit::Replace(id, body) => kind.replace(draft, &id, None, body).map(|written| written.warnings),
        Edit::Delete(id) => kind.delete(draft, &id, None, false).map(|_| Vec::new()),
    }
}
