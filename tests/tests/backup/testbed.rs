//! A gateway without a kernel that makes backups, and its API calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use gateway_api::context::{Api, Settings};
use gateway_api::gateway::{Gateway, Open};
use gateway_api::{dispatch, endpoints};
use gateway_ctl::clock::{ManualClock, SharedClock};
use gateway_ctl::services::backup::{Service, Timeouts};
use gateway_ctl::services::encrypted_storage::EncryptedStorage;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) const PASSPHRASE: &str = "correct horse battery";

pub(super) struct Testbed {
    pub api: Arc<Api>,
    pub clock: Arc<ManualClock>,
    folder: TempDir,
}

/// A complete response.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    pub(super) fn data(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body["data"].clone()
    }

    /// Returns the message of an error with this status and code.
    pub(super) fn error(&self, status: u16, code: &str) -> String {
        assert_eq!((self.status, &self.body["error"]["code"]), (status, &json!(code)), "{}", self.body);
        self.body["error"]["message"].as_str().expect("a message").to_owned()
    }
}

impl Testbed {
    /// Creates a gateway whose backup is larger than one packet of any protocol.
    pub(super) async fn new() -> Testbed {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().expect("a time"));
        let testbed = Self::over(tempfile::tempdir().expect("a folder"), clock);
        let notes = "something worth keeping ".repeat(40);
        let devices: Vec<Value> =
            (0..200).map(|number| json!({"name": format!("device-{number}"), "notes": notes})).collect();
        let plan = json!({"mode": "merge", "resources": {"devices": devices}});
        let applied = testbed.send("POST", "/apply", Some(&plan)).await;
        assert_eq!(applied.status, 200, "{}", applied.body);
        testbed
    }

    fn over(folder: TempDir, clock: Arc<ManualClock>) -> Testbed {
        let shared: SharedClock = clock.clone();
        let mut gateway = Gateway::detached_at(folder.path(), shared).expect("a store");
        if let Gateway::Open(open) = &mut gateway {
            // Short timeouts for the tests.
            let timeout = Timeouts { step: Duration::from_secs(8), ..Timeouts::default() };
            open.backup = Service::with_timeouts(
                open.store.clone(),
                open.worlds.configuration().file().clone(),
                open.tls.factory.clone(),
                open.endpoint_names.clone(),
                open.handles.get::<EncryptedStorage>(),
                timeout,
            );
        }
        let api = Api::new(endpoints::table(), gateway, Settings::default()).expect("a table");
        Testbed { api, clock, folder }
    }

    /// Reopens the same store.
    pub(super) fn restart(self) -> Testbed {
        let Testbed { api, clock, folder } = self;
        drop(api);
        Self::over(folder, clock)
    }

    pub(super) fn open(&self) -> &Open {
        self.api.open().expect("open")
    }

    pub(super) async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request =
            Request::builder().method(method).uri(format!("/api/v1{path}")).header("host", "127.0.0.1");
        let request = match body {
            Some(body) => {
                request.header("content-type", "application/json").body(Body::from(body.to_string()))
            }
            None => request.body(Body::empty()),
        };
        self.raw(request.expect("a request")).await
    }

    async fn raw(&self, request: Request<Body>) -> Answer {
        let response = dispatch::answer(self.api.clone(), request, None).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        Answer { status, body: serde_json::from_slice(&bytes).expect("JSON") }
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.send("GET", path, None).await.data()
    }

    /// Sets the target. `more` are further keys of the configuration.
    pub(super) async fn configure(&self, target: &Value, more: Value) {
        let mut config = json!({"enabled": true, "passphrase": PASSPHRASE, "target": target});
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let answer = self.send("PUT", "/backup/config", Some(&config)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Requests a backup.
    pub(super) async fn run(&self) -> Answer {
        // File names contain the time.
        self.clock.advance(Duration::from_secs(1));
        self.send("POST", "/backup/run", None).await
    }

    /// Requests a backup, expects success and returns the name of the file.
    pub(super) async fn backup(&self) -> String {
        let run = self.run().await.data();
        assert_eq!((&run["result"], &run["warning"]), (&json!("ok"), &Value::Null), "{run}");
        run["name"].as_str().expect("a name").to_owned()
    }

    /// Imports a backup. Returns the number of devices afterwards.
    pub(super) async fn import(&self, file: &Path) -> usize {
        let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let request = Request::post("/api/v1/backup/import")
            .header("host", "127.0.0.1")
            .header("content-type", "application/octet-stream")
            .header("x-passphrase", PASSPHRASE)
            .body(Body::from(bytes))
            .expect("a request");
        let answer = self.raw(request).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        self.get("/devices").await.as_array().expect("a list").len()
    }
}

/// Returns an empty gateway.
pub(super) fn empty() -> Testbed {
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().expect("a time"));
    Testbed::over(tempfile::tempdir().expect("a folder"), clock)
}
