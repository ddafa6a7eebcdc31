//! The API as data: one [`Row`] per method and path, and the builders that make rows.
//!
//! The router, the OpenAPI document, the authorisation check and the tests all read this table. It holds no logic of
//! any operation: that is in `areas`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::access::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::{Answer, Content, Reply};
use crate::request::{Body, Req, Request, decode};

pub mod collection;
mod route;

pub use collection::{Collection, Live, Ops, output_schema};
pub use route::{Found, Routes, placeholders};

/// Methods of the contract. HEAD is answered as GET, OPTIONS from the set of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }

    pub fn from_http(method: &http::Method) -> Option<Self> {
        match method.as_str() {
            "GET" | "HEAD" => Some(Method::Get),
            "POST" => Some(Method::Post),
            "PUT" => Some(Method::Put),
            "DELETE" => Some(Method::Delete),
            _ => None,
        }
    }
}

pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;
pub type Pending = Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send>>;
pub type Handler = Arc<dyn Fn(Cx, Request) -> Pending + Send + Sync>;

/// What a row does to the world, and so who writes its audit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Reads,
    /// Changes stored objects: the entry is written inside the store's transaction.
    Stores(Audit),
    /// Changes something else: the dispatcher writes the entry with the outcome.
    Acts(Audit),
}

impl Effect {
    pub fn audit(self) -> Option<Audit> {
        match self {
            Effect::Reads => None,
            Effect::Stores(audit) | Effect::Acts(audit) => Some(audit),
        }
    }
}

/// What an audit entry says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// `create_routing_policy`
    pub action: &'static str,
    /// `routing_policy`
    pub resource_type: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    Text,
    Integer,
    Boolean,
}

/// A query parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Placeholder,
    pub doc: &'static str,
}

/// How the row is answered.
#[derive(Clone)]
pub enum Work {
    Handler(Handler),
    /// Not built: 501 with what it needs.
    Unsupported {
        needs: &'static str,
    },
}

/// One method on one path.
#[derive(Clone)]
pub struct Row {
    /// One of the areas of the contract.
    pub area: &'static str,
    pub method: Method,
    /// Below `/api/v1`, unless `outside`.
    pub path: &'static str,
    /// The path is not below the API root.
    pub outside: bool,
    /// Unique name; for mutations usually also the audit action.
    pub operation: String,
    pub access: Access,
    pub effect: Effect,
    pub summary: &'static str,
    pub doc: &'static str,
    pub parameters: Vec<Parameter>,
    /// The query may also name fields of the listed objects; the names come from the output schema.
    pub filters: bool,
    pub input: Option<SchemaFn>,
    /// A body is required.
    pub input_required: bool,
    /// A `text/plain` body is taken as this field of the input, the query as its other fields.
    pub text_field: Option<&'static str>,
    pub output: Option<SchemaFn>,
    /// The output is a list of that schema.
    pub list: bool,
    pub status: u16,
    /// Media type of an answer that is not the JSON envelope.
    pub media: Option<&'static str>,
    /// Answers with an `ETag` that `If-Match` takes.
    pub tagged: bool,
    /// Answers even while the store cannot be used.
    pub always: bool,
    pub work: Work,
}

impl Row {
    /// The whole path, as a client writes it.
    pub fn full_path(&self) -> String {
        if self.outside { self.path.to_owned() } else { format!("{API_ROOT}{}", self.path) }
    }

    pub fn needs(&self) -> Option<&'static str> {
        match &self.work {
            Work::Handler(_) => None,
            Work::Unsupported { needs } => Some(needs),
        }
    }

    pub fn summary(&mut self, text: &'static str) -> &mut Self {
        self.summary = text;
        self
    }

    pub fn doc(&mut self, text: &'static str) -> &mut Self {
        self.doc = text;
        self
    }

    pub fn access(&mut self, access: Access) -> &mut Self {
        self.access = access;
        self
    }

    pub fn parameter(&mut self, name: &'static str, kind: Placeholder, doc: &'static str) -> &mut Self {
        self.parameters.push(Parameter { name, kind, doc });
        self
    }

    pub fn status(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self
    }

    pub fn accepts_text(&mut self, field: &'static str) -> &mut Self {
        self.text_field = Some(field);
        self
    }

    /// Answers while the store cannot be read.
    pub fn always(&mut self) -> &mut Self {
        self.always = true;
        self
    }

    /// The path is not below the API root.
    pub fn outside(&mut self) -> &mut Self {
        self.outside = true;
        self
    }

    pub fn tagged(&mut self) -> &mut Self {
        self.tagged = true;
        self
    }
}

