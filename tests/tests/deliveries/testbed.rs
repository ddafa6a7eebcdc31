//! A gateway without a kernel whose alerts a test makes, and its API calls.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use gateway_api::context::{Api, Settings};
use gateway_api::gateway::{Gateway, Open};
use gateway_api::{dispatch, endpoints};
use gateway_ctl::services::deliveries::Deliveries;
use gateway_ctl::services::mqtt_states::MqttStates;
use gateway_tests::wait::{wait_for, wait_ok};
use gateway_tests::webhook_receiver::{Recorded, WebhookReceiver};
use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::SOON;
use super::source::Scripted;

/// Interval at which active alerts are sent again, shorter than in production.
const RESEND_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Testbed {
    pub source: Arc<Scripted>,
    api: Arc<Api>,
    folder: TempDir,
    runtime: Runtime,
}

impl Testbed {
    pub(super) fn new() -> Testbed {
        Self::over(tempfile::tempdir().expect("a folder"), Arc::default())
    }

    fn over(folder: TempDir, source: Arc<Scripted>) -> Testbed {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let entered = runtime.enter();
        let mut gateway = Gateway::detached(folder.path()).expect("a store");
        if let Gateway::Open(open) = &mut gateway {
            open.deliveries = Deliveries::with_resend_interval(
                open.store.clone(),
                open.worlds.clone(),
                &open.tls.factory,
                open.endpoint_names.clone(),
                source.clone(),
                RESEND_INTERVAL,
            );
            open.mqtt_states = MqttStates::new(
                open.store.clone(),
                open.worlds.clone(),
                open.handles.clone(),
                &open.tls.factory,
                open.endpoint_names.clone(),
                source.clone(),
            );
            open.services.start_all([open.deliveries.service(), open.mqtt_states.service()]);
        }
        let api = Api::new(endpoints::table(), gateway, Settings::default()).expect("a table");
        drop(entered);
        Testbed { source, api, folder, runtime }
    }

    /// Ends the gateway and starts it again over the same store. The alerts stay.
    pub(super) fn restart(self) -> Testbed {
        self.restart_after(|_| {})
    }

    /// Like [`Testbed::restart`], with something that happens between the two runs.
    pub(super) fn restart_after(self, between: impl FnOnce(&Scripted)) -> Testbed {
        let Testbed { source, api, folder, runtime } = self;
        runtime.block_on(async { api.open().expect("open").services.end().await });
        drop(api);
        // Ends the tasks that still hold the store.
        runtime.shutdown_timeout(SOON);
        between(&source);
        Self::over(folder, source)
    }

    pub(super) fn open(&self) -> &Open {
        self.api.open().expect("open")
    }

    pub(super) fn now(&self) -> Timestamp {
        self.open().now()
    }

    pub(super) fn raise(&self, subject: &str) {
        self.source.raise(subject, self.now());
    }

    pub(super) fn resolve(&self, subject: &str) {
        self.source.resolve(subject, self.now());
    }

    /// Sends a request. Returns its status and body.
    pub(super) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        let request = request.header("host", "127.0.0.1").header("content-type", "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body).expect("a request");
        self.runtime.block_on(async {
            let response = dispatch::answer(self.api.clone(), request, None).await;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await.expect("a body").to_bytes();
            (status, serde_json::from_slice(&bytes).expect("JSON"))
        })
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let (status, body) = self.send("GET", path, None);
        assert_eq!(status, 200, "{body}");
        body["data"].clone()
    }

    /// Sets the default webhook. `more` are further fields.
    pub(super) fn configure(&self, url: &str, more: Value) {
        let mut config = json!({"enabled": true, "url": url, "allow_private": true});
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let (status, body) = self.send("PUT", "/alerts/webhook", Some(&config));
        assert_eq!(status, 200, "{body}");
    }

    /// Sends a test message. Returns its result.
    pub(super) fn test_webhook(&self) -> Value {
        let (status, body) = self.send("POST", "/alerts/webhook/test", None);
        assert_eq!(status, 200, "{body}");
        body["data"].clone()
    }

    /// Publishes a test at the MQTT broker, and returns the result.
    pub(super) fn test_broker(&self) -> Value {
        let (status, body) = self.send("POST", "/alerts/mqtt/test", None);
        assert_eq!(status, 200, "{body}");
        body["data"].clone()
    }

    /// Returns the entry of a subsystem in `/observer`, after a check now.
    pub(super) fn observed(&self, subsystem: &str) -> Option<Value> {
        self.runtime.block_on(self.open().check());
        let all = self.get("/observer");
        all.as_array().into_iter().flatten().find(|entry| entry["subsystem"] == subsystem).cloned()
    }

    /// Returns the value of a metric without labels.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let request = Request::get("/metrics").header("host", "127.0.0.1").body(Body::empty());
        let text = self.runtime.block_on(async {
            let response = dispatch::answer(self.api.clone(), request.expect("a request"), None).await;
            response.into_body().collect().await.expect("a body").to_bytes()
        });
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }
}

/// Waits until the receiver has got this number of requests, and returns them.
pub(super) fn received(receiver: &WebhookReceiver, count: usize) -> Vec<Recorded> {
    wait_ok(SOON, &format!("{count} deliveries"), || {
        let requests = receiver.requests();
        anyhow::ensure!(requests.len() == count, "{} requests: {requests:?}", requests.len());
        Ok(requests)
    })
    .expect("deliveries")
}

/// Waits until nothing waits for a receiver any more.
pub(super) fn idle(testbed: &Testbed) {
    wait_for(SOON, "an empty outbox", || {
        testbed.open().store.notification_outbox().is_ok_and(|outbox| outbox.is_empty())
    })
    .expect("an empty outbox");
}
