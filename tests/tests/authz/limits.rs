//! Rate limits, the lock after wrong passwords, and the number of rejections in the audit log.

use gateway_model::Role;
use serde_json::json;

use crate::authz::testbed::{Caller, LOCAL, OUTSIDE, PASSWORD, Testbed};

async fn answered(testbed: &Testbed, caller: &Caller, count: usize) -> usize {
    let mut answered = 0;
    for _ in 0..count {
        answered += usize::from(testbed.send(caller, "GET", "/health", None).await.status != 429);
    }
    answered
}

#[tokio::test]
async fn callers_without_a_credential_share_the_rate_of_their_address() {
    let testbed = Testbed::new();
    let outside = Caller::from(OUTSIDE);
    let first = testbed.send(&outside, "GET", "/health", None).await;
    assert_eq!(first.header("ratelimit-limit"), "20");
    assert_eq!((first.header("ratelimit-remaining"), first.header("ratelimit-reset")), ("19", "1"));
    assert_eq!(answered(&testbed, &outside, 30).await, 19);
    let over = testbed.send(&outside, "GET", "/devices", None).await;
    over.is(429, "rate_limited");
    assert_eq!((over.header("retry-after"), over.header("ratelimit-remaining")), ("1", "0"));
    let (before, _) = testbed.audit();
    testbed.send(&outside, "POST", "/devices", None).await.is(429, "rate_limited");
    assert_eq!(testbed.audit().0, before, "no entry: a flood must not fill the disk");
    // Other addresses are not limited, nor are callers with a credential at the same address, nor pages.
    assert_eq!(answered(&testbed, &Caller::from(LOCAL), 25).await, 25);
    assert_eq!(answered(&testbed, &testbed.key(Role::Viewer), 70).await, 60);
    assert_ne!(testbed.send(&outside, "GET", "/api/docs", None).await.status, 429);
    assert_eq!(answered(&testbed, &Caller::from("socket"), 200).await, 200);
    testbed.advance(2);
    assert_eq!(answered(&testbed, &outside, 30).await, 10);
}

#[tokio::test]
async fn with_sign_in_off_the_host_itself_has_no_limit_and_others_do() {
    let testbed = Testbed::with(false);
    assert_eq!(answered(&testbed, &Caller::from("127.0.0.1"), 200).await, 200);
    assert_eq!(answered(&testbed, &Caller::from("::1"), 200).await, 200);
    assert_eq!(answered(&testbed, &Caller::from(OUTSIDE), 600).await, 480);
}

/// A page of the dashboard sends up to 60 reads at once, and a browser restores several tabs together.
#[tokio::test]
async fn the_first_pages_of_six_tabs_are_answered_and_a_flood_of_reads_is_not() {
    const PATHS: [&str; 6] = ["/status", "/health", "/devices", "/hosts", "/routing/policies", "/settings"];
    let testbed = Testbed::new();
    let local = Caller::from(LOCAL);
    for request in 0..360 {
        let path = PATHS[request % PATHS.len()];
        let answer = testbed.send(&local, "GET", path, None).await;
        assert_eq!(answer.status, 200, "{path}, request {request}");
    }
    assert_eq!(answered(&testbed, &local, 600).await, 120, "the rest of the burst");
    let over = testbed.send(&local, "GET", "/status", None).await;
    over.is(429, "rate_limited");
    assert_eq!((over.header("ratelimit-limit"), over.header("retry-after")), ("480", "1"));
    testbed.advance(1);
    assert_eq!(answered(&testbed, &local, 100).await, 40);

    // Reads use up nothing of sign-ins and changes, whose limits are the old ones.
    let mut refused = 0;
    for _ in 0..30 {
        refused += usize::from(testbed.send(&local, "POST", "/devices", None).await.status == 429);
    }
    assert_eq!(refused, 10, "20 changes at once");
    testbed.login(&local, "anna", PASSWORD).await.is(429, "rate_limited");
}

#[tokio::test]
async fn a_session_reads_as_much_and_changes_no_more_than_before() {
    let testbed = Testbed::new();
    let session = testbed.session(testbed.user("otto", Role::Operator));
    assert_eq!(answered(&testbed, &session, 600).await, 480);
    let mut refused = 0;
    for _ in 0..70 {
        refused += usize::from(testbed.send(&session, "POST", "/validate", None).await.status == 429);
    }
    assert_eq!(refused, 10, "60 changes at once");
}