/// The root of all rows that are not `outside`.
pub const API_ROOT: &str = "/api/v1";

/// All rows.
#[derive(Clone, Default)]
pub struct Table {
    rows: Vec<Row>,
    area: &'static str,
}

impl Table {
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Runs the declarations of one area.
    pub fn area(&mut self, name: &'static str, declare: fn(&mut Table)) {
        self.area = name;
        declare(self);
    }

    /// A GET of something that is computed or observed.
    pub fn view<O, F, Fut>(&mut self, path: &'static str, operation: &str, run: F) -> &mut Row
    where
        O: Answer + 'static,
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let row = self.row(Method::Get, path, operation, Effect::Reads, Access::Read);
        row.output = Some(O::schema);
        row.work = Work::Handler(without_input(run));
        row
    }

    /// A POST that changes nothing.
    pub fn question<I, O, F, Fut>(&mut self, path: &'static str, operation: &str, run: F) -> &mut Row
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer + 'static,
        F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let row = self.row(Method::Post, path, operation, Effect::Reads, Access::Check);
        row.input = Some(schema_of::<I>);
        row.output = Some(O::schema);
        row.work = Work::Handler(with_input(run));
        row
    }

    /// A POST that changes something and takes a body.
    pub fn action<I, O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        run: F,
    ) -> &mut Row
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Answer + 'static,
        F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let row = self.row(Method::Post, path, operation, effect, Access::Operate);
        row.input = Some(schema_of::<I>);
        row.output = Some(O::schema);
        row.work = Work::Handler(with_input(run));
        row
    }

    /// A POST that takes no body; one that is sent is ignored.
    pub fn command<O, F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        effect: Effect,
        run: F,
    ) -> &mut Row
    where
        O: Answer + 'static,
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let row = self.row(Method::Post, path, operation, effect, Access::Operate);
        row.output = Some(O::schema);
        row.work = Work::Handler(without_input(run));
        row
    }

    /// A GET and a PUT of one object, the same shape both ways.
    pub fn singleton<T, G, GFut, P, PFut>(
        &mut self,
        path: &'static str,
        noun: &'static str,
        audit: Audit,
        get: G,
        put: P,
    ) where
        T: DeserializeOwned + serde::Serialize + JsonSchema + Send + 'static,
        G: Fn(Cx, Req<()>) -> GFut + Send + Sync + 'static,
        GFut: Future<Output = Result<crate::reply::With<T>, ApiError>> + Send + 'static,
        P: Fn(Cx, Req<T>) -> PFut + Send + Sync + 'static,
        PFut: Future<Output = Result<crate::reply::With<T>, ApiError>> + Send + 'static,
    {
        self.view(path, &format!("get_{noun}"), get).tagged();
        let row =
            self.row(Method::Put, path, &format!("replace_{noun}"), Effect::Stores(audit), Access::Operate);
        row.input = Some(schema_of::<T>);
        row.input_required = true;
        row.output = Some(schema_of::<T>);
        row.tagged = true;
        row.work = Work::Handler(with_input(put));
    }

    /// A GET that goes on.
    pub fn stream<F, Fut>(
        &mut self,
        path: &'static str,
        operation: &str,
        media: &'static str,
        run: F,
    ) -> &mut Row
    where
        F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<axum::body::Body, ApiError>> + Send + 'static,
    {
        let row = self.row(Method::Get, path, operation, Effect::Reads, Access::Read);
        row.media = Some(media);
        let run = Arc::new(run);
        row.work = Work::Handler(Arc::new(move |cx, request| {
            let run = run.clone();
            Box::pin(async move {
                let body = run(cx, bare(request)).await?;
                Ok(Reply::content(Content::Stream { content_type: media, body }))
            })
        }));
        row
    }

    /// A GET of a fixed text in a form of its own; answers at any time.
    pub fn document(
        &mut self,
        path: &'static str,
        operation: &str,
        media: &'static str,
        run: impl Fn(&Cx) -> Reply + Send + Sync + 'static,
    ) -> &mut Row {
        let row = self.row(Method::Get, path, operation, Effect::Reads, Access::Open);
        row.media = Some(media);
        row.always = true;
        row.work = Work::Handler(Arc::new(move |cx, _| {
            let reply = run(&cx);
            Box::pin(async move { Ok(reply) })
        }));
        row
    }

    /// Rows of the contract that are not built: `GET /path` per line.
    pub fn unsupported(&mut self, needs: &'static str, rows: &[(Method, &'static str)]) {
        for (method, path) in rows {
            let operation = operation_name(*method, path);
            let row = self.row(*method, path, &operation, Effect::Reads, Access::Read);
            if *method != Method::Get {
                row.access = Access::Operate;
            }
            row.summary = "Not supported by this version";
            row.work = Work::Unsupported { needs };
        }
    }

    /// The same for paths that are not below the API root.
    pub fn unsupported_outside(&mut self, needs: &'static str, rows: &[(Method, &'static str)]) {
        let first = self.rows.len();
        self.unsupported(needs, rows);
        self.rows[first..].iter_mut().for_each(|row| row.outside = true);
    }

    /// A path that does the same as another row of that method, in the API for compatibility.
    pub fn alias(&mut self, method: Method, path: &'static str, of: &'static str, operation: &str) {
        let position = self.rows.iter().position(|row| row.method == method && row.path == of);
        // An alias of nothing shows at once as a missing row in the contract test.
        if let Some(position) = position {
            let mut row = self.rows[position].clone();
            row.path = path;
            row.operation = operation.to_owned();
            self.rows.push(row);
        }
    }

    fn row(
        &mut self,
        method: Method,
        path: &'static str,
        operation: &str,
        effect: Effect,
        access: Access,
    ) -> &mut Row {
        let position = self.rows.len();
        self.rows.push(Row {
            area: self.area,
            method,
            path,
            outside: false,
            operation: operation.to_owned(),
            access,
            effect,
            summary: "",
            doc: "",
            parameters: Vec::new(),
            filters: false,
            input: None,
            input_required: false,
            text_field: None,
            output: None,
            list: false,
            status: 200,
            media: None,
            tagged: false,
            always: false,
            work: Work::Unsupported { needs: "a handler" },
        });
        &mut self.rows[position]
    }
}

