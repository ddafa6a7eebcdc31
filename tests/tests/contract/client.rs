//! A client that calls the API in process: no socket, no root, a store in a temporary folder and no kernel.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use gateway_api::context::{Api, Settings};
use gateway_api::gateway::Gateway;
use gateway_api::table::Table;
use gateway_api::{dispatch, endpoints};
use gateway_tests::openapi_check::assert_documented;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::contract::pages;

/// The API over a fresh store.
pub(crate) struct Client {
    pub api: Arc<Api>,
    _folder: tempfile::TempDir,
    outside: OnceLock<tempfile::TempDir>,
}

/// Settings with a dashboard that does not depend on the build.
pub(crate) fn settings() -> Settings {
    Settings { pages: pages::fixture(), ..Settings::default() }
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Client {
    pub(crate) fn new() -> Client {
        Client::with(endpoints::table(), settings())
    }

    pub(crate) fn with(table: Table, settings: Settings) -> Client {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let gateway = Gateway::detached(folder.path()).expect("a fresh store opens");
        let api = Api::new(table, gateway, settings).expect("the table has no duplicates");
        Client { api, _folder: folder, outside: OnceLock::new() }
    }

    /// Returns the API of any gateway whose store is in the folder.
    pub(crate) fn over(gateway: Gateway, settings: Settings, folder: tempfile::TempDir) -> Client {
        let api = Api::new(endpoints::table(), gateway, settings).expect("the table has no duplicates");
        Client { api, _folder: folder, outside: OnceLock::new() }
    }

    /// Returns a folder outside the gateway's own ones. It is removed with the client.
    pub(crate) fn outside(&self) -> &Path {
        self.outside.get_or_init(|| tempfile::tempdir().expect("a temporary folder")).path()
    }

    /// Returns the API of a daemon that could not open its store.
    pub(crate) fn blocked(reason: &str) -> Client {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let gateway =
            Gateway::Blocked { reason: reason.to_owned(), cause: "store_unusable", file: Default::default() };
        let api = Api::new(endpoints::table(), gateway, settings()).expect("the table has no duplicates");
        Client { api, _folder: folder, outside: OnceLock::new() }
    }

    /// Sends a request below the API root. A body is sent as JSON.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", "127.0.0.1:8080");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            None => Body::empty(),
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
        };
        self.raw(request.body(body).expect("a well-formed request")).await
    }

    /// Sends any request.
    pub(crate) async fn raw(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = dispatch::answer(self.api.clone(), request, None).await;
        let (parts, body) = response.into_parts();
        assert_documented(&self.api, &method, &path, parts.status.as_u16());
        let bytes = body.collect().await.expect("the body of an answer ends").to_bytes();
        let is_binary = parts.headers.contains_key("content-encoding")
            || parts.headers.get("content-type").is_some_and(|media| media == "application/octet-stream");
        let text = match is_binary {
            true => String::from_utf8_lossy(&bytes).into_owned(),
            false => String::from_utf8(bytes.to_vec()).expect("answers are UTF-8"),
        };
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body), &[]).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body), &[]).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, &[]).await
    }

    /// Creates an object and returns it from the response.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status, 201, "POST {path}: {}", answer.text);
        answer.data()
    }

    /// Returns the number of audit entries.
    pub(crate) async fn audit_count(&self) -> usize {
        let answer = self.get("/audit?limit=1").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.header("x-total-count").parse().expect("a count")
    }

    /// Returns the newest audit entry.
    pub(crate) async fn last_audit(&self) -> Value {
        self.get("/audit?limit=1").await.data()[0].clone()
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("not JSON ({error}): {:?}", self.text))
    }

    pub(crate) fn data(&self) -> Value {
        let body = self.json();
        assert!(body.get("data").is_some(), "no data: {body}");
        body["data"].clone()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no header {name} in {:?}", self.headers))
            .to_str()
            .expect("text")
    }

    /// Asserts that the response is an error in the envelope, and returns its details.
    pub(crate) fn error(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/json");
        let body = self.json();
        let error = &body["error"];
        assert_eq!(error["code"], code, "{body}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "no message: {body}");
        assert_eq!(error["details"]["request_id"], self.header("x-request-id"), "{body}");
        assert!(body.get("data").is_none(), "{body}");
        error["details"].clone()
    }
}
