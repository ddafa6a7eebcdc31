//! The five endpoints of a collection of stored objects, generic over [`Kind`].

use std::marker::PhantomData;
use std::ops::BitOr;

use gateway_ctl::parallel::in_parallel;
use gateway_model::filter::Filter;
use gateway_model::registry::{self, ShownText};
use gateway_model::{Deleted, EditError, Id, Kind, Resource, Revision, State, Written};
use http::StatusCode;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::store_handler::{in_memory, on_disk};
use super::{Audit, Effect, Endpoint, Input, Method, Output, SchemaSource, Table};
use crate::authorization::Access;
use crate::context::Cx;
use crate::dispatch::conditional;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::query::parameters::ListQuery;
use crate::reply::{Answer, Content, Reply};
use crate::request::{Body, Request};

/// Number of objects of a list that a thread shows at a time.
const SHARE: usize = 500;

/// Set of endpoints of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ops(u8);

impl Ops {
    pub const LIST: Ops = Ops(1);
    pub const CREATE: Ops = Ops(2);
    pub const GET: Ops = Ops(4);
    pub const REPLACE: Ops = Ops(8);
    pub const DELETE: Ops = Ops(16);
    pub const ALL: Ops = Ops(31);

    fn has(self, other: Ops) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Ops {
    type Output = Ops;

    fn bitor(self, other: Ops) -> Ops {
        Ops(self.0 | other.0)
    }
}

/// Properties of a collection that its kind does not have.
#[derive(Clone, Copy)]
pub struct Collection {
    /// Path of the collection, such as `/devices`.
    pub path: &'static str,
    /// Path of an object, such as `/devices/{id}`.
    pub item: &'static str,
    /// Audit actions of create, replace and delete. They are also the operation ids.
    pub actions: [&'static str; 3],
    pub ops: Ops,
    /// Adds observed values to the objects of a response. `None` if nothing is observed.
    pub live: Option<Live>,
}

/// Function that adds observed values to objects of a response.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    observe: fn(&Open, &State, &mut [Value]),
    is_beside: bool,
}

impl Live {
    /// Observed values that follow the fields of an object. The function may see no more than the ids of objects, and
    /// adds fields to them.
    pub const fn beside(observe: fn(&Open, &State, &mut [Value])) -> Self {
        Self { observe, is_beside: true }
    }

    /// Observed values of which some are inside or depend on fields of an object.
    pub const fn within(observe: fn(&Open, &State, &mut [Value])) -> Self {
        Self { observe, is_beside: false }
    }

    fn add(self, open: &Open, state: &State, shown: &mut [Value]) {
        (self.observe)(open, state, shown);
    }
}

impl Table {
    /// Returns an endpoint that was declared already, to change its properties.
    pub fn declared(&mut self, method: Method, path: &str) -> &mut Endpoint {
        let position =
            self.endpoints.iter().position(|endpoint| endpoint.method == method && endpoint.path == path);
        &mut self.endpoints[position.expect("only what was declared is changed")]
    }

    /// Declares the endpoints of a kind.
    pub fn collection<R: Resource>(&mut self, collection: Collection) {
        let kind = const { &Kind::of::<R>() };
        let Collection { path, item, actions, ops, live } = collection;
        let audited = |action| Effect::Stores(Audit { action, resource_type: R::NOUN });
        let tagged = |endpoint: &mut Endpoint| {
            endpoint.output = Output::Data(SchemaSource::new(output_schema::<R>));
            endpoint.tagged();
        };
        if ops.has(Ops::LIST) {
            let operation = format!("list_{}", R::COLLECTION);
            let endpoint = self.endpoint(Method::Get, path, &operation, Effect::Reads, Access::Read);
            endpoint.output = Output::FilteredList(SchemaSource::new(output_schema::<R>));
            endpoint.tagged();
            endpoint.summary = "List the objects in order of creation";
            endpoint.query::<ListQuery>();
            endpoint.work = on_disk(move |cx, request| list(kind, live, &cx, &request));
        }
        if ops.has(Ops::CREATE) {
            let endpoint =
                self.endpoint(Method::Post, path, actions[0], audited(actions[0]), Access::Operate);
            tagged(endpoint);
            endpoint.input = Input::json(SchemaSource::new(input_schema::<R>));
            endpoint.status = 201;
            endpoint.summary = "Create an object";
            endpoint.work = on_disk(move |cx, request| create(kind, item, live, &cx, request));
        }
        if ops.has(Ops::GET) {
            let operation = format!("get_{}", R::NOUN);
            let endpoint = self.endpoint(Method::Get, item, &operation, Effect::Reads, Access::Read);
            tagged(endpoint);
            endpoint.summary = "One object";
            endpoint.work = in_memory(move |cx, request| get(kind, live, &cx, &request));
        }
        if ops.has(Ops::REPLACE) {
            let endpoint = self.endpoint(Method::Put, item, actions[1], audited(actions[1]), Access::Operate);
            tagged(endpoint);
            endpoint.input = Input::json(SchemaSource::new(input_schema::<R>));
            endpoint.summary = "Replace an object";
            endpoint.doc = "Read-only fields are ignored; omitted secrets are kept.";
            endpoint.work = on_disk(move |cx, request| replace(kind, live, &cx, request));
        }
        if ops.has(Ops::DELETE) {
            let endpoint =
                self.endpoint(Method::Delete, item, actions[2], audited(actions[2]), Access::Operate);
            endpoint.output = Output::Data(SchemaSource::new(<Deleted as Answer>::schema));
            endpoint.tagged();
            endpoint.summary = "Delete an object";
            endpoint.query::<DeleteQuery>();
            endpoint.work = on_disk(move |cx, request| delete(kind, &cx, &request));
        }
    }
}

/// Query of a deletion.
#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct DeleteQuery {
    /// Delete even if policies refer to it; it is then unavailable to them.
    force: bool,
}

