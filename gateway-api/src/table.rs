//! The API as data: one [`Endpoint`] per method and path, and the builders that make endpoints.
//!
//! The router, the OpenAPI document, the authorisation check and the tests all read this table. It contains no logic of
//! any operation; `endpoints` does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::query::names;
use crate::query::parameters::DryRun;
use crate::reply::Reply;
use crate::request::Request;

mod build;
pub(crate) mod collection;
mod group;
mod route;
mod schema;
mod store_handler;
mod warned;

pub use crate::effect::{Audit, Effect};
pub use collection::{Collection, Live, Ops, output_schema};
/// HEAD is handled as GET; OPTIONS follows from the set of endpoints.
pub use gateway_model::method::Method;
pub use group::expect;
pub use route::{MatchedPath, Routes, placeholders};
pub use schema::SchemaSource;

pub type Pending = Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send>>;
pub type Handler = Arc<dyn Fn(Cx, Request) -> Pending + Send + Sync>;

/// Query parameters of an endpoint, as the fields of a type.
#[derive(Clone, Copy)]
pub struct QuerySource {
    pub names: &'static [&'static str],
    pub schema: SchemaSource,
}

/// Implementation of an endpoint.
#[derive(Clone)]
pub enum Work {
    Handler(Handler),
    /// Not implemented: responds with 501 and the missing requirement.
    Unsupported {
        needs: &'static str,
    },
}

/// An endpoint: one method on one path.
#[derive(Clone)]
pub struct Endpoint {
    /// Section of the interface specification.
    pub area: &'static str,
    pub method: Method,
    /// Path below `/api/v1`, unless `outside`.
    pub path: &'static str,
    /// If true, the path is not below the API root.
    pub outside: bool,
    /// If true, the last placeholder takes the rest of the path, with its slashes. Such an endpoint answers only paths
    /// whose first segment after the shared part begins no other path.
    pub tail: bool,
    /// Unique operation id. For mutations it is usually also the audit action.
    pub operation: String,
    pub access: Access,
    pub effect: Effect,
    pub summary: &'static str,
    pub doc: &'static str,
    pub queries: Vec<QuerySource>,
    /// If true, the endpoint answers with a file of the dashboard. It ignores the query, which a script of the page reads.
    pub page: bool,
    /// Response headers that only this endpoint has, with their meaning.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The query may also name fields of the listed objects. The names come from the output schema.
    pub filters: bool,
    pub input: Option<SchemaSource>,
    /// If true, a body is required.
    pub input_required: bool,
    /// Input field that a `text/plain` body is stored in. The query provides the other fields.
    pub text_field: Option<&'static str>,
    /// If true, a body of any other media type is read as bytes. The passphrase that decrypts it comes in a header.
    pub binary: bool,
    /// If true, the body may be large: it is written to a file while it arrives, and the handler reads it from there.
    pub spooled: bool,
    pub output: Option<SchemaSource>,
    /// If true, the output is a list of that schema.
    pub list: bool,
    pub status: u16,
    /// Status of a success that changes nothing, if the endpoint can be asked for one.
    pub dry_run_status: Option<u16>,
    /// Error codes that only the handler knows.
    pub answers: Vec<Code>,
    /// Media type of a response outside the JSON envelope.
    pub media: Option<&'static str>,
    /// Responses have an `ETag` that `If-Match` accepts.
    pub tagged: bool,
    /// Responses may be large or costly, so only a few are computed concurrently. Lists are always heavy.
    pub heavy: bool,
    /// If true, the endpoint works even while the store cannot be used.
    pub always: bool,
    pub work: Work,
}

impl Endpoint {
    /// Returns the full path, as a client sends it.
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

    /// Declares the query parameters of a type, which the handler reads by [`crate::request::Query::read`].
    pub fn query<Q: DeserializeOwned + JsonSchema>(&mut self) -> &mut Self {
        let schema = SchemaSource::new(|generator| Q::json_schema(generator));
        self.queries.push(QuerySource { names: names::<Q>(), schema });
        self
    }

    /// Returns the names of the query parameters, without those that name fields of the listed objects.
    pub fn parameter_names(&self) -> impl Iterator<Item = &'static str> {
        self.queries.iter().flat_map(|query| query.names.iter().copied())
    }

    /// Declares the parameter of a dry run, which responds with 200.
    pub fn with_dry_run(&mut self) -> &mut Self {
        self.dry_run_status = Some(200);
        self.query::<DryRun>()
    }

    /// Declares a response header that only this endpoint has.
    pub fn header(&mut self, name: &'static str, doc: &'static str) -> &mut Self {
        self.headers.push((name, doc));
        self
    }

    pub fn status(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self
    }

    /// Declares error codes that do not follow from the properties of the endpoint.
    pub fn answers(&mut self, codes: &[Code]) -> &mut Self {
        self.answers.extend(codes);
        self
    }

    pub fn accepts_text(&mut self, field: &'static str) -> &mut Self {
        self.text_field = Some(field);
        self
    }

    /// Limits how many responses are computed concurrently.
    pub fn heavy(&mut self) -> &mut Self {
        self.heavy = true;
        self
    }

    /// Allows the endpoint while the store cannot be used.
    pub fn always(&mut self) -> &mut Self {
        self.always = true;
        self
    }

    /// Declares a path that is not below the API root.
    pub fn outside(&mut self) -> &mut Self {
        self.outside = true;
        self
    }

    /// Lets the last placeholder take the rest of the path.
    pub fn tail(&mut self) -> &mut Self {
        self.tail = true;
        self
    }

    pub fn tagged(&mut self) -> &mut Self {
        self.tagged = true;
        self
    }
}

/// Root path of all endpoints that are not `outside`.
pub const API_ROOT: &str = "/api/v1";

/// Returns the error for a path that leads nowhere.
pub fn no_endpoint(path: &str) -> ApiError {
    ApiError::new(Code::RouteNotFound, format!("There is no endpoint at {path}."))
        .detail("path", path)
        .detail("documentation", format!("{API_ROOT}/openapi.json"))
}

/// Table of all endpoints.
#[derive(Clone, Default)]
pub struct Table {
    endpoints: Vec<Endpoint>,
    area: &'static str,
}

impl Table {
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Runs the declarations of one section.
    pub fn area(&mut self, name: &'static str, declare: fn(&mut Table)) {
        self.area = name;
        declare(self);
    }
}
