//! Sessions as a browser has them.

use serde_json::json;

use crate::authz::testbed::{Caller, LOCAL, OUTSIDE, PASSWORD, Testbed};
use gateway_model::Role;

async fn with_anna() -> Testbed {
    let testbed = Testbed::new();
    let body = json!({"username": "anna", "password": PASSWORD});
    assert_eq!(testbed.send(&Caller::from("127.0.0.1"), "POST", "/auth/setup", Some(body)).await.status, 201);
    testbed
}

#[tokio::test]
async fn signing_in_sets_a_cookie_that_scripts_and_other_sites_cannot_use() {
    let testbed = with_anna().await;
    let plain = testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await;
    let cookie = plain.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(cookie.starts_with("gw_session=ey") && !cookie.contains("Secure"), "{cookie}");
    let data = plain.data();
    assert_eq!((&data["user"]["username"], &data["user"]["role"]), (&json!("anna"), &json!("admin")));
    assert_eq!(data["expires_at"], "2026-11-21T00:00:00Z");
    let tls = Caller { tls: true, ..Caller::from(OUTSIDE) };
    assert!(testbed.login(&tls, "anna", PASSWORD).await.header("set-cookie").contains("; Secure"));
    let entry = testbed.last_audit();
    assert_eq!((entry.action.as_str(), entry.actor.as_str()), ("login", "anna"));
    assert_eq!(entry.auth, gateway_ctl::store::AuditAuth::Session);
}

#[tokio::test]
async fn failed_sign_in_shows_the_name_of_a_user_in_the_audit_and_no_other_text() {
    let testbed = with_anna().await;
    let failed = testbed.login(&Caller::from(OUTSIDE), "anna", "wrong password").await;
    failed.is(401, "invalid_credentials");
    assert_eq!(failed.header("www-authenticate"), "Bearer");
    assert_eq!(failed.header("set-cookie"), "");
    let entry = testbed.last_audit();
    assert_eq!(entry.result, gateway_ctl::store::AuditResult::Denied);
    assert_eq!(entry.details["username"], "anna");
    // The audit log does not show an unknown user name: it may be a password in the wrong field.
    testbed.login(&Caller::from(OUTSIDE), "correct horse", "x").await.is(401, "invalid_credentials");
    assert!(!serde_json::to_string(&testbed.last_audit()).expect("json").contains("correct horse"));
}

#[tokio::test]
async fn changes_with_the_cookie_need_the_token_of_the_session() {
    let testbed = with_anna().await;
    let browser = testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE);
    let other = testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE);
    let body = || Some(json!({"name": "laptop", "mac": "02:00:00:00:00:0a"}));
    let bare = browser.clone().without("x-csrf-token");
    testbed.send(&bare, "POST", "/devices", body()).await.is(403, "origin_not_allowed");
    let foreign = other.headers.iter().find(|(name, _)| name == "x-csrf-token").expect("a token").1.clone();
    let mixed = browser.clone().with("x-csrf-token", &foreign);
    testbed.send(&mixed, "POST", "/devices", body()).await.is(403, "origin_not_allowed");
    assert_eq!(testbed.send(&bare, "GET", "/devices", None).await.status, 200);
    let status = testbed.send(&bare, "GET", "/auth/status", None).await;
    let token = status.data()["csrf_token"].as_str().expect("a token").to_owned();
    let found = bare.with("x-csrf-token", &token);
    assert_eq!(testbed.send(&found, "POST", "/devices", body()).await.status, 201);
    assert_eq!(testbed.login(&browser.without("x-csrf-token"), "anna", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn sessions_end_when_idle_and_after_twelve_hours() {
    let testbed = with_anna().await;
    let (used, idle) = {
        let one = testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE);
        (one, testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE))
    };
    testbed.advance(29 * 60);
    assert_eq!(testbed.send(&used, "GET", "/devices", None).await.status, 200);
    testbed.advance(60);
    testbed.send(&idle, "GET", "/devices", None).await.is(401, "session_expired");
    for _ in 0..(11 * 60 + 29) / 29 {
        assert_eq!(testbed.send(&used, "GET", "/devices", None).await.status, 200);
        testbed.advance(29 * 60);
    }
    // 23:37; the session ends at midnight regardless of its use.
    assert_eq!(testbed.send(&used, "GET", "/devices", None).await.status, 200);
    testbed.advance(22 * 60 + 59);
    assert_eq!(testbed.send(&used, "GET", "/devices", None).await.status, 200);
    testbed.advance(1);
    testbed.send(&used, "GET", "/devices", None).await.is(401, "session_expired");
    // Endpoints without a credential answer. An expired session never falls back to the local network's read access.
    assert_eq!(testbed.send(&used, "GET", "/health", None).await.status, 200);
    let local = Caller { from: LOCAL.into(), ..used };
    testbed.send(&local, "GET", "/devices", None).await.is(401, "session_expired");
    assert_eq!(testbed.send(&local.without("cookie"), "GET", "/devices", None).await.status, 200);
}

