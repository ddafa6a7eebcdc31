//! Plans of many objects through the API: /validate, /apply, and commit-confirmed.

use std::sync::Arc;
use std::time::Duration;

use gateway_api::context::Settings;
use gateway_api::gateway::Gateway;
use gateway_ctl::services::auto_rollback;
use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

fn plan() -> Value {
    json!({"resources": {
        "devices": [{"name": "laptop", "mac": "02:00:00:00:00:01"}],
        "tunnels": [examples::tunnel(1)],
        "policies": [{"name": "work", "source_type": "device", "source_value": "laptop",
                      "hops": [{"type": "vpn", "target": "exit-1"}]}],
    }})
}

fn with(mut plan: Value, key: &str, value: Value) -> Value {
    plan[key] = value;
    plan
}

fn ops(result: &Value) -> Vec<&str> {
    result["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|change| change["op"].as_str().expect("op"))
        .collect()
}

#[tokio::test]
async fn a_plan_is_reported_carried_out_and_then_unchanged() {
    let client = Client::new();
    let plan_result = client.post("/validate", plan()).await.data();
    assert_eq!((&plan_result["valid"], &plan_result["applied"]), (&json!(true), &json!(false)));
    assert_eq!(ops(&plan_result), ["create"; 3]);
    assert_eq!(plan_result["plan"]["changed"], true, "{plan_result}");
    assert_eq!(client.get("/devices").await.data(), json!([]));
    let dry = client.post("/apply", with(plan(), "dry_run", json!(true))).await.data();
    assert_eq!((ops(&dry).len(), client.audit_count().await), (3, 0));

    let done = client.post("/apply", plan()).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let done = done.data();
    assert_eq!((&done["applied"], &done["pending_confirm_until"]), (&json!(true), &Value::Null));
    assert_eq!(done["run"]["enforced"], false, "no kernel behind this gateway, and it says so");
    assert!(done["plan"]["parts"]["rules"]["added_count"].as_u64().is_some_and(|count| count > 0), "{done}");
    assert!(done["snapshot"].is_string());
    let status = client.get("/status").await.data();
    assert_eq!(status["pending_changes"], false);
    assert!(status["snapshot_age_sec"].is_u64(), "{status}");
    let entry = client.last_audit().await;
    assert_eq!((&entry["action"], &entry["details"]["counts"]["create"]), (&json!("apply_plan"), &json!(3)));

    for mode in ["merge", "replace"] {
        let again = client.post("/apply", with(plan(), "mode", json!(mode))).await.data();
        assert_eq!(ops(&again), ["unchanged"; 3], "{again}");
        assert_eq!((&again["snapshot"], &again["plan"]["changed"]), (&Value::Null, &json!(false)));
    }
}

#[tokio::test]
async fn an_invalid_plan_changes_nothing_and_names_every_mistake() {
    let client = Client::new();
    let bad = json!({"resources": {"devices": [{"name": "ok"}, {"name": ""}, {"name": "x", "mac": "no"}], "devises": []}});
    let plan_result = client.post("/validate", bad.clone()).await.data();
    assert_eq!(plan_result["valid"], false);
    let details = client.post("/apply", bad).await.error(422, "validation_failed");
    for found in [&plan_result["errors"], &details["fields"]] {
        let paths: Vec<&str> =
            found.as_array().expect("a list").iter().map(|f| f["path"].as_str().expect("path")).collect();
        assert_eq!(
            paths,
            ["resources.devises", "resources.devices[1].name", "resources.devices[2].mac"],
            "{found}"
        );
    }
    assert_eq!(details["fields"][1]["pointer"], "/resources/devices/1/name");
    assert_eq!(client.get("/devices").await.data(), json!([]));
    assert_eq!(client.last_audit().await["result"], "failed");
    client.post("/apply", json!({"mode": "sideways"})).await.error(422, "validation_failed");
    client.post("/apply", json!({"confirm_timeout_sec": 86_401})).await.error(422, "validation_failed");
    let warned = client.post("/validate", json!({"resourses": {}})).await.json();
    assert_eq!(warned["warnings"][0]["path"], "resourses");
}

#[tokio::test]
async fn accounts_are_no_part_of_plans() {
    let client = Client::new();
    for name in ["users", "api_keys", "api-keys"] {
        let body = json!({"resources": {name: []}, "mode": "replace"});
        client.post("/apply", body).await.error(422, "validation_failed");
    }
}

#[tokio::test]
async fn a_plan_made_for_another_state_is_refused() {
    let client = Client::new();
    let revision = client.post("/validate", plan()).await.data()["revision"].to_string();
    client.create("/devices", examples::device(1)).await;
    let stale = [("if-match", revision.as_str())];
    client.send("POST", "/apply", Some(plan()), &stale).await.error(412, "precondition_failed");
    let current = client.get("/status").await.data()["revision"].to_string();
    let answer = client.send("POST", "/apply", Some(plan()), &[("if-match", current.as_str())]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn a_pending_change_blocks_others_and_stays_when_confirmed() {
    let client = Client::new();
    client.post("/apply/confirm", json!({})).await.error(409, "invalid_state");
    let done = client.post("/apply", with(plan(), "confirm_timeout_sec", json!(600))).await.data();
    let until = done["pending_confirm_until"].clone();
    assert!(until.is_string(), "{done}");
    assert_eq!(client.get("/status").await.data()["pending_confirm_until"], until);
    let details = client.post("/apply", plan()).await.error(409, "apply_in_progress");
    assert_eq!(details["snapshot"], done["snapshot"]);
    client.send("POST", "/routing/policies/apply", None, &[]).await.error(409, "apply_in_progress");
    client.post("/rollback", json!({"snapshot": done["snapshot"]})).await.error(409, "apply_in_progress");
    let confirmed = client.post("/apply/confirm", json!({})).await.data();
    assert_eq!((&confirmed["confirmed"], &confirmed["snapshot"]), (&json!(true), &done["snapshot"]));
    client.post("/apply/revert", json!({})).await.error(409, "invalid_state");
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_change_can_be_taken_back_at_once() {
    let client = Client::new();
    client.create("/devices", examples::device(7)).await;
    let before = client.get("/config/export").await.data()["resources"].clone();
    client.post("/apply", with(plan(), "confirm_timeout_sec", json!(600))).await.data();
    let reverted = client.post("/apply/revert", json!({})).await.data();
    assert_eq!(reverted["reverted"], true);
    assert_eq!(client.get("/config/export").await.data()["resources"], before);
    assert_eq!(client.last_audit().await["action"], "revert_apply");
}

#[tokio::test]
async fn a_policy_is_pending_only_while_stored_and_applied_form_differ() {
    let client = Client::new();
    let policy = client.create("/routing/policies", examples::policy(1)).await;
    let item = format!("/routing/policies/{}", policy["id"].as_str().expect("an id"));
    client.send("POST", "/routing/policies/apply", None, &[]).await.data();
    let pending = || async {
        let status = client.get("/status").await.data();
        let revisions = (status["stored_revision"].as_u64(), status["applied_revision"].as_u64());
        assert!(revisions.0.is_some() && revisions.1.is_some(), "{status}");
        (status["pending_changes"] == true, revisions.0 > revisions.1)
    };
    assert_eq!(pending().await, (false, false));
    let stored = client.get(&item).await.data();
    client.put(&item, stored.clone()).await.data();
    assert_eq!(pending().await, (false, false), "a save that changes nothing");
    client.put(&item, with(stored.clone(), "priority", json!(7))).await.data();
    assert_eq!(pending().await, (true, true));
    client.put(&item, stored).await.data();
    assert!(!pending().await.0, "an edit that was put back");
    for _ in 0..2 {
        client.send("POST", &format!("{item}/toggle"), None, &[]).await.data();
    }
    assert!(!pending().await.0, "toggled twice");
}

#[tokio::test]
async fn a_profile_that_policies_take_from_makes_the_revisions_differ() {
    let client = Client::new();
    let profile = client.create("/profiles", examples::profile(1)).await;
    let policy = json!({"name": "p", "source_type": "all", "profile": profile["id"]});
    client.create("/routing/policies", policy).await;
    client.send("POST", "/routing/policies/apply", None, &[]).await.data();
    let item = format!("/profiles/{}", profile["id"].as_str().expect("an id"));
    client.put(&item, with(examples::profile(1), "fail_policy", json!("fail-open"))).await.data();
    let status = client.get("/status").await.data();
    assert_eq!(status["pending_changes"], true, "{status}");
    assert!(status["stored_revision"].as_u64() > status["applied_revision"].as_u64(), "{status}");
}

#[tokio::test]
async fn a_plan_leaves_policies_pending_that_it_does_not_name() {
    let client = Client::new();
    let left = client.create("/routing/policies", examples::policy(1)).await;
    let named = client.create("/routing/policies", examples::policy(2)).await;
    let plan = json!({"resources": {
        "devices": [examples::device(1)], "policies": [{"id": named["id"], "priority": 5}],
    }});
    for (path, status) in [("/validate", "pending"), ("/apply", "error")] {
        let result = client.post(path, plan.clone()).await.data();
        let warnings = result["warnings"].as_array().expect("a list");
        assert_eq!(warnings.len(), 1, "{result}");
        let message = warnings[0]["message"].as_str().expect("a text");
        assert!(message.contains(left["id"].as_str().expect("an id")), "{message}");
        let of = |policy: &Value| format!("/routing/policies/{}", policy["id"].as_str().expect("an id"));
        assert_eq!(client.get(&of(&left)).await.data()["status"], "pending");
        // Without a kernel an applied policy cannot be active.
        assert_eq!(client.get(&of(&named)).await.data()["status"], status, "{path}");
    }
    let status = client.get("/status").await.data();
    assert_eq!(status["pending_changes"], true);
    assert!(status["stored_revision"].as_u64() > status["applied_revision"].as_u64(), "{status}");
    let all = client.post("/apply", json!({})).await.data();
    assert_eq!(all["warnings"], json!([]), "{all}");
    assert_eq!(client.get("/status").await.data()["pending_changes"], false);
}

#[tokio::test]
async fn a_revert_undoes_its_own_change_and_keeps_later_writes() {
    let client = Client::new();
    let edited = client.create("/devices", examples::device(1)).await;
    let item = format!("/devices/{}", edited["id"].as_str().expect("an id"));
    let plan = json!({"confirm_timeout_sec": 600, "resources": {
        "devices": [{"id": edited["id"], "notes": "by the plan"}, examples::device(2), examples::device(3)],
        "policies": [{"name": "all", "source_type": "all", "hops": []}],
    }});
    client.post("/apply", plan).await.data();
    let other = client.create("/devices", examples::device(4)).await;
    let policy = client.create("/routing/policies", examples::policy(4)).await;
    let mut changed = client.get(&item).await.data();
    changed["hostname"] = json!("later");
    client.put(&item, changed).await.data();
    let devices = client.get("/devices").await.data();
    let third = devices.as_array().expect("a list").iter().find(|one| one["name"] == "laptop 3");
    let third = third.expect("the plan's device")["id"].clone();
    client.create("/device-groups", json!({"name": "g", "members": []})).await;
    let firm = json!({"name": "t", "source_type": "device", "source_value": third, "hops": []});
    client.create("/routing/policies", firm).await;

    let reverted = client.post("/apply/revert", json!({})).await.data();
    let names = |list: Value| {
        let mut names: Vec<String> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["name"].as_str().unwrap_or_default().to_owned())
            .collect();
        names.sort();
        names
    };
    let devices = client.get("/devices").await.data();
    assert_eq!(names(devices.clone()), ["laptop 1", "laptop 3", "laptop 4"], "{reverted}");
    assert!(devices.as_array().is_some_and(|list| list.contains(&other)));
    assert_eq!(names(client.get("/routing/policies").await.data()), ["policy 4", "t"]);
    let back = client.get(&item).await.data();
    assert_eq!((&back["notes"], &back["hostname"]), (&json!("on the desk"), &json!("later")));
    let overlaps = reverted["overlaps"].as_array().expect("a list");
    let found: Vec<_> = overlaps.iter().map(|one| (&one["name"], &one["outcome"])).collect();
    let (merged, kept) = (json!("merged"), json!("kept"));
    assert_eq!(found, [(&json!("laptop 1"), &merged), (&json!("laptop 3"), &kept)], "{reverted}");
    assert_eq!(client.last_audit().await["details"]["overlaps"], reverted["overlaps"]);
    // The policy of the plan was rolled back, and the later one stays pending.
    let live = client.get("/enforce").await.text;
    assert!(!live.contains("\"all\""), "{live}");
    let state =
        client.get(&format!("/routing/policies/{}", policy["id"].as_str().expect("an id"))).await.data();
    assert_eq!(state["status"], "pending");
}

#[tokio::test]
async fn an_unconfirmed_change_is_rolled_back() {
    let client = Client::new();
    let Gateway::Open(open) = &client.api.gateway else { panic!("open") };
    let service = tokio::spawn(auto_rollback::run(open.store.clone()));
    let mut revisions = open.store.watch();
    client.post("/apply", with(plan(), "confirm_timeout_sec", json!(1))).await.data();
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
    let reverted = revisions.wait_for(|revision| *revision == 2);
    tokio::time::timeout(Duration::from_secs(20), reverted)
        .await
        .expect("in time")
        .expect("the store is open");
    assert_eq!(client.get("/devices").await.data(), json!([]));
    assert_eq!(client.last_audit().await["actor"], "system");
    service.abort();
}

mod refusing {
    //! A gateway whose kernel rejects every plan.

    use gateway_ctl::engine::{Enforcement, Pending};
    use gateway_ctl::os::bpf::AttachMode;
    use gateway_ctl::os::{Failure, Outcome};
    use gateway_ctl::reconcile::{Reason, Status, Stopped, Subsystem};
    use gateway_ctl::world::Worlds;

    use super::*;

    struct Refusing;

    impl Enforcement for Refusing {
        fn reconcile(&self, _: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
            let failure = Failure { resource: "plan".into(), error: "no room".into() };
            let outcome = Outcome { failed: vec![failure], ..Outcome::default() };
            let mut status = Status::default();
            let since = status.started;
            status.subsystems.insert("dataplane", Subsystem { outcome, since, checks: 1 });
            Box::pin(std::future::ready(Ok(Some(Arc::new(status)))))
        }
    }

    #[tokio::test]
    async fn a_plan_that_the_kernel_refuses_is_rolled_back() {
        let folder = tempfile::tempdir().expect("folder");
        let gateway = Gateway::detached(folder.path()).expect("a fresh store opens");
        let Gateway::Open(mut open) = gateway else { panic!("open") };
        let configuration = open.worlds.configuration().clone();
        open.worlds = Arc::new(Worlds::new(open.store.clone(), configuration, Some(AttachMode::Tcx)));
        open.enforcement = Arc::new(Refusing);
        let client = Client::over(Gateway::Open(open), Settings::default(), folder);
        let details = client
            .post("/apply", with(plan(), "confirm_timeout_sec", json!(60)))
            .await
            .error(500, "apply_failed");
        assert_eq!((&details["stage"], &details["kept_previous"]), (&json!("dataplane"), &json!(true)));
        assert_eq!(client.get("/devices").await.data(), json!([]));
        let status = client.get("/status").await.data();
        assert_eq!(
            (&status["pending_changes"], &status["pending_confirm_until"]),
            (&json!(false), &Value::Null)
        );
    }
}