#[tokio::test]
async fn five_wrong_passwords_lock_the_pair_of_address_and_name() {
    let testbed = Testbed::new();
    let body = json!({"username": "anna", "password": PASSWORD});
    assert_eq!(testbed.send(&Caller::from("127.0.0.1"), "POST", "/auth/setup", Some(body)).await.status, 201);
    let outside = Caller::from(OUTSIDE);
    for _ in 0..5 {
        testbed.login(&outside, "anna", "wrong password").await.is(401, "invalid_credentials");
    }
    let locked = testbed.login(&outside, "ANNA", PASSWORD).await;
    locked.is(429, "login_throttled");
    assert_eq!(locked.header("retry-after"), "901");
    assert_eq!(testbed.login(&Caller::from(LOCAL), "anna", PASSWORD).await.status, 200, "another address");
    testbed.login(&outside, "bert", PASSWORD).await.is(401, "invalid_credentials");
    testbed.advance(15 * 60 - 1);
    testbed.login(&outside, "anna", PASSWORD).await.is(429, "login_throttled");
    testbed.advance(1);
    assert_eq!(testbed.login(&outside, "anna", PASSWORD).await.status, 200);
    // A successful login resets the failure count.
    for _ in 0..3 {
        for _ in 0..4 {
            testbed.advance(1);
            testbed.login(&outside, "anna", "wrong password").await.is(401, "invalid_credentials");
        }
        testbed.advance(1);
        assert_eq!(testbed.login(&outside, "anna", PASSWORD).await.status, 200);
    }
}

#[tokio::test]
async fn parallel_wrong_passwords_do_not_evade_the_lock() {
    let testbed = Testbed::new();
    let body = json!({"username": "anna", "password": PASSWORD});
    assert_eq!(testbed.send(&Caller::from("127.0.0.1"), "POST", "/auth/setup", Some(body)).await.status, 201);
    let outside = Caller::from(OUTSIDE);
    let attempts = (0..15).map(|_| testbed.login(&outside, "anna", "wrong password"));
    let answers = futures_util::future::join_all(attempts).await;
    let checked = answers.iter().filter(|answer| answer.status == 401).count();
    assert_eq!(checked, 5, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
}

#[tokio::test]
async fn refusals_are_written_down_in_measure() {
    let testbed = Testbed::new();
    let outside = Caller::from(OUTSIDE);
    let (before, _) = testbed.audit();
    for _ in 0..600 {
        // At the maximum permitted rate.
        testbed.clock.advance(std::time::Duration::from_millis(200));
        testbed.send(&outside, "POST", "/devices", None).await.is(401, "unauthenticated");
    }
    let written = testbed.audit().0 - before;
    assert!((500..520).contains(&written), "{written}");
    testbed.advance(10);
    testbed.send(&outside, "POST", "/devices", None).await.is(401, "unauthenticated");
    let entry = testbed.last_audit();
    let left_out = entry.details["unrecorded_refusals_before"].as_u64().unwrap_or_default();
    assert_eq!(
        (entry.actor.as_str(), entry.ip.map(|ip| ip.to_string()).as_deref()),
        ("anonymous", Some(OUTSIDE))
    );
    assert!(left_out > 0 && testbed.audit().0 - before <= 521, "{entry:?}");
}

#[tokio::test]
async fn a_rebound_name_reaches_nothing_without_a_credential() {
    let testbed = Testbed::new();
    for from in [LOCAL, OUTSIDE, "127.0.0.1"] {
        let rebound = Caller::from(from).with("host", "evil.example");
        testbed.send(&rebound, "GET", "/devices", None).await.is(403, "origin_not_allowed");
        testbed.send(&rebound, "GET", "/health", None).await.is(403, "origin_not_allowed");
        testbed.send(&rebound, "GET", "/nothing", None).await.is(403, "origin_not_allowed");
        testbed.send(&rebound, "POST", "/auth/setup", Some(json!({}))).await.is(403, "origin_not_allowed");
    }
    for known in ["gateway.lan", "GATEWAY.lan:8080", "localhost:8080", "10.0.0.1", "[::1]:8080"] {
        let local = Caller::from(LOCAL).with("host", known);
        assert_eq!(testbed.send(&local, "GET", "/devices", None).await.status, 200, "{known}");
    }
    let key = testbed.key(Role::Viewer).with("host", "gateway.example.net");
    assert_eq!(testbed.send(&key, "GET", "/devices", None).await.status, 200, "a key is no accident");
}
