//! Every endpoint, with every kind of caller, from every origin.

use std::collections::BTreeSet;

use gateway_api::endpoints;
use gateway_api::table::{Endpoint, Location};
use gateway_ctl::store::AuditResult;
use gateway_model::Role;

use crate::authz::expectation::{Who, line, named, refusal};
use crate::authz::testbed::{Caller, LOCAL, OUTSIDE, Testbed};

const MISSING: &str = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11";

/// Endpoints whose handlers check ownership and reject by themselves.
const OWN: [&str; 2] = ["POST /auth/change-password", "DELETE /auth/tokens/{id}"];

fn name(endpoint: &Endpoint) -> String {
    format!("{} {}", endpoint.method.as_str(), endpoint.path)
}

fn concrete(endpoint: &Endpoint) -> String {
    let part = |part: &str| if part.starts_with('{') { MISSING.to_owned() } else { part.to_owned() };
    endpoint.full_path().split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Creates a new gateway for each case, because some endpoints change it.
fn caller(who: Who, by_session: bool) -> (Testbed, Caller) {
    let testbed = Testbed::new();
    let person = |role| {
        let admin = testbed.user("root", Role::Admin);
        let user = if role == Role::Admin { admin } else { testbed.user("somebody", role) };
        if by_session { testbed.session(user) } else { testbed.key(role) }
    };
    let caller = match who {
        Who::Admin => person(Role::Admin),
        Who::Operator => person(Role::Operator),
        Who::Viewer => person(Role::Viewer),
        Who::Diagnostics => {
            testbed.user("root", Role::Admin);
            testbed.key(Role::Diagnostics)
        }
        Who::Anonymous => {
            testbed.user("root", Role::Admin);
            Caller::from(OUTSIDE)
        }
        Who::Localnet => {
            testbed.user("root", Role::Admin);
            Caller::from(LOCAL)
        }
    };
    (testbed, caller)
}

/// Origins: the headers that a browser sends, and whether they denote a foreign page.
const ORIGINS: [(&[(&str, &str)], bool); 4] = [
    (&[], false),
    (&[("origin", "http://192.0.2.1:8080"), ("sec-fetch-site", "same-origin")], false),
    (&[("origin", "https://evil.example")], true),
    (&[("sec-fetch-site", "cross-site")], true),
];

async fn walk(who: Who, by_session: bool) {
    for (headers, foreign) in ORIGINS {
        let (testbed, mut caller) = caller(who, by_session);
        for (name, value) in headers {
            caller = caller.with(name, value);
        }
        let (mut tried, mut refused) = (0, 0);
        for endpoint in endpoints::table().endpoints() {
            let name = name(endpoint);
            // The rate limit of pages is not tested here, and sessions stay active.
            testbed.advance(1);
            let (before, _) = testbed.audit();
            let body = endpoint.input.schema().is_some().then(|| serde_json::json!({}));
            let answer = testbed.send_to(&caller, endpoint.method.as_str(), &concrete(endpoint), body).await;
            let context = format!("{who:?} session={by_session} foreign={foreign} {name}: {}", answer.body);
            tried += 1;
            match refusal(who, line(&name, endpoint.location != Location::Api), &name, foreign) {
                Some((status, code)) => {
                    refused += 1;
                    assert_eq!((answer.status, answer.code()), (status, code), "{context}");
                    if code == "forbidden" {
                        let details = &answer.body["error"]["details"];
                        for detail in ["required_role", "role", "method", "path"] {
                            assert!(details[detail].is_string(), "no {detail}: {context}");
                        }
                    }
                    let (after, newest) = testbed.audit();
                    let changes = endpoint.effect.audit().is_some();
                    assert_eq!(after - before, u64::from(changes), "audit entries: {context}");
                    if let (true, Some(entry)) = (changes, newest) {
                        assert_eq!(entry.result, AuditResult::Denied, "{context}");
                        assert_eq!(entry.details["error"], code, "{context}");
                    }
                }
                None if OWN.contains(&name.as_str()) => {
                    assert!([403, 404, 422].contains(&answer.status), "{context}");
                    assert_ne!(answer.code(), "origin_not_allowed", "{context}");
                }
                None => assert!(![401, 403, 429].contains(&answer.status), "{context}"),
            }
        }
        assert!(
            tried > 250 && (refused > 20 || who == Who::Admin),
            "{who:?}: {tried} tried, {refused} refused"
        );
    }
}

#[tokio::test]
async fn admins_by_session() {
    walk(Who::Admin, true).await;
}

#[tokio::test]
async fn admins_by_key() {
    walk(Who::Admin, false).await;
}

#[tokio::test]
async fn operators_by_session() {
    walk(Who::Operator, true).await;
}

#[tokio::test]
async fn operators_by_key() {
    walk(Who::Operator, false).await;
}

#[tokio::test]
async fn viewers_by_session() {
    walk(Who::Viewer, true).await;
}

#[tokio::test]
async fn viewers_by_key() {
    walk(Who::Viewer, false).await;
}

#[tokio::test]
async fn diagnostics_by_key() {
    walk(Who::Diagnostics, false).await;
}

#[tokio::test]
async fn anonymous_callers_get_what_the_table_opens() {
    walk(Who::Anonymous, false).await;
}

#[tokio::test]
async fn the_local_network() {
    walk(Who::Localnet, false).await;
}

#[test]
fn the_expectations_name_rows_that_exist() {
    let endpoints: BTreeSet<String> = endpoints::table().endpoints().iter().map(name).collect();
    let unknown: Vec<_> = named().filter(|known| !endpoints.contains(*known)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