#[tokio::test]
async fn dead_credentials_are_refused_in_the_local_network() {
    let testbed = with_anna().await;
    let gone = testbed.user("gone", Role::Operator);
    let session = Caller { from: LOCAL.into(), ..testbed.session(gone) };
    assert_eq!(testbed.send(&session, "GET", "/devices", None).await.status, 200);
    let admin = testbed.login(&Caller::from(LOCAL), "anna", PASSWORD).await.browser(LOCAL);
    let deleted = testbed.send(&admin, "DELETE", &format!("/auth/users/{gone}"), None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    testbed.send(&session, "GET", "/devices", None).await.is(401, "session_expired");
    testbed.send(&session, "GET", "/tunnels", None).await.is(401, "session_expired");
    let forged = Caller::from(LOCAL).with("cookie", "gw_session=eyJ0.forged.token");
    testbed.send(&forged, "GET", "/devices", None).await.is(401, "session_expired");
    let key = Caller::from(LOCAL).with("authorization", "Bearer gw_dead_key");
    testbed.send(&key, "GET", "/devices", None).await.is(401, "invalid_credentials");
    assert_eq!(testbed.login(&session, "anna", PASSWORD).await.status, 200, "signing in again");
}

#[tokio::test]
async fn local_network_reads_configuration_but_neither_history_nor_secrets() {
    let testbed = with_anna().await;
    let admin = testbed.login(&Caller::from(LOCAL), "anna", PASSWORD).await.browser(LOCAL);
    let tunnel = testbed.send(&admin, "POST", "/tunnels", Some(gateway_tests::examples::tunnel(1))).await;
    let config = format!("/tunnels/{}/config", tunnel.data()["id"].as_str().expect("an id"));
    let local = Caller::from(LOCAL);
    assert_eq!(testbed.send(&local, "GET", &config, None).await.status, 200);
    let revealing = format!("{config}?reveal=true");
    let private = ["/audit", "/dns/log", "/dns/clients", revealing.as_str()];
    // A signed-in viewer may not read these either.
    let of_no_viewer = ["/auth/users", "/auth/keys", "/secrets", "/snapshots", "/config/export"];
    for path in private.into_iter().chain(of_no_viewer) {
        testbed.send(&local, "GET", path, None).await.is(401, "unauthenticated");
    }
    let operator = testbed.session(testbed.user("olga", Role::Operator));
    testbed.send(&operator, "GET", &revealing, None).await.is(403, "forbidden");
    assert_eq!(testbed.send(&operator, "GET", "/audit", None).await.status, 200);
    let revealed = testbed.send(&admin, "GET", &revealing, None).await;
    assert_eq!(revealed.data()["revealed"], true);
}

#[tokio::test]
async fn sessions_survive_a_restart() {
    let testbed = with_anna().await;
    let browser = testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE);
    let testbed = testbed.restart();
    let body = json!({"name": "laptop", "mac": "02:00:00:00:00:0a"});
    assert_eq!(testbed.send(&browser, "POST", "/devices", Some(body)).await.status, 201);
    testbed.advance(30 * 60);
    let testbed = testbed.restart();
    testbed.send(&browser, "GET", "/devices", None).await.is(401, "session_expired");
}

#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let testbed = with_anna().await;
    let agent = Caller::from(OUTSIDE).with("user-agent", "browser/1");
    let one = testbed.login(&agent, "anna", PASSWORD).await.browser(OUTSIDE);
    testbed.advance(1);
    let two = testbed.login(&Caller::from(LOCAL), "anna", PASSWORD).await.browser(LOCAL);
    testbed.advance(1);
    let viewer = testbed.session(testbed.user("vera", Role::Viewer));
    let all = testbed.send(&one, "GET", "/auth/tokens", None).await;
    let all = all.data().as_array().expect("a list").clone();
    assert_eq!(all.len(), 3);
    assert_eq!((&all[0]["user"], &all[0]["current"]), (&json!("anna"), &json!(true)));
    assert_eq!((&all[0]["ip"], &all[0]["user_agent"]), (&json!(OUTSIDE), &json!("browser/1")));
    assert!(!serde_json::to_string(&all).expect("json").contains("csrf"));
    // Other users see and end only their own sessions.
    let own = testbed.send(&viewer, "GET", "/auth/tokens", None).await;
    assert_eq!(own.data().as_array().map(Vec::len), Some(1));
    let foreign = format!("/auth/tokens/{}", all[1]["id"].as_str().expect("an id"));
    testbed.send(&viewer, "DELETE", &foreign, None).await.is(403, "forbidden");
    let ended = testbed.send(&one, "DELETE", &foreign, None).await;
    assert_eq!(ended.data()["deleted"], true);
    assert_eq!(ended.header("set-cookie"), "", "another one's session");
    assert_eq!(testbed.last_audit().action, "revoke_session");
    testbed.send(&two, "DELETE", &foreign, None).await.is(401, "session_expired");
    testbed.send(&one, "DELETE", &foreign, None).await.is(404, "not_found");
    let out = testbed.send(&viewer, "DELETE", "/auth/tokens/current", None).await;
    assert!(
        out.header("set-cookie").starts_with("gw_session=; ")
            && out.header("set-cookie").contains("Max-Age=0")
    );
    testbed.send(&viewer, "GET", "/devices", None).await.is(401, "session_expired");
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    use axum::body::Body;
    use futures_util::StreamExt;
    use http::Request;

    let testbed = with_anna().await;
    let browser = testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE);
    let mut request = Request::builder().uri("/api/v1/events").header("host", "192.0.2.1");
    for (name, value) in &browser.headers {
        request = request.header(name, value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = gateway_api::dispatch::answer(testbed.api.clone(), request, None).await;
    assert_eq!(response.status(), 200);
    let mut frames = response.into_body().into_data_stream();
    assert!(frames.next().await.is_some(), "the first event");
    let ended = testbed.send(&browser, "DELETE", "/auth/tokens/current", None).await;
    assert_eq!(ended.status, 200, "{}", ended.body);
    // The next event is a change by another user; the viewer must not receive it.
    testbed.user("vera", Role::Viewer);
    assert!(frames.next().await.is_none(), "the stream goes on after its session");
}
