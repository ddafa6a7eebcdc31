//! Endpoints of a group of settings: GET and PUT of one object without an id.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gateway_model::settings::group::{Group, GroupKind};
use gateway_model::{EditError, Revision, State, Warning};
use schemars::{Schema, SchemaGenerator};

use super::store_handler::on_disk;
use super::{Audit, Effect, Endpoint, Input, Method, Output, SchemaSource, Table, Work};
use crate::authorization::Access;
use crate::context::Cx;
use crate::dispatch::conditional;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::reply::Reply;
use crate::request::{Body, Request};

impl Table {
    /// Declares the endpoints of a group. `access` is the class of the PUT. The action is also the operation id.
    pub fn group<G: Group>(&mut self, path: &'static str, action: &'static str, access: Access) {
        self.group_checked::<G>(path, action, access, |_, _| Ok(()));
    }

    /// Declares the endpoints of a group with a check that needs more than the state.
    pub fn group_checked<G: Group>(
        &mut self,
        path: &'static str,
        action: &'static str,
        access: Access,
        check: fn(&Open, &State) -> Result<(), EditError>,
    ) {
        let kind = const { &GroupKind::of::<G>() };
        let endpoint =
            self.endpoint(Method::Get, path, &format!("get_{}", G::NOUN), Effect::Reads, Access::Read);
        describe::<G>(endpoint);
        endpoint.summary = "Stored settings, or the defaults";
        endpoint.work = on_disk(move |cx, request| get(kind, &cx, &request));
        let effect = Effect::Stores(Audit { action, resource_type: G::NOUN });
        let endpoint = self.endpoint(Method::Put, path, action, effect, access);
        describe::<G>(endpoint);
        endpoint.input = Input::json(SchemaSource::new(|generator| G::json_schema(generator)));
        endpoint.summary = "Replace the whole settings object";
        endpoint.doc = "Omitted fields take their defaults; omitted secrets are kept.";
        endpoint.work = on_disk(move |cx, request| put(kind, check, &cx, request));
    }
}

/// Observation of the network that precedes a change. It gets the settings as they would be.
pub(super) type Observation =
    for<'a> fn(&'a Open, &State) -> Pin<Box<dyn Future<Output = Vec<Warning>> + Send + 'a>>;

impl Table {
    /// Makes the PUT of a group observe the network before its change. The observation adds to the warnings.
    pub fn observed_before<G: Group>(&mut self, path: &'static str, observe: Observation) {
        let kind = const { &GroupKind::of::<G>() };
        let endpoint = self.declared(Method::Put, path);
        let Work::Handler(change) = endpoint.work.clone() else { return };
        endpoint.work = Work::Handler(Arc::new(move |cx, request| {
            let change = change.clone();
            Box::pin(async move {
                let warnings = match would_be(kind, &cx, &request) {
                    Some(draft) => observe(cx.open()?, &draft).await,
                    None => Vec::new(),
                };
                let mut reply = change(cx, request).await?;
                reply.warnings.extend(warnings);
                Ok(reply)
            })
        }));
    }
}

/// Returns the state after a change. `None` if it is refused, which the change itself reports.
fn would_be(kind: &GroupKind, cx: &Cx, request: &Request) -> Option<State> {
    let Body::Json(input) = &request.body else { return None };
    let open = cx.open().ok()?;
    let mut draft = open.store.current().begin(open.now());
    kind.put(&mut draft, input.clone()).ok()?;
    Some(draft)
}

fn describe<G: Group>(endpoint: &mut Endpoint) {
    fn schema<G: Group>(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<G>()
    }
    endpoint.output = Output::Data(SchemaSource::new(schema::<G>));
    endpoint.tagged();
}

fn get(kind: &GroupKind, cx: &Cx, _: &Request) -> Result<Reply, ApiError> {
    let state = cx.open()?.store.current();
    Ok(shown(kind, &state))
}

fn put(
    kind: &GroupKind,
    check: fn(&Open, &State) -> Result<(), EditError>,
    cx: &Cx,
    request: Request,
) -> Result<Reply, ApiError> {
    let Body::Json(input) = request.body else {
        return Err(ApiError::new(Code::BadRequest, "This operation needs a JSON object as its body."));
    };
    let open = cx.open()?;
    let (reply, warnings) = cx.commit_blocking(|draft| {
        expect(kind.noun, kind.revision(draft), request.if_match.as_deref())?;
        let warnings = kind.put(draft, input)?;
        check(open, draft)?;
        Ok((shown(kind, draft), warnings))
    })?;
    Ok(Reply { warnings, ..reply })
}

fn shown(kind: &GroupKind, state: &State) -> Reply {
    let mut reply = Reply::data(kind.shown(state));
    reply.etag = Some(kind.revision(state).to_string());
    reply
}

/// Fails if `If-Match` names another revision.
pub fn expect(noun: &'static str, current: Revision, if_match: Option<&str>) -> Result<(), EditError> {
    match if_match {
        Some(list) if !conditional::matches_revision(list, &current.to_string()) => {
            let expected = Revision(conditional::first_revision(list).unwrap_or(0));
            Err(EditError::Stale { resource_type: noun, expected, current })
        }
        _ => Ok(()),
    }
}
