//! Order, retries, restarts, and receivers that refuse.

use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::{Answer, Recorded, WebhookReceiver};
use serde_json::{Value, json};

use super::SOON;
use super::testbed::{Testbed, idle, received};

/// Returns `subject status` of each request in format `alertmanager`.
fn transitions(requests: &[Recorded]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let transition =
        |body: Value| format!("{} {}", text(&body["groupLabels"]["instance"]), text(&body["status"]));
    requests.iter().map(|request| transition(request.json())).collect()
}

#[test]
fn each_transition_is_delivered_once_and_in_order_over_restarts() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let mut testbed = Testbed::new();
    testbed.configure(&receiver.url("/hook"), json!({}));
    for subject in ["a", "b"] {
        testbed.raise(subject);
    }
    testbed.resolve("a");
    received(&receiver, 3);
    testbed = testbed.restart();
    testbed.resolve("b");
    let requests = received(&receiver, 4);
    assert_eq!(transitions(&requests), ["a firing", "b firing", "a resolved", "b resolved"]);
    assert!(requests.iter().all(|request| request.method == "POST" && request.path == "/hook"));
    testbed = testbed.restart();
    idle(&testbed);
    assert_eq!(receiver.requests().len(), 4);
}

#[test]
fn a_failed_delivery_is_repeated_after_a_restart_with_the_same_id() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let mut testbed = Testbed::new();
    testbed.configure(&receiver.url("/"), json!({}));
    receiver.answer_next(Answer { status: 503, headers: vec![("Retry-After", "7".to_owned())] });
    testbed.raise("a");
    testbed.resolve("a");
    received(&receiver, 1);
    wait_ok(SOON, "the failure to be stored", || {
        let outbox = testbed.open().store.notification_outbox()?;
        anyhow::ensure!(outbox.get(1).is_some_and(|delivery| delivery.failures == 1));
        Ok(())
    })
    .expect("stored");
    let failed_at = std::time::Instant::now();
    testbed = testbed.restart();
    let requests = received(&receiver, 3);
    // The first attempt was a little earlier than its failure was seen.
    assert!(failed_at.elapsed() > std::time::Duration::from_secs(4), "{:?}", failed_at.elapsed());
    assert_eq!(transitions(&requests), ["a firing", "a firing", "a resolved"]);
    let ids: Vec<_> = requests.iter().map(|request| request.header("webhook-id")).collect();
    assert!(ids[0].is_some() && ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
    idle(&testbed);
}

#[test]
fn a_receiver_that_is_gone_is_turned_off_with_an_audit_entry() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    testbed.configure(&receiver.url("/"), json!({"secret": "s3cret-s3cret-s3cret"}));
    receiver.answer_next(410);
    testbed.raise("a");
    wait_ok(SOON, "the webhook to be off", || {
        let webhook = testbed.get("/alerts/webhook");
        anyhow::ensure!(webhook["enabled"] == false, "{webhook}");
        Ok(())
    })
    .expect("off");
    let webhook = testbed.get("/alerts/webhook");
    assert_eq!((&webhook["has_secret"], &webhook["url"]), (&json!(true), &json!(receiver.url("/"))));
    let entry = testbed.get("/audit?action=disable_alert_webhook")[0].clone();
    assert_eq!((&entry["actor"], &entry["result"]), (&json!("system"), &json!("success")), "{entry}");
    testbed.resolve("a");
    testbed.raise("b");
    idle(&testbed);
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn a_refusal_is_final_and_later_alerts_are_delivered() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let elsewhere = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    testbed.configure(&receiver.url("/"), json!({}));
    receiver.answer_next(400);
    receiver.answer_next(Answer { status: 307, headers: vec![("Location", elsewhere.url("/"))] });
    for subject in ["a", "b", "c"] {
        testbed.raise(subject);
    }
    assert_eq!(transitions(&received(&receiver, 3)), ["a firing", "b firing", "c firing"]);
    idle(&testbed);
    assert_eq!((receiver.requests().len(), elsewhere.requests().len()), (3, 0));
    assert_eq!(testbed.metric("gateway_alert_deliveries_given_up_total"), Some(2.0));
}

#[test]
fn a_rule_has_a_url_of_its_own_without_the_secrets_of_the_webhook() {
    let (default, own) = (
        WebhookReceiver::on_loopback().expect("a receiver"),
        WebhookReceiver::on_loopback().expect("a receiver"),
    );
    let testbed = Testbed::new();
    testbed.configure(&default.url("/"), json!({"secret": "s3cret", "token": "t0ken"}));
    let mut rule = testbed.get("/alerts/rules/tunnel_down");
    rule["webhook_url"] = json!(own.url("/tunnels"));
    let (status, body) = testbed.send("PUT", "/alerts/rules/tunnel_down", Some(&rule));
    assert_eq!(status, 200, "{body}");
    testbed.raise("a");
    let requests = received(&own, 1);
    assert_eq!((requests[0].path.as_str(), requests[0].header("authorization")), ("/tunnels", None));
    assert_eq!(requests[0].header("webhook-signature"), None);
    assert_eq!(default.requests().len(), 0);
}
