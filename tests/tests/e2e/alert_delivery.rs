//! Alerts with real causes, as a receiver on the internet gets them.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use gateway_tests::daemon::Api;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::topology::server;
use gateway_tests::two_uplinks::{Line, TwoUplinks};
use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::WebhookReceiver;
use serde_json::{Value, json};

/// Number of tunnels over one uplink.
const TUNNELS: usize = 50;
/// Time for a cause to be an alert, or its end to be one. Ends are deferred for half a minute after a start.
const DELIVERY_TIME: Duration = Duration::from_secs(90);
/// Time after which a tunnel that does not connect counts as down, with some reserve.
const CONNECT_TIME: Duration = Duration::from_secs(100);
/// Time after a start in which ends are deferred, with some reserve.
const SETTLING_TIME: Duration = Duration::from_secs(60);

/// Starts a receiver on the internet, and sets it as the webhook.
pub(crate) fn receiver(testbed: &Testbed) -> WebhookReceiver {
    let at = (server(false), 0);
    let listener = testbed.network.internet.within(|| TcpListener::bind(at)).expect("a port");
    let receiver = WebhookReceiver::start(listener).expect("a receiver");
    let webhook = json!({"enabled": true, "url": receiver.url("/hook"), "format": "alertmanager"});
    testbed.api().put("/alerts/webhook", &webhook).expect("stored");
    receiver
}

/// Returns kind and status of the deliveries so far. One that is repeated, because the daemon was killed before it stored the
/// answer, has the same id and counts once.
pub(crate) fn delivered(receiver: &WebhookReceiver, kind: &str) -> Vec<String> {
    let mut ids = BTreeSet::new();
    let requests = receiver.requests().into_iter();
    let first =
        requests.filter(|request| ids.insert(request.header("webhook-id").expect("an id").to_owned()));
    let bodies = first.map(|request| request.json());
    let of_kind = bodies.filter(|body| body["groupLabels"]["alertname"] == kind);
    of_kind.map(|body| body["status"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(crate) fn wait_for(receiver: &WebhookReceiver, kind: &str, statuses: &[&str]) {
    wait_ok(DELIVERY_TIME, &format!("{kind} {statuses:?}"), || {
        let got = delivered(receiver, kind);
        anyhow::ensure!(got == statuses, "{got:?}");
        Ok(())
    })
    .expect("deliveries");
}

#[test]
fn an_alert_and_its_end_are_delivered_once_over_kill_9() {
    let mut testbed = Testbed::start().expect("scene");
    let receiver = receiver(&testbed);
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let body = json!({"type": "temporary-direct", "device_id": laptop, "duration_min": 30});
    let exception = create(testbed.api(), "/exceptions", &body).expect("an exception");
    wait_for(&receiver, "exception_started", &["firing"]);
    let body = receiver.requests().last().expect("a request").json();
    assert_eq!(
        (&body["version"], &body["alerts"][0]["labels"]["device_id"]),
        (&json!("4"), &json!(laptop)),
        "{body}"
    );
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    testbed.api().delete(&format!("/exceptions/{exception}")).expect("revoked");
    wait_for(&receiver, "exception_started", &["firing", "resolved"]);
    let tested = testbed.api().act("/alerts/webhook/test").expect("tested");
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(true), &json!(200)), "{tested}");
}

/// Returns the ids of the alerts about tunnels. Fails unless there is one for each, a consequence of the cause.
fn consequences(api: &Api, cause: &Value) -> anyhow::Result<BTreeSet<u64>> {
    let alerts = api.get("/alerts/active")?;
    let of_tunnels = alerts.as_array().into_iter().flatten().filter(|alert| alert["kind"] == "tunnel_down");
    let of_cause = of_tunnels.filter(|alert| alert["caused_by"] == cause["id"]);
    let ids: BTreeSet<u64> = of_cause.filter_map(|alert| alert["id"].as_u64()).collect();
    anyhow::ensure!(ids.len() == TUNNELS, "{} tunnels", ids.len());
    Ok(ids)
}

fn all_alerts(api: &Api) -> Vec<Value> {
    api.get("/alerts?limit=1000").expect("all").as_array().expect("a list").clone()
}

#[test]
fn dead_uplink_with_fifty_tunnels_is_one_cause_and_one_delivery_over_kill_9() {
    let mut uplinks = TwoUplinks::start(false, [1, 1]).expect("two uplinks");
    let receiver = receiver(&uplinks.testbed);
    make_tunnels(uplinks.testbed.api());
    uplinks.silence(Line::Fibre, true).expect("cut");
    wait_for(&receiver, "wan_down", &["firing"]);
    let alerts = all_alerts(uplinks.testbed.api());
    let cause = alerts.iter().find(|alert| alert["kind"] == "wan_down").expect("the cause");
    let about = (&cause["subject"], &cause["status"], &cause["count"]);
    assert_eq!(about, (&json!("eth0"), &json!("active"), &json!(1)));
    assert_eq!((&cause["severity"], &cause["resource_type"]), (&json!("critical"), &json!("uplink")));
    let before = wait_ok(CONNECT_TIME, "all tunnels to be consequences", || {
        consequences(uplinks.testbed.api(), cause)
    })
    .expect("grouped");
    let total = all_alerts(uplinks.testbed.api()).len();

    uplinks.testbed.daemon.kill9().expect("killed");
    uplinks.testbed.daemon.start().expect("started again");
    let api = uplinks.testbed.api();
    let deadline = Instant::now() + SETTLING_TIME;
    wait_ok(2 * SETTLING_TIME, "the settling time to pass", || {
        let all = all_alerts(api);
        let known = all.iter().find(|alert| alert["id"] == cause["id"]).expect("the cause");
        assert_eq!((&known["status"], &known["count"]), (&json!("active"), &json!(1)), "{known}");
        anyhow::ensure!(Instant::now() >= deadline, "it has not passed");
        Ok(())
    })
    .expect("settled");
    assert_eq!(consequences(api, cause).expect("consequences"), before);
    assert_eq!(all_alerts(api).len(), total, "a restart makes no alerts");
    assert_eq!(delivered(&receiver, "tunnel_down"), [""; 0]);

    uplinks.silence(Line::Fibre, false).expect("repaired");
    wait_for(&receiver, "wan_down", &["firing", "resolved"]);
    assert_eq!(delivered(&receiver, "tunnel_down"), [""; 0]);
    let ended = all_alerts(api);
    let ended = ended.iter().find(|alert| alert["id"] == cause["id"]).expect("the cause");
    assert_eq!((&ended["status"], &ended["auto_resolved"]), (&json!("resolved"), &json!(true)));
}

/// Makes tunnels over the fibre whose remote end does not exist.
fn make_tunnels(api: &Api) {
    for number in 0..TUNNELS {
        let keys = api.act("/tunnels/generate-keys").expect("keys");
        let peer = api.act("/tunnels/generate-keys").expect("keys");
        let tunnel = json!({
            "name": format!("wg-{number}"), "type": "wireguard", "uplink": "eth0",
            "private_key": keys["private_key"], "addresses": [format!("10.77.{number}.2/32")],
            "peers": [{
                "public_key": peer["public_key"], "endpoint": "198.51.100.99:51820", "allowed_ips": ["0.0.0.0/0"],
            }],
        });
        let id = create(api, "/tunnels", &tunnel).expect("a tunnel");
        api.act(&format!("/tunnels/{id}/up")).expect("up");
    }
}
