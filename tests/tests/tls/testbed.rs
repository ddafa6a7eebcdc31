//! A gateway without a kernel that serves its API on loopback.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_api::context::{Api, Settings};
use gateway_api::endpoints;
use gateway_api::gateway::Gateway;
use gateway_api::serve::{self, Limits, Serving};
use gateway_api::tls::Tls;
use gateway_ctl::clock::SystemClock;
use gateway_ctl::tls::{CertificateNames, Certificates, Origin, PqMode};
use gateway_tests::http::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::tls::peers::{self, hybrid};

pub(super) struct Testbed {
    pub api: Arc<Api>,
    pub address: SocketAddr,
    pub runtime: Runtime,
    pub stop: watch::Sender<bool>,
    pub serving: Option<Serving>,
    folder: tempfile::TempDir,
}

impl Testbed {
    /// Serves TLS with a self-signed certificate.
    pub(super) fn secure() -> Self {
        Self::with(Limits::default(), |folder| Some(Origin::SelfSigned { folder: folder.join("tls") }))
    }

    /// Serves TLS with certificates from `origin` if there are any, else plaintext.
    pub(super) fn with(limits: Limits, origin: impl FnOnce(&Path) -> Option<Origin>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let gateway = Gateway::detached(folder.path()).expect("a fresh store opens");
        let api = Api::new(endpoints::table(), gateway, Settings::default()).expect("no duplicates");
        let names = CertificateNames::new("gateway", []);
        let tls = api.open().expect("open").tls.clone();
        let server = origin(folder.path())
            .map(|origin| tls.serve(Certificates::open(origin, &names, SystemClock::shared())));
        let (stop, stopping) = watch::channel(false);
        let (address, serving) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            (address, serve::tcp(listener, api.clone(), server, limits, stopping))
        });
        Self { api, address, runtime, stop, serving: Some(serving), folder }
    }

    pub(super) fn tls(&self) -> &Arc<Tls> {
        &self.api.open().expect("open").tls
    }

    /// Returns the path of the self-signed certificate.
    pub(super) fn authority(&self) -> PathBuf {
        self.folder.path().join("tls/cert.pem")
    }

    pub(super) fn connect(&self) -> TcpStream {
        peers::connect(self.address)
    }

    /// Sends a request by a post-quantum client, which every mode serves.
    pub(super) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        peers::https(self.address, &hybrid(&self.authority()), method, path, body).expect("an answer")
    }

    /// Returns `data` of a successful response.
    pub(super) fn get(&self, path: &str) -> Value {
        let response = self.request("GET", path, None);
        assert_eq!(response.status, 200, "{path}");
        json_of(&response)["data"].clone()
    }

    /// Sets the mode through the API and returns the complete response.
    pub(super) fn set_mode(&self, mode: PqMode) -> Value {
        let response = self.request("PUT", "/pq-crypto", Some(&json!({"mode": mode})));
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        let answer = json_of(&response);
        assert_eq!(answer["data"]["mode"], json!(mode));
        answer
    }
}

pub(super) fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).expect("JSON")
}
