//! The first account, users, passwords.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::authz::testbed::{Caller, LOCAL, OUTSIDE, PASSWORD, Testbed};

async fn set_up(testbed: &Testbed) -> Caller {
    let body = json!({"username": "anna", "password": PASSWORD});
    let made = testbed.send(&Caller::from("127.0.0.1"), "POST", "/auth/setup", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.browser(OUTSIDE)
}

#[tokio::test]
async fn the_first_account_is_made_once_and_from_elsewhere_with_the_code() {
    let testbed = Testbed::new();
    let status = testbed.send(&Caller::from(OUTSIDE), "GET", "/auth/status", None).await;
    let status = status.data();
    assert_eq!((&status["enabled"], &status["configured"]), (&json!(true), &json!(false)));
    assert_eq!((&status["setup_required"], &status["setup_code_required"]), (&json!(true), &json!(true)));
    assert_eq!((&status["user"], &status["role"]), (&json!(null), &json!(null)));
    let body = |code: &str| Some(json!({"username": "anna", "password": PASSWORD, "setup_code": code}));
    let outside = Caller::from(OUTSIDE);
    testbed.send(&outside, "POST", "/auth/setup", body("")).await.is(403, "setup_code_required");
    assert_eq!(serde_json::to_value(testbed.last_audit().result).expect("json"), json!("denied"));
    // A proxy on the gateway is not treated as the gateway itself.
    let proxied = Caller::from("127.0.0.1").with("x-forwarded-for", OUTSIDE);
    testbed.send(&proxied, "POST", "/auth/setup", body("AAAAA")).await.is(403, "setup_code_required");
    let code = std::fs::read_to_string(testbed.folder.path().join("setup-code")).expect("the code");
    let made = testbed.send(&outside, "POST", "/auth/setup", body(code.trim())).await;
    assert_eq!((made.status, &made.data()["role"]), (201, &json!("admin")), "{}", made.body);
    assert!(!made.body.to_string().contains("argon2"), "{}", made.body);
    let entry = testbed.last_audit();
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("anna", "setup_admin"));
    assert!(!testbed.folder.path().join("setup-code").exists());
    let again = testbed.send(&Caller::from(LOCAL), "POST", "/auth/setup", body("")).await;
    again.is(409, "already_configured");
}

