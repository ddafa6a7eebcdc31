//! `/health` answers everyone, and says no more than names and states to callers who may not read the gateway.

use gateway_model::Role;
use serde_json::{Value, json};

use crate::authz::testbed::{Caller, OUTSIDE, Testbed};

async fn checks(testbed: &Testbed, caller: &Caller) -> Vec<Value> {
    let answer = testbed.send(caller, "GET", "/health", None).await;
    assert_eq!((answer.status, &answer.body["data"]["status"]), (200, &json!("ok")), "{}", answer.body);
    answer.body["data"]["checks"].as_array().expect("checks").clone()
}

#[tokio::test]
async fn only_callers_who_may_read_get_the_reason_of_a_check() {
    let testbed = Testbed::new();
    let viewer = testbed.user("viewer", Role::Viewer);
    let viewer = testbed.session(viewer);
    let (all, names) = (checks(&testbed, &viewer).await, checks(&testbed, &Caller::from(OUTSIDE)).await);
    assert!(!all.is_empty() && all.len() == names.len(), "{all:?} {names:?}");
    for (full, short) in all.iter().zip(&names) {
        for field in ["code", "message", "remedy", "params", "since"] {
            assert!(!full[field].is_null(), "{field}: {full}");
        }
        assert_eq!(*short, json!({"name": full["name"], "state": full["state"]}));
    }
}