fn list(kind: &Kind, live: Option<Live>, cx: &Cx, request: &Request) -> Result<Reply, ApiError> {
    let open = cx.open()?;
    let state = open.store.current();
    let limit = request.query.read::<ListQuery>()?.limit();
    let mut reply = if let (true, None) = (is_beside(live), filters(request).next()) {
        Reply {
            total: Some(kind.len(&state)),
            ..Reply::content(Content::Text(shown_list(kind, live, open, &state, limit)))
        }
    } else {
        let (values, total) = filtered(kind, live, open, &state, request, limit);
        Reply { total: Some(total), ..Reply::data(Value::Array(values)) }
    };
    reply.etag = Some(kind.revision(&state).to_string());
    reply.observed = live.is_some();
    Ok(reply)
}

/// Returns the text of a list, whose objects are shown on all CPUs.
fn shown_list(kind: &Kind, live: Option<Live>, open: &Open, state: &State, limit: usize) -> Vec<u8> {
    let ids = kind.ids(state, limit);
    let shares: Vec<&[Id]> = ids.chunks(SHARE).collect();
    let texts = in_parallel(&shares, |ids| {
        let mut added = kind.added(state, ids);
        if let Some(live) = live {
            live.add(open, state, &mut added.objects);
        }
        let mut shown = ShownText::default();
        shown.append(kind, state, &added);
        shown.text
    });
    let mut text = Reply::text_of_data();
    text.reserve(texts.iter().map(|share| share.len() + 1).sum::<usize>() + 2);
    text.push(b'[');
    for (index, share) in texts.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(share);
    }
    text.push(b']');
    text
}

/// Reports whether observed values, if any, follow the fields of objects.
fn is_beside(live: Option<Live>) -> bool {
    live.is_none_or(|live| live.is_beside)
}

fn filters(request: &Request) -> impl Iterator<Item = &(String, String)> {
    request.query.0.iter().filter(|(name, _)| name != "limit")
}

/// Returns the objects that fit the filters of the request, and their number before the limit.
fn filtered(
    kind: &Kind,
    live: Option<Live>,
    open: &Open,
    state: &State,
    request: &Request,
    limit: usize,
) -> (Vec<Value>, usize) {
    let filter = Filter::new(filters(request).cloned());
    // Filters may refer to observed values, so these are added before the filter is applied.
    let mut values = kind.list(state, &Filter::default());
    if let Some(live) = live {
        live.add(open, state, &mut values);
    }
    values.retain(|value| filter.matches(value));
    let total = values.len();
    values.truncate(limit);
    (values, total)
}
fn get(kind: &Kind, live: Option<Live>, cx: &Cx, request: &Request) -> Result<Reply, ApiError> {
    let open = cx.open()?;
    let state = open.store.current();
    let name = name_in(request);
    let id = kind.find(&state, name);
    let Some((mut added, revision)) = id.filter(|_| is_beside(live)).and_then(|id| kind.added_of(&state, id))
    else {
        let named = id.map_or_else(|| name.to_owned(), |id| id.to_string());
        let (value, revision) = kind.get(&state, &named)?;
        return Ok(shown(open, &state, live, value, revision));
    };
    if let Some(live) = live {
        live.add(open, &state, &mut added.objects);
    }
    let mut shown = ShownText::new(Reply::text_of_data());
    shown.append(kind, &state, &added);
    let mut reply = Reply::content(Content::Text(shown.text));
    reply.etag = Some(revision.to_string());
    reply.observed = live.is_some();
    Ok(reply)
}

