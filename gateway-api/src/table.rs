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
mod exchange;
mod group;
mod route;
mod schema;
mod store_handler;
mod warned;

pub use crate::effect::{Audit, Effect};
pub use collection::{Collection, Live, Ops, output_schema};
pub use exchange::{Availability, Cost, Input, Location, Output, Versions};
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
    /// Path below the one of `location`.
    pub path: &'static str,
    pub location: Location,
    /// Unique operation id. For mutations it is usually also the audit action.
    pub operation: String,
    pub access: Access,
    pub effect: Effect,
    pub summary: &'static str,
    pub doc: &'static str,
    pub queries: Vec<QuerySource>,
    /// Response headers that only this endpoint has, with their meaning.
    pub headers: Vec<(&'static str, &'static str)>,
    pub input: Input,
    pub output: Output,
    pub status: u16,
    /// Status of a success that changes nothing, if the endpoint can be asked for one.
    pub dry_run_status: Option<u16>,
    /// Error codes that only the handler knows.
    pub answers: Vec<Code>,
    pub versions: Versions,
    pub cost: Cost,
    pub availability: Availability,
    pub work: Work,
}

impl Endpoint {
    /// Returns the full path, as a client sends it.
    pub fn full_path(&self) -> String {
        match self.location {
            Location::Api => format!("{API_ROOT}{}", self.path),
            Location::Root | Location::RestOfRoot => self.path.to_owned(),
        }
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

    /// Declares that the body may not be left out.
    pub fn requires_input(&mut self) -> &mut Self {
        self.input.require();
        self
    }

    pub fn accepts_text(&mut self, field: &'static str) -> &mut Self {
        self.input.accept_text(field);
        self
    }

    /// Limits how many responses are computed concurrently.
    pub fn heavy(&mut self) -> &mut Self {
        self.cost = Cost::Heavy;
        self
    }

    /// Allows the endpoint while the store cannot be used.
    pub fn always(&mut self) -> &mut Self {
        self.availability = Availability::Always;
        self
    }

    /// Declares a path that is not below the API root.
    pub fn outside(&mut self) -> &mut Self {
        self.location = Location::Root;
        self
    }

    /// Lets the last placeholder of a path outside of the API take the rest of the path.
    pub fn tail(&mut self) -> &mut Self {
        self.location = Location::RestOfRoot;
        self
    }

    pub fn tagged(&mut self) -> &mut Self {
        self.versions = Versions::Tagged;
        self
    }
}

/// Root path of the endpoints of [`Location::Api`].
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