/// `GET /dns/cache/{id}` to `get_dns_cache_by_id`.
fn operation_name(method: Method, path: &str) -> String {
    let mut name = method.as_str().to_ascii_lowercase();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        name.push('_');
        match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(parameter) => {
                name.push_str("by_");
                name.push_str(parameter);
            }
            None => name.push_str(&segment.replace(['-', '.'], "_")),
        }
    }
    name
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn bare(request: Request) -> Req<()> {
    Req { input: (), params: request.params, query: request.query, if_match: request.if_match }
}

fn without_input<O, F, Fut>(run: F) -> Handler
where
    O: Answer + 'static,
    F: Fn(Cx, Req<()>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |cx, request| {
        let run = run.clone();
        Box::pin(async move { run(cx, bare(request)).await?.reply() })
    })
}

fn with_input<I, O, F, Fut>(run: F) -> Handler
where
    I: DeserializeOwned + Send + 'static,
    O: Answer + 'static,
    F: Fn(Cx, Req<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ApiError>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |cx, request| {
        let run = run.clone();
        Box::pin(async move {
            let value = match request.body {
                Body::Json(value) => value,
                Body::Absent | Body::Text(_) => serde_json::json!({}),
            };
            let (input, warnings) = decode::<I>(value)?;
            let request =
                Req { input, params: request.params, query: request.query, if_match: request.if_match };
            let mut reply = run(cx, request).await?.reply()?;
            reply.warnings.splice(0..0, warnings);
            Ok(reply)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_names_of_unbuilt_rows_follow_their_path() {
        assert_eq!(operation_name(Method::Get, "/dns/threat-feeds"), "get_dns_threat_feeds");
        assert_eq!(operation_name(Method::Delete, "/nodes/{id}"), "delete_nodes_by_id");
    }
}
