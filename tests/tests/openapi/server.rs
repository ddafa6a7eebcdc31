//! The API behind its real listener, over its own store and no kernel, with a count of its responses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::Request;
use gateway_api::context::{Api, Settings};
use gateway_api::gateway::Gateway;
use gateway_api::pages::{File, HTML, Pages};
use gateway_api::peer::Peer;
use gateway_api::serve::{RequestHandler, ResponseFuture};
use gateway_api::table::Method;
use gateway_api::{dispatch, endpoints, serve};
use gateway_core::state_machines::hosts::{Evidence, Observation};
use gateway_ctl::services::hosts::HostInventory;
use gateway_model::MacAddr;
use gateway_model::kinds::alert_rule::AlertKind;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Number of responses by operation and status.
pub(super) type StatusCounts = BTreeMap<String, BTreeMap<u16, usize>>;

pub(super) struct Server {
    runtime: Runtime,
    api: Arc<Api>,
    address: SocketAddr,
    seen: Arc<Mutex<StatusCounts>>,
    _stop: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

/// Names in the dashboard that [`seeds`](super::seeds) asks for.
pub(super) const ASSET: &str = "index-B1_x-9.css";
pub(super) const FILE: &str = "logo.svg";

static PAGES: &[File] = &[
    File::uncompressed("/docs.html", HTML, "d0c5", b"<!doctype html><title>Documentation</title>"),
    File::uncompressed("/index.html", HTML, "1de0", b"<!doctype html><title>Dashboard</title>"),
    File::uncompressed("/logo.svg", "image/svg+xml", "1090", b"<svg/>"),
    File::uncompressed("/assets/index-B1_x-9.css", "text/css; charset=utf-8", "a55e", b"p {}"),
];

impl Server {
    pub(super) fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = Runtime::new().expect("a runtime");
        let gateway = Gateway::detached(folder.path()).expect("a fresh store opens");
        // Independent of the build.
        let settings = Settings { pages: Pages(PAGES), ..Settings::default() };
        let api = Api::new(endpoints::table(), gateway, settings).expect("no duplicates");
        let seen = Arc::new(Mutex::new(StatusCounts::new()));
        let counting = Arc::new(Counting { api: api.clone(), seen: seen.clone() });
        let (stop, stopping) = watch::channel(false);
        let address = runtime.block_on(async {
            let listener =
                tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            drop(serve::tcp(listener, counting, None, serve::Limits::default(), stopping));
            address
        });
        Server { runtime, api, address, seen, _stop: stop, _folder: folder }
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn seen(&self) -> StatusCounts {
        self.seen.lock().expect("nobody panicked").clone()
    }

    /// Makes the gateway observe a host, and returns its id.
    pub(super) fn observe_host(&self, number: u8) -> String {
        let Gateway::Open(open) = &self.api.gateway else { panic!("the store is open") };
        let inventory = &open.handles.get::<HostInventory>();
        let mac = MacAddr([2, 0, 0, 0, 1, number]);
        let observation = Observation {
            interface: "lan0",
            mac,
            vlan: None,
            at: open.now(),
            evidence: Evidence::Traffic { address: [192, 168, 1, number].into() },
        };
        inventory.observe([observation].into_iter(), &BTreeSet::new());
        inventory.list().of(mac).next().expect("it was observed").id().to_string()
    }

    /// Raises an alert, and returns its id.
    pub(super) fn raise_alert(&self, number: u8) -> String {
        let Gateway::Open(open) = &self.api.gateway else { panic!("the store is open") };
        let subject = format!("wan{number}");
        open.active_alerts.raise(AlertKind::WanFailover, &subject, "it is offline".into());
        open.alerts.process();
        let alerts = open.alerts.open_alerts();
        alerts.iter().find(|alert| alert.subject == subject).expect("it was raised").id.to_string()
    }

    /// Raises an alert, mutes it, and returns its id.
    pub(super) fn muted_alert(&self, number: u8) -> String {
        let id = self.raise_alert(number);
        self.call("POST", &format!("/alerts/{id}/mute"), Some(&json!({"duration_sec": 3600})));
        id
    }

    /// Calls the API in process without counting. Returns `data` of the response, which must be a success.
    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("host", "localhost")
            .header("content-type", "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body).expect("a request");
        let bytes = self.runtime.block_on(async {
            let response = dispatch::answer(self.api.clone(), request, None).await;
            let status = response.status();
            let bytes = response.into_body().collect().await.expect("an end").to_bytes();
            assert!(status.is_success(), "{method} {path}: {}", String::from_utf8_lossy(&bytes));
            bytes
        });
        let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
        answer["data"].take()
    }
}

/// The API, with counts of its responses.
struct Counting {
    api: Arc<Api>,
    seen: Arc<Mutex<StatusCounts>>,
}

impl RequestHandler for Counting {
    fn handle(self: Arc<Self>, request: Request, peer: Peer) -> ResponseFuture {
        Box::pin(async move {
            let operation = operation(&self.api, &request);
            let response = dispatch::answer(self.api.clone(), request, Some(peer)).await;
            if let Some(operation) = operation {
                let mut seen = self.seen.lock().expect("no panic");
                *seen.entry(operation).or_default().entry(response.status().as_u16()).or_default() += 1;
            }
            response
        })
    }
}

fn operation(api: &Api, request: &Request) -> Option<String> {
    let found = api.routes.find(request.uri().path())?;
    let position = Method::find(request.method().as_str()).and_then(|method| found.endpoints.get(&method))?;
    Some(api.table.endpoints()[*position].operation.clone())
}
