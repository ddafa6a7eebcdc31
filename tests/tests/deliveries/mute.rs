//! Alerts that are muted.

use std::collections::BTreeSet;

use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::{Answer, WebhookReceiver};
use serde_json::{Value, json};

use super::SOON;
use super::testbed::{Testbed, idle, received};

#[test]
fn delivery_that_waits_is_withdrawn_and_its_end_is_not_sent() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    testbed.configure(&receiver.url("/"), json!({"retries": 20}));
    receiver.answer_next(Answer { status: 503, headers: Vec::new() });
    testbed.raise("a");
    received(&receiver, 1);
    testbed.source.mute("a", true);
    wait_ok(SOON, "the delivery to be withdrawn", || {
        anyhow::ensure!(testbed.open().store.notification_outbox()?.is_empty(), "it waits");
        Ok(())
    })
    .expect("withdrawn");
    testbed.resolve("a");
    testbed.source.mute("a", false);
    testbed.raise("b");
    let requests = received(&receiver, 2);
    assert_eq!(requests[1].json()["groupLabels"]["instance"], "b");
    idle(&testbed);
    assert_eq!(receiver.requests().len(), 2);
}

#[test]
fn end_of_a_muted_alert_goes_to_those_who_got_its_beginning() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    testbed.configure(&receiver.url("/"), json!({}));
    testbed.raise("a");
    received(&receiver, 1);
    idle(&testbed);
    testbed.source.mute("a", true);
    testbed.resolve("a");
    assert_eq!(received(&receiver, 2)[1].json()["status"], "resolved");
    idle(&testbed);
    // The next alert of the subject is muted, too.
    testbed.raise("a");
    testbed.resolve("a");
    testbed.raise("b");
    let requests: Vec<Value> = received(&receiver, 3).iter().map(|request| request.json()).collect();
    assert_eq!(requests[2]["groupLabels"]["instance"], "b", "{requests:#?}");
}

/// Returns the subjects of the alerts in a push.
fn subjects(push: &Value) -> BTreeSet<String> {
    let subject = |alert: &Value| alert["labels"]["instance"].as_str().unwrap_or_default().to_owned();
    push.as_array().into_iter().flatten().map(subject).collect()
}

#[test]
fn alertmanager_is_not_pushed_what_is_muted() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    testbed.configure(&receiver.url("/"), json!({"format": "alertmanager-v2"}));
    testbed.raise("a");
    testbed.raise("b");
    let pushed_after = |from: usize, wanted: &[&str]| {
        let wanted: BTreeSet<String> = wanted.iter().map(|&subject| subject.to_owned()).collect();
        wait_ok(SOON, &format!("a push of {wanted:?}"), || {
            let requests = receiver.requests();
            let found = requests.iter().skip(from).position(|request| subjects(&request.json()) == wanted);
            found.map(|index| from + index).ok_or_else(|| anyhow::anyhow!("{} pushes", requests.len()))
        })
        .expect("a push")
    };
    pushed_after(0, &["a", "b"]);
    testbed.source.mute("a", true);
    let first = pushed_after(receiver.requests().len(), &["b"]);
    let later = pushed_after(first + 1, &["b"]);
    let between = receiver.requests();
    assert!(between[first..=later].iter().all(|request| !subjects(&request.json()).contains("a")));
    testbed.source.mute("a", false);
    pushed_after(later + 1, &["a", "b"]);
}