/// Also while sign-in is off: the owner of the first account governs the gateway as soon as it is on.
#[tokio::test]
async fn the_first_account_needs_the_code_from_every_other_host() {
    for enabled in [false, true] {
        let testbed = Testbed::with(enabled);
        for from in [LOCAL, OUTSIDE] {
            let caller = Caller::from(from);
            let status = testbed.send(&caller, "GET", "/auth/status", None).await;
            assert_eq!(status.data()["setup_code_required"], true, "{from}");
            let body = Some(json!({"password": PASSWORD}));
            testbed.send(&caller, "POST", "/auth/setup", body).await.is(403, "setup_code_required");
        }
        let status = testbed.send(&Caller::from("127.0.0.1"), "GET", "/auth/status", None).await;
        assert_eq!(status.data()["setup_code_required"], false);
        let code = std::fs::read_to_string(testbed.folder.path().join("setup-code")).expect("the code");
        let body = Some(json!({"password": PASSWORD, "setup_code": code.trim()}));
        let made = testbed.send(&Caller::from(LOCAL), "POST", "/auth/setup", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        assert!(!testbed.folder.path().join("setup-code").exists());
    }
}

#[tokio::test]
async fn guessing_the_setup_code_is_throttled() {
    let testbed = Testbed::new();
    let body = || Some(json!({"password": PASSWORD, "setup_code": "AAAAA-AAAAA-AAAAA-AAAAA"}));
    for _ in 0..5 {
        let answer = testbed.send(&Caller::from(OUTSIDE), "POST", "/auth/setup", body()).await;
        answer.is(403, "setup_code_required");
    }
    let answer = testbed.send(&Caller::from(OUTSIDE), "POST", "/auth/setup", body()).await;
    answer.is(429, "login_throttled");
    let body = Some(json!({"password": PASSWORD}));
    let local = testbed.send(&Caller::from("127.0.0.1"), "POST", "/auth/setup", body).await;
    assert_eq!(local.data()["username"], "admin", "the default name, and no code on the host itself");
}

#[tokio::test]
async fn everything_wrong_with_a_new_account_is_said_at_once_and_no_password_is_repeated() {
    let testbed = Testbed::new();
    let body = json!({"username": "a b", "password": "short-secret"[..5], "role": "diagnostics"});
    let admin = set_up(&testbed).await;
    let answer = testbed.send(&admin, "POST", "/auth/users", Some(body)).await;
    answer.is(422, "validation_failed");
    let fields = answer.body["error"]["details"]["fields"].as_array().expect("fields").clone();
    let paths: Vec<_> = fields.iter().map(|field| field["path"].as_str().unwrap_or_default()).collect();
    assert_eq!(paths, ["username", "password", "role"]);
    let body = json!({"username": "bert", "password": 123_456_789_012_u64, "role": "viewer"});
    let answer = testbed.send(&admin, "POST", "/auth/users", Some(body)).await;
    answer.is(422, "validation_failed");
    assert!(!answer.body.to_string().contains("123456789012"), "{}", answer.body);
    assert!(!testbed.last_audit().details.to_string().contains("123456789012"));
}

#[tokio::test]
async fn users_are_live_and_the_last_admin_stays() {
    let testbed = Testbed::new();
    let admin = set_up(&testbed).await;
    testbed.advance(1);
    let body = json!({"username": "bert", "password": "another long one", "role": "operator"});
    let made = testbed.send(&admin, "POST", "/auth/users", Some(body.clone())).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let (id, at) =
        (made.data()["id"].as_str().expect("an id").to_owned(), made.header("location").to_owned());
    assert_eq!(at, format!("/api/v1/auth/users/{id}"));
    testbed.send(&admin, "POST", "/auth/users", Some(body)).await.is(409, "conflict");
    let bert = testbed.login(&Caller::from(OUTSIDE), "Bert", "another long one").await.browser(OUTSIDE);
    let device = || Some(json!({"name": "laptop", "mac": "02:00:00:00:00:0a"}));
    assert_eq!(testbed.send(&bert, "POST", "/devices", device()).await.status, 201);
    assert_eq!(
        (testbed.last_audit().actor.as_str(), testbed.last_audit().auth),
        ("bert", gateway_ctl::store::AuditAuth::Session)
    );
    testbed.send(&bert, "GET", "/auth/users", None).await.is(403, "forbidden");
    let list = testbed.send(&admin, "GET", "/auth/users", None).await;
    assert_eq!(list.data().as_array().map(Vec::len), Some(2));
    assert!(list.data()[1]["last_login"].is_string() && !list.body.to_string().contains("argon2"));
    // A role change takes effect with the next request.
    let mut shown = list.data()[1].clone();
    shown["role"] = json!("viewer");
    let changed = testbed.send(&admin, "PUT", &format!("/auth/users/{id}"), Some(shown)).await;
    assert_eq!(changed.data()["role"], "viewer");
    testbed.send(&bert, "DELETE", &format!("/devices/{id}"), None).await.is(403, "forbidden");
    let own = testbed.send(&admin, "GET", "/auth/status", None).await;
    assert_eq!((&own.data()["user"], &own.data()["auth"]), (&json!("anna"), &json!("session")));
    let anna = list.data()[0]["id"].as_str().expect("an id").to_owned();
    testbed.send(&admin, "DELETE", &format!("/auth/users/{anna}"), None).await.is(409, "last_admin");
    let demoted = json!({"username": "anna", "role": "viewer"});
    let refused = testbed.send(&admin, "PUT", &format!("/auth/users/{anna}"), Some(demoted)).await;
    refused.is(409, "last_admin");
    // A deleted user loses access immediately.
    assert_eq!(testbed.send(&bert, "GET", "/devices", None).await.status, 200);
    let gone = testbed.send(&admin, "DELETE", &format!("/auth/users/{id}"), None).await;
    assert_eq!(gone.data(), &json!({"id": id, "deleted": true}));
    testbed.send(&bert, "GET", "/devices", None).await.is(401, "session_expired");
    testbed.login(&Caller::from(OUTSIDE), "bert", "another long one").await.is(401, "invalid_credentials");
    let sessions = testbed.send(&admin, "GET", "/auth/tokens", None).await;
    assert_eq!(sessions.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_new_password_ends_all_other_sessions() {
    let testbed = Testbed::new();
    let one = set_up(&testbed).await;
    let two = testbed.login(&Caller::from(LOCAL), "anna", PASSWORD).await.browser(LOCAL);
    let body = |current: &str, new: &str| Some(json!({"current_password": current, "new_password": new}));
    let wrong =
        testbed.send(&one, "POST", "/auth/change-password", body("not the password", "a new long one")).await;
    wrong.is(401, "invalid_credentials");
    let same = testbed.send(&one, "POST", "/auth/change-password", body(PASSWORD, PASSWORD)).await;
    same.is(422, "validation_failed");
    let changed = testbed.send(&one, "POST", "/auth/change-password", body(PASSWORD, "a new long one")).await;
    assert_eq!(changed.data(), &json!({"changed": true}));
    let entry = testbed.last_audit();
    assert_eq!((entry.action.as_str(), entry.actor.as_str()), ("change_password", "anna"));
    assert!(!entry.details.to_string().contains("long one"), "{}", entry.details);
    assert_eq!(testbed.send(&one, "GET", "/devices", None).await.status, 200);
    let delete = format!("/devices/{}", "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11");
    testbed.send(&two, "DELETE", &delete, None).await.is(401, "session_expired");
    testbed.login(&Caller::from(OUTSIDE), "anna", PASSWORD).await.is(401, "invalid_credentials");
    assert_eq!(testbed.login(&Caller::from(OUTSIDE), "anna", "a new long one").await.status, 200);
}

#[tokio::test]
async fn an_unknown_user_takes_as_long_as_a_known_one() {
    let testbed = Testbed::new();
    set_up(&testbed).await;
    let measure = async |name: String| {
        testbed.advance(60 * 60);
        let begin = Instant::now();
        testbed.login(&Caller::from(OUTSIDE), &name, "wrong password").await.is(401, "invalid_credentials");
        begin.elapsed()
    };
    // Alternates both and takes the minimum of each, as other load only adds to it.
    let (mut known, mut unknown) = (Duration::MAX, Duration::MAX);
    for n in 0..12 {
        known = known.min(measure("anna".to_owned()).await);
        unknown = unknown.min(measure(format!("nobody{n}")).await);
    }
    let ratio = unknown.as_secs_f64() / known.as_secs_f64();
    assert!(known > Duration::from_millis(5), "no password was hashed: {known:?}");
    assert!((0.5..2.0).contains(&ratio), "known {known:?}, unknown {unknown:?}");
}
