//! Alerts with real causes, as a receiver on the internet gets them.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

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

#[test]
fn a_dead_uplink_with_fifty_tunnels_is_one_delivery() {
    let uplinks = TwoUplinks::start(false, [1, 1]).expect("two uplinks");
    let receiver = receiver(&uplinks.testbed);
    let api = uplinks.testbed.api();
    make_tunnels(api);
    uplinks.silence(Line::Fibre, true).expect("cut");
    wait_for(&receiver, "wan_down", &["firing"]);
    wait_ok(CONNECT_TIME, "all tunnels to be consequences", || {
        let alerts = api.get("/alerts/active")?;
        let is_consequence = |alert: &&Value| alert["kind"] == "tunnel_down" && !alert["caused_by"].is_null();
        let count = alerts.as_array().into_iter().flatten().filter(is_consequence).count();
        anyhow::ensure!(count == TUNNELS, "{count}");
        Ok(())
    })
    .expect("grouped");
    assert_eq!(delivered(&receiver, "tunnel_down"), [""; 0]);
    uplinks.silence(Line::Fibre, false).expect("repaired");
    wait_for(&receiver, "wan_down", &["firing", "resolved"]);
    assert_eq!(delivered(&receiver, "tunnel_down"), [""; 0]);
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