fn create(
    kind: &Kind,
    item: &'static str,
    live: Option<Live>,
    cx: &Cx,
    request: Request,
) -> Result<Reply, ApiError> {
    let open = cx.open()?;
    let input = input(request.body)?;
    let written: Written = cx.commit_blocking(|draft| kind.create(draft, input))?;
    let state = open.store.current();
    let mut reply = shown(open, &state, live, written.value, written.revision);
    reply.status = StatusCode::CREATED;
    let front = item.split('{').next().unwrap_or_default();
    reply.location = Some(format!("{front}{}", written.id));
    reply.warnings = written.warnings;
    Ok(reply)
}

fn replace(kind: &Kind, live: Option<Live>, cx: &Cx, mut request: Request) -> Result<Reply, ApiError> {
    let open = cx.open()?;
    let input = input(std::mem::take(&mut request.body))?;
    let written: Written = cx.commit_blocking(|draft| {
        let id = named(kind, draft, &request);
        let expected = expected(kind, draft, &id, request.if_match.as_deref())?;
        kind.replace(draft, &id, expected, input)
    })?;
    let state = open.store.current();
    let mut reply = shown(open, &state, live, written.value, written.revision);
    reply.warnings = written.warnings;
    Ok(reply)
}

fn delete(kind: &Kind, cx: &Cx, request: &Request) -> Result<Reply, ApiError> {
    let DeleteQuery { force } = request.query.read()?;
    let deleted = cx.commit_blocking(|draft| {
        let id = named(kind, draft, request);
        let expected = expected(kind, draft, &id, request.if_match.as_deref())?;
        kind.delete(draft, &id, expected, force)
    })?;
    deleted.reply()
}

/// Returns the id of the object that the path names by id or unique name. An unknown name is returned unchanged.
fn named(kind: &Kind, state: &State, request: &Request) -> String {
    let name = name_in(request);
    kind.find(state, name).map_or_else(|| name.to_owned(), |id| id.to_string())
}

/// Returns the id or unique name in the path.
fn name_in(request: &Request) -> &str {
    request.params.0.values().next().map_or("", String::as_str)
}

/// Returns the current revision if `If-Match` allows it. `None` without `If-Match`; fails if it names another revision.
pub(crate) fn expected(
    kind: &Kind,
    draft: &State,
    id: &str,
    if_match: Option<&str>,
) -> Result<Option<Revision>, EditError> {
    let Some(list) = if_match else { return Ok(None) };
    let (_, current) = kind.get(draft, id)?;
    if conditional::matches_revision(list, &current.to_string()) {
        return Ok(Some(current));
    }
    let expected = Revision(conditional::first_revision(list).unwrap_or(0));
    Err(EditError::Stale { resource_type: kind.noun, expected, current })
}

/// Returns the reply with one object and its observed values.
pub(crate) fn shown(
    open: &Open,
    state: &State,
    live: Option<Live>,
    value: Value,
    revision: Revision,
) -> Reply {
    let mut values = [value];
    if let Some(live) = live {
        live.add(open, state, &mut values);
    }
    let [value] = values;
    let mut reply = Reply::data(value);
    reply.etag = Some(revision.to_string());
    reply.observed = live.is_some();
    reply
}

/// A stored object as the response to an action.
pub(crate) struct Object<R> {
    pub reply: Reply,
    kind: PhantomData<R>,
}

impl<R> Object<R> {
    pub(crate) fn new(reply: Reply) -> Self {
        Self { reply, kind: PhantomData }
    }
}

impl<R: Resource> Answer for Object<R> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        output_schema::<R>(generator)
    }

    fn reply(self) -> Result<Reply, ApiError> {
        Ok(self.reply)
    }
}

fn input(body: Body) -> Result<Value, ApiError> {
    match body {
        Body::Json(value) => Ok(value),
        Body::Absent | Body::Spooled(_) => {
            Err(ApiError::new(Code::BadRequest, "This operation needs a JSON object as its body."))
        }
    }
}

fn input_schema<R: Resource>(generator: &mut SchemaGenerator) -> Schema {
    component(generator, &R::schema_name(), |generator| registry::input_schema::<R>(generator))
}

/// Returns the schema of an object in responses. Also for endpoints outside the collection.
pub fn output_schema<R: Resource>(generator: &mut SchemaGenerator) -> Schema {
    component(generator, &R::schema_name(), |generator| registry::output_schema::<R>(generator))
}

/// Adds a schema to the named ones and returns a reference to it.
fn component(
    generator: &mut SchemaGenerator,
    name: &str,
    make: impl FnOnce(&mut SchemaGenerator) -> Schema,
) -> Schema {
    if !generator.definitions().contains_key(name) {
        let schema = make(generator);
        generator.definitions_mut().insert(name.to_owned(), schema.to_value());
    }
    Schema::new_ref(format!("#/components/schemas/{name}"))
}
