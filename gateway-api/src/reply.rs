//! Reply of a handler, before it becomes an HTTP response.

use gateway_model::Warning;
use http::{HeaderValue, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use crate::dispatch::conditional;
use crate::error::ApiError;

/// Successful reply.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub content: Content,
    pub warnings: Vec<Warning>,
    /// Entity tag, without its quotes.
    pub etag: Option<String>,
    /// The entity tag includes a digest of the body, which can change without the revision.
    pub observed: bool,
    /// Value of `X-Total-Count`.
    pub total: Option<usize>,
    /// Value of `Location`, as a path below the API root.
    pub location: Option<String>,
    /// Object of an action, for the audit entry, if the path does not name it.
    pub subject: Option<String>,
    /// Value of `Set-Cookie`.
    pub cookie: Option<HeaderValue>,
    /// Further headers, by lower-case name.
    pub headers: Vec<(&'static str, String)>,
}

/// Beginning of the JSON body of every successful response. The data follows, then the warnings if there are any.
const ENVELOPE: &[u8] = br#"{"data":"#;

#[derive(Debug)]
pub enum Content {
    /// Data, sent as `{"data": ..}`.
    Data(Value),
    /// The same as JSON text, behind the beginning of the body ([`Reply::text_of_data`]).
    Text(Vec<u8>),
    /// Complete JSON body, including the envelope, with the digest of the data.
    Json { bytes: bytes::Bytes, digest: String },
    /// Body that is sent unmodified.
    Bytes { content_type: &'static str, bytes: bytes::Bytes },
    /// The OpenAPI document, sent in the coding that the client prefers.
    OpenApi,
    /// File of the dashboard, sent in the coding that the client prefers.
    File(&'static crate::pages::file::File),
    /// Streamed body.
    Stream { content_type: &'static str, body: axum::body::Body },
}

impl Reply {
    pub fn data(value: Value) -> Self {
        Self::content(Content::Data(value))
    }

    pub fn content(content: Content) -> Self {
        Self {
            status: StatusCode::OK,
            content,
            warnings: Vec::new(),
            etag: None,
            observed: false,
            total: None,
            location: None,
            subject: None,
            cookie: None,
            headers: Vec::new(),
        }
    }

    /// Returns the beginning of a JSON body, for the text of its data.
    pub fn text_of_data() -> Vec<u8> {
        let mut text = Vec::with_capacity(1024);
        text.extend_from_slice(ENVELOPE);
        text
    }

    /// Returns the beginning of a JSON body with its data.
    pub fn text_with(data: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = Self::text_of_data();
        serde_json::to_writer(&mut text, data)?;
        Ok(text)
    }

    /// Completes a JSON body. Returns it with the digest of its data. The warnings belong to the request and not to the
    /// object, so the digest excludes them.
    pub fn seal(mut text: Vec<u8>, warnings: &[Warning]) -> Result<(Vec<u8>, String), serde_json::Error> {
        let digest = conditional::digest(&text);
        if !warnings.is_empty() {
            text.extend_from_slice(br#","warnings":"#);
            serde_json::to_writer(&mut text, warnings)?;
        }
        text.push(b'}');
        Ok((text, digest))
    }
}

/// Return value of a handler: any serialisable value, or one with headers ([`WithHeaders`]).
pub trait Answer {
    fn schema(generator: &mut SchemaGenerator) -> Schema;
    fn reply(self) -> Result<Reply, ApiError>;
}

impl<O: Serialize + JsonSchema> Answer for O {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<O>()
    }

    fn reply(self) -> Result<Reply, ApiError> {
        let text = Reply::text_with(&self).map_err(|error| ApiError::internal(&error))?;
        Ok(Reply::content(Content::Text(text)))
    }
}

/// A value with headers and other properties of the response.
#[derive(Debug)]
pub(crate) struct WithHeaders<O> {
    pub data: O,
    pub status: StatusCode,
    pub warnings: Vec<Warning>,
    pub etag: Option<String>,
    pub total: Option<usize>,
    pub location: Option<String>,
    pub subject: Option<String>,
    /// Value of `Set-Cookie`.
    pub cookie: Option<HeaderValue>,
    /// Further headers, by lower-case name.
    pub headers: Vec<(&'static str, String)>,
}

impl<O> WithHeaders<O> {
    pub(crate) fn new(data: O) -> Self {
        Self {
            data,
            status: StatusCode::OK,
            warnings: Vec::new(),
            etag: None,
            total: None,
            location: None,
            subject: None,
            cookie: None,
            headers: Vec::new(),
        }
    }
}

impl<T> WithHeaders<Vec<T>> {
    /// Returns a complete list with its length in `X-Total-Count`.
    pub(crate) fn counted(list: Vec<T>) -> Self {
        let total = Some(list.len());
        Self { total, ..Self::new(list) }
    }
}

impl<O: Serialize + JsonSchema> Answer for WithHeaders<O> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<O>()
    }

    fn reply(self) -> Result<Reply, ApiError> {
        let mut reply = self.data.reply()?;
        reply.status = self.status;
        reply.warnings = self.warnings;
        reply.etag = self.etag;
        reply.total = self.total;
        reply.location = self.location;
        reply.subject = self.subject;
        reply.cookie = self.cookie;
        reply.headers = self.headers;
        Ok(reply)
    }
}
