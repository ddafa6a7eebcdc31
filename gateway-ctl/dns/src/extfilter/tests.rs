//! Tests against a fake of the API of Pi-hole 6, over real HTTP.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use gateway_outbound::Resolver;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::upstream::Event;

const PASSWORD: &str = "correct horse battery";

/// Behaviour and state of the fake.
#[derive(Default)]
struct FakeState {
    sessions: BTreeSet<String>,
    made: usize,
    logins: usize,
    requests: Vec<String>,
    seats: usize,
    open: bool,
    second_factor: bool,
    disabled: bool,
}

struct FakeBackend {
    at: SocketAddr,
    house: Arc<Mutex<FakeState>>,
    task: JoinHandle<()>,
}

impl Drop for FakeBackend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeBackend {
    async fn new(house: FakeState) -> FakeBackend {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let house = Arc::new(Mutex::new(house));
        let inside = house.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let house = inside.clone();
                let service = service_fn(move |request| answer(request, house.clone()));
                let serving = hyper::server::conn::http1::Builder::new();
                tokio::spawn(async move {
                    let _ = serving.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        FakeBackend { at, house, task }
    }

    fn backend(&self, password: &str) -> Backend {
        backend(&format!("http://{}", self.at), password)
    }

    fn logins(&self) -> usize {
        self.house.lock().logins
    }

    fn change(&self, change: impl FnOnce(&mut FakeState)) {
        change(&mut self.house.lock());
    }
}

fn backend(url: &str, password: &str) -> Backend {
    let context = Context::new(Resolver::default(), || Err("no TLS here".to_owned()), |_: Event| {});
    Backend::new(url, Secret::new(password), Arc::new(context)).unwrap()
}

fn house() -> FakeState {
    FakeState { seats: 16, ..FakeState::default() }
}

async fn answer(
    request: Request<Incoming>,
    house: Arc<Mutex<FakeState>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let sid = head.headers.get("x-ftl-sid").map(|sid| sid.to_str().unwrap().to_owned());
    let (status, answer) = {
        let mut house = house.lock();
        house.requests.push(format!("{} {}", head.method, head.uri.path()));
        said(&mut house, &head.method, head.uri.path(), sid, &body)
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

fn said(
    house: &mut FakeState,
    method: &Method,
    path: &str,
    sid: Option<String>,
    body: &Value,
) -> (u16, Value) {
    let session = |valid: bool, sid: Value| json!({"session": {"valid": valid, "totp": false, "sid": sid, "csrf": sid, "validity": if valid { 300 } else { -1 }}});
    let error = |key: &str, message: &str| json!({"error": {"key": key, "message": message, "hint": null}});
    let known = house.open || sid.as_ref().is_some_and(|sid| house.sessions.contains(sid));
    match (method.as_str(), path) {
        ("POST", "/api/auth") => {
            house.logins += 1;
            if house.open {
                return (200, session(true, Value::Null));
            }
            if house.second_factor {
                return (400, error("bad_request", "No 2FA token found in JSON payload"));
            }
            if body["password"] != PASSWORD {
                return (401, session(false, Value::Null));
            }
            if house.sessions.len() >= house.seats {
                return (429, error("api_seats_exceeded", "API seats exceeded"));
            }
            house.made += 1;
            let sid = format!("sid-{}+/=", house.made);
            house.sessions.insert(sid.clone());
            (200, session(true, sid.into()))
        }
        _ if !known => (401, error("unauthorized", "Unauthorized")),
        ("DELETE", "/api/auth") => {
            house.sessions.remove(&sid.unwrap_or_default());
            (204, Value::Null)
        }
        ("GET", "/api/info/version") => (
            200,
            json!({"version": {"core": {"local": {"version": "v6.1"}}, "ftl": {"local": {"version": "v6.2.3"}}}}),
        ),
        ("GET", "/api/stats/summary") => {
            (200, json!({"queries": {"total": 1234, "blocked": 56, "percent_blocked": 4.5}, "clients": {}}))
        }
        ("GET", "/api/dns/blocking") => {
            let blocking = if house.disabled { "disabled" } else { "enabled" };
            (200, json!({"blocking": blocking, "timer": null, "took": 0.001}))
        }
        _ => (404, error("not_found", "Not found")),
    }
}

#[tokio::test]
async fn the_status_shows_what_the_backend_says() {
    let fake = FakeBackend::new(house()).await;
    let status = fake.backend(PASSWORD).status(true).await;
    let want = Status {
        configured: true,
        enabled: true,
        reachable: true,
        version: Some("v6.2.3".into()),
        url: Some(format!("http://{}", fake.at)),
        blocking: Some(true),
        queries_today: Some(1234),
        blocked_today: Some(56),
        error: None,
    };
    assert_eq!(status, want);
}

#[tokio::test]
async fn one_session_is_used_for_everything_and_given_back() {
    let fake = FakeBackend::new(house()).await;
    let backend = fake.backend(PASSWORD);
    for _ in 0..5 {
        backend.status(true).await;
    }
    assert_eq!((fake.logins(), fake.house.lock().sessions.len()), (1, 1));
    backend.log_out().await.unwrap();
    assert_eq!(fake.house.lock().sessions.len(), 0);
    backend.log_out().await.unwrap();
    assert_eq!(backend.status(true).await.error, None);
    assert_eq!(fake.logins(), 2);
}

#[tokio::test]
async fn an_expired_session_is_renewed_once_for_all_callers() {
    let fake = FakeBackend::new(house()).await;
    let backend = fake.backend(PASSWORD);
    backend.status(true).await;
    fake.change(|house| house.sessions.clear());
    let all = futures_util::future::join_all((0..6).map(|_| backend.blocking())).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(fake.logins(), 2);
    fake.change(|house| house.sessions.clear());
    backend.log_out().await.unwrap();
}

#[tokio::test]
async fn disabled_blocking_is_in_the_status() {
    let fake = FakeBackend::new(house()).await;
    let backend = fake.backend(PASSWORD);
    assert_eq!(backend.status(true).await.blocking, Some(true));
    fake.change(|house| house.disabled = true);
    assert_eq!(backend.status(true).await.blocking, Some(false));
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_not_tried_again_and_again() {
    let fake = FakeBackend::new(house()).await;
    let backend = fake.backend("hunter2hunter2");
    for _ in 0..5 {
        let status = backend.status(true).await;
        assert!(status.reachable);
        assert_eq!(status.error.as_deref(), Some("the filter backend does not accept the password"));
    }
    assert_eq!(fake.logins(), 1);
    let without = fake.backend("");
    assert_eq!(without.blocking().await, Err(Error::PasswordWanted));
    assert_eq!(fake.logins(), 1);
}

#[tokio::test]
async fn a_full_session_table_is_reported_and_retried() {
    let fake = FakeBackend::new(FakeState { seats: 0, ..house() }).await;
    let backend = fake.backend(PASSWORD);
    assert_eq!(backend.blocking().await, Err(Error::NoSeat));
    assert!(backend.status(true).await.reachable);
    fake.change(|house| house.seats = 1);
    assert!(backend.blocking().await.unwrap().blocking);
}

#[tokio::test]
async fn a_second_factor_is_reported() {
    let fake = FakeBackend::new(FakeState { second_factor: true, ..house() }).await;
    assert_eq!(fake.backend(PASSWORD).blocking().await, Err(Error::SecondFactor));
}

#[tokio::test]
async fn a_backend_without_a_password_needs_none() {
    let fake = FakeBackend::new(FakeState { open: true, ..house() }).await;
    assert_eq!(fake.backend("").status(false).await.error, None);
    assert_eq!(fake.logins(), 0);
    let backend = fake.backend(PASSWORD);
    for _ in 0..3 {
        assert_eq!(backend.status(false).await.error, None);
    }
    assert_eq!(fake.logins(), 1);
}

#[tokio::test]
async fn a_backend_that_is_down_is_reported() {
    let fake = FakeBackend::new(house()).await;
    let backend = fake.backend(PASSWORD);
    let at = fake.at;
    drop(fake);
    let gone = async {
        loop {
            let status = backend.status(true).await;
            if !status.reachable {
                break status;
            }
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    assert!(status.configured && status.enabled && status.blocking.is_none());
    assert_eq!(status.url, Some(format!("http://{at}")));
    assert!(status.error.unwrap().starts_with("the filter backend cannot be reached: "));
}

#[tokio::test]
async fn another_server_is_not_taken_for_a_pi_hole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let page = |_: Request<Incoming>| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"<html>It works!</html>"))))
            };
            let serving = hyper::server::conn::http1::Builder::new();
            tokio::spawn(async move {
                serving.serve_connection(TokioIo::new(stream), service_fn(page)).await.ok()
            });
        }
    });
    for password in ["", PASSWORD] {
        assert_eq!(backend(&format!("http://{at}"), password).blocking().await, Err(Error::Malformed));
    }
    task.abort();
}

#[test]
fn addresses_are_those_of_web_servers_without_credentials() {
    let context =
        || Arc::new(Context::new(Resolver::default(), || Err("no TLS here".to_owned()), |_: Event| {}));
    for url in ["http://192.168.1.2", "https://pi.hole:8443/", "http://[2001:db8::1]/pihole/"] {
        assert!(Backend::new(url, Secret::default(), context()).is_ok(), "{url}");
    }
    for url in ["192.168.1.2", "ftp://pi.hole", "http://me:secret@pi.hole", "http://pi.hole/?x=1", ""] {
        let error = Backend::new(url, Secret::default(), context()).err();
        assert_eq!(error, Some(Error::Url), "{url}");
        assert!(!format!("{error:?} {}", error.clone().unwrap()).contains("secret"));
    }
}
