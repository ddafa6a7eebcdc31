//! The API as data: one [`Endpoint`] per method and path, and the builders that make endpoints.
//!
//! The router, the OpenAPI document, the authorisation check and the tests all read this table. It holds no logic of
//! any operation: that is in `areas`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::{Schema, SchemaGenerator};

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::Reply;
use crate::request::Request;

mod build;
pub mod collection;
mod group;
mod route;

pub use crate::effect::{Audit, Effect};
pub use collection::{Collection, Live, Ops, output_schema};
/// HEAD is answered as GET, OPTIONS from the set of endpoints.
pub use gateway_model::method::Method;
pub use group::expect;
pub use route::{Found, Routes, placeholders};

pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;
pub type Pending = Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send>>;
pub type Handler = Arc<dyn Fn(Cx, Request) -> Pending + Send + Sync>;

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

/// Implementation of the endpoint.
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
pub struct Endpoint {
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
    /// A body of any other media type is taken as bytes; the passphrase that opens it comes in a header.
    pub binary: bool,
    pub output: Option<SchemaFn>,
    /// The output is a list of that schema.
    pub list: bool,
    pub status: u16,
    /// Errors that only its handler knows of.
    pub answers: Vec<Code>,
    /// Media type of an answer that is not the JSON envelope.
    pub media: Option<&'static str>,
    /// Answers with an `ETag` that `If-Match` takes.
    pub tagged: bool,
    /// Its answer may be large or costly: only a few are computed at once. Lists are so, too.
    pub heavy: bool,
    /// Answers even while the store cannot be used.
    pub always: bool,
    pub work: Work,
}

impl Endpoint {
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

    /// DnsService errors that do not follow from what the row is.
    pub fn answers(&mut self, codes: &[Code]) -> &mut Self {
        self.answers.extend(codes);
        self
    }

    pub fn accepts_text(&mut self, field: &'static str) -> &mut Self {
        self.text_field = Some(field);
        self
    }

    /// Bounds how many answers are computed at once.
    pub fn heavy(&mut self) -> &mut Self {
        self.heavy = true;
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

/// The root of all endpoints that are not `outside`.
pub const API_ROOT: &str = "/api/v1";

/// All endpoints.
#[derive(Clone, Default)]
pub struct Table {
    endpoints: Vec<Endpoint>,
    area: &'static str,
}

impl Table {
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Runs the declarations of one area.
    pub fn area(&mut self, name: &'static str, declare: fn(&mut Table)) {
        self.area = name;
        declare(self);
    }
}
