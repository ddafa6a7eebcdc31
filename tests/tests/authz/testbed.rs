//! A gateway with authentication enabled, and its callers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use gateway_api::context::{Api, Settings};
use gateway_api::gateway::{Gateway, Open};
use gateway_api::peer::Peer;
use gateway_api::{auth, dispatch, endpoints};
use gateway_ctl::clock::ManualClock;
use gateway_ctl::store::{AuditEntry, AuditFilter, AuditTicket, Session};
use gateway_model::kinds::{ApiKey, User};
use gateway_model::settings::parse;
use gateway_model::{Role, Secret};
use gateway_tests::openapi_check::assert_documented;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::Value;

/// Address in the local network of the configuration.
pub(super) const LOCAL: &str = "10.1.2.3";
pub(super) const OUTSIDE: &str = "203.0.113.9";
pub(super) const PASSWORD: &str = "correct horse battery";

pub(super) struct Testbed {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub api: Arc<Api>,
}

/// Source address and headers of a caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// `socket`, or an address.
    pub from: String,
    pub tls: bool,
    pub headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Testbed {
    pub(super) fn new() -> Testbed {
        Testbed::with(true)
    }

    pub(super) fn with(enabled: bool) -> Testbed {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = ManualClock::at("2026-11-20T12:00:00Z".parse().expect("a time"));
        let api = start(&folder, &clock, enabled);
        Testbed { folder, clock, api }
    }

    /// Returns the same store and clock in a simulated new process.
    pub(super) fn restart(self) -> Testbed {
        let Testbed { folder, clock, api } = self;
        let enabled = api.auth.enabled;
        let waiting = Arc::downgrade(&api);
        drop(api);
        assert!(waiting.upgrade().is_none(), "somebody still holds the store");
        let api = start(&folder, &clock, enabled);
        Testbed { folder, clock, api }
    }

    pub(super) fn open(&self) -> &Open {
        self.api.open().expect("an open store")
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(super) async fn send(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let path =
            if path.starts_with("/api") || path == "/" { path.to_owned() } else { format!("/api/v1{path}") };
        self.send_to(caller, method, &path, body).await
    }

    /// Sends to an unmodified path.
    pub(super) async fn send_to(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !caller.headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", "192.0.2.1:8080");
        }
        for (name, value) in &caller.headers {
            request = request.header(name, value);
        }
        let body = match body {
            None => Body::empty(),
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
        };
        let request = request.body(body).expect("a request");
        let peer = match caller.from.as_str() {
            "socket" => Peer::Local,
            ip => Peer::Remote {
                address: SocketAddr::new(ip.parse().expect("an address"), 40_000),
                tls: caller.tls,
            },
        };
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = dispatch::answer(self.api.clone(), request, Some(peer)).await;
        let (parts, body) = response.into_parts();
        assert_documented(&self.api, &method, &path, parts.status.as_u16());
        let is_event_stream =
            parts.headers.get("content-type").is_some_and(|media| media == "text/event-stream");
        let endless = is_event_stream || (path.ends_with("/flows/stream") && parts.status == 200);
        let bytes =
            if endless { Default::default() } else { body.collect().await.expect("a body").to_bytes() };
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    /// Creates a user without the cost of a hash. Login as this user is not possible.
    pub(super) fn user(&self, name: &str, role: Role) -> gateway_model::Id {
        let user = User {
            username: name.into(),
            role,
            password_hash: Secret::new("$argon2id$none"),
            ..User::default()
        };
        let store = &self.open().store;
        let ticket = AuditTicket::system("create_user", "user");
        store.commit(ticket, |draft| draft.create(user)).expect("stored").0.meta.id
    }

    /// Returns a caller with a session of that user, as in a browser.
    pub(super) fn session(&self, user: gateway_model::Id) -> Caller {
        let store = &self.open().store;
        let session = Session::new(user, 0, store.clock().now(), None, None);
        let token = self.api.auth.signer.sign(&session).expect("signed");
        let csrf = session.csrf.clone();
        store.open_session(AuditTicket::system("login", "session"), session).expect("stored");
        Caller::from(OUTSIDE).with("cookie", &format!("gw_session={token}")).with("x-csrf-token", &csrf)
    }

    /// Returns a caller with an API key of that role.
    pub(super) fn key(&self, role: Role) -> Caller {
        let fresh = auth::api_key::generate().expect("a key");
        let row = ApiKey {
            name: fresh.prefix.clone(),
            prefix: fresh.prefix.clone(),
            key_hash: fresh.hash.clone(),
            role,
            ..ApiKey::default()
        };
        let ticket = AuditTicket::system("create_api_key", "api_key");
        self.open().store.commit(ticket, |draft| draft.create(row)).expect("stored");
        Caller::from(OUTSIDE).with("authorization", &format!("Bearer {}", fresh.text.expose()))
    }

    /// Returns the number of audit entries and the newest one.
    pub(super) fn audit(&self) -> (u64, Option<AuditEntry>) {
        let (page, total) = self.open().store.audit(1, None, &AuditFilter::default()).expect("read");
        (total, page.into_iter().next())
    }

    pub(super) fn last_audit(&self) -> AuditEntry {
        self.audit().1.expect("an entry")
    }

    /// Logs in through the API.
    pub(super) async fn login(&self, caller: &Caller, name: &str, password: &str) -> Answer {
        let body = serde_json::json!({"username": name, "password": password});
        self.send(caller, "POST", "/auth/login", Some(body)).await
    }
}

fn start(folder: &tempfile::TempDir, clock: &Arc<ManualClock>, enabled: bool) -> Arc<Api> {
    let file = parse("listen: { host_names: [gateway.lan] }").expect("valid");
    let gateway = Gateway::detached_with(folder.path(), clock.clone(), file).expect("the store opens");
    let settings = Settings {
        auth: auth::Settings {
            enabled,
            local_net: "10.0.0.0/8".parse().expect("a network"),
            api_keys: Vec::new(),
            setup_folder: Some(folder.path().to_owned()),
        },
        ..Settings::default()
    };
    Api::new(endpoints::table(), gateway, settings).expect("the table has no duplicates")
}

impl Caller {
    pub(super) fn from(from: &str) -> Caller {
        Caller { from: from.to_owned(), ..Caller::default() }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Caller {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn without(mut self, name: &str) -> Caller {
        self.headers.retain(|(known, _)| known != name);
        self
    }
}

impl Answer {
    pub(super) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    pub(super) fn is(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
    }

    pub(super) fn data(&self) -> &Value {
        assert!(self.status < 300, "{} {}", self.status, self.body);
        &self.body["data"]
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the browser that received this login response.
    pub(super) fn browser(&self, from: &str) -> Caller {
        let cookie = self.header("set-cookie").split(';').next().unwrap_or_default();
        Caller::from(from)
            .with("cookie", cookie)
            .with("x-csrf-token", self.data()["csrf_token"].as_str().unwrap_or_default())
    }
}
