//! Bodies of each format, as golden values.

use gateway_model::settings::groups::WebhookFormat;
use serde_json::{Value, json};

use super::format::payload;
use super::payload::Payload;
use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn sender() -> Sender {
    Sender { node: "gw-1".into(), url: "https://gateway.lan/".into() }
}

fn alert() -> AlertSnapshot {
    AlertSnapshot {
        id: "0192".into(),
        fingerprint: "f00d".into(),
        kind: "tunnel_down".into(),
        severity: Severity::Critical,
        title: "Tunnel \"Berlin\" is down".into(),
        message: "No reply for 60 s <since> 12:00 & later".into(),
        subject: "Berlin".into(),
        resource_type: Some("tunnel".into()),
        resource_id: Some("t-1".into()),
        device_id: None,
        labels: BTreeMap::from([
            ("uplink-name".to_owned(), "fibre".to_owned()),
            ("empty".to_owned(), String::new()),
        ]),
        count: 3,
        first_seen: time("2026-11-30T12:00:00Z"),
        last_seen: time("2026-11-30T12:01:00Z"),
        resolved_at: None,
    }
}

fn ended() -> AlertSnapshot {
    AlertSnapshot { resolved_at: Some(time("2026-11-30T12:02:00Z")), ..alert() }
}

fn made(format: WebhookFormat, transition: Transition) -> Payload {
    let alert = if transition == Transition::Resolved { ended() } else { alert() };
    payload(format, transition, &alert, &sender(), time("2026-11-30T12:01:30Z"))
}

fn json_of(format: WebhookFormat, transition: Transition) -> Value {
    let made = made(format, transition);
    assert_eq!(made.headers, [("content-type", "application/json".to_owned())]);
    serde_json::from_slice(&made.body).unwrap()
}

fn identity() -> Value {
    json!({"alertname": "tunnel_down", "instance": "Berlin", "kind": "tunnel_down", "node": "gw-1",
        "resource_id": "t-1", "resource_type": "tunnel", "severity": "critical", "uplink_name": "fibre"})
}

fn annotations() -> Value {
    json!({"summary": "Tunnel \"Berlin\" is down", "description": "No reply for 60 s <since> 12:00 & later"})
}

#[test]
fn alertmanager_body_has_version_4_and_one_alert() {
    let one = |status: &str, ends_at: &str| {
        json!({"version": "4", "groupKey": "{}:{alertname=\"tunnel_down\", instance=\"Berlin\"}",
            "truncatedAlerts": 0, "status": status, "receiver": "gateway",
            "groupLabels": {"alertname": "tunnel_down", "instance": "Berlin"}, "commonLabels": identity(),
            "commonAnnotations": annotations(), "externalURL": "https://gateway.lan/",
            "alerts": [{"status": status, "labels": identity(), "annotations": annotations(),
                "startsAt": "2026-11-30T12:00:00Z", "endsAt": ends_at,
                "generatorURL": "https://gateway.lan/", "fingerprint": "f00d"}]})
    };
    let format = WebhookFormat::Alertmanager;
    assert_eq!(json_of(format, Transition::Firing), one("firing", "0001-01-01T00:00:00Z"));
    assert_eq!(json_of(format, Transition::Resolved), one("resolved", "2026-11-30T12:02:00Z"));
}

#[test]
fn active_alerts_of_alertmanager_v2_last_four_minutes() {
    let one = |ends_at: &str| {
        json!([{"labels": identity(), "annotations": annotations(), "startsAt": "2026-11-30T12:00:00Z",
            "endsAt": ends_at, "generatorURL": "https://gateway.lan/"}])
    };
    let format = WebhookFormat::AlertmanagerV2;
    assert_eq!(json_of(format, Transition::Firing), one("2026-11-30T12:05:30Z"));
    assert_eq!(json_of(format, Transition::Resolved), one("2026-11-30T12:02:00Z"));
    // A clock that was set back makes no end before the beginning, which an Alertmanager refuses.
    let early = AlertSnapshot { resolved_at: Some(time("2026-11-30T11:00:00Z")), ..alert() };
    let body = alertmanager_v2::body([&early], &sender(), time("2026-11-30T11:00:00Z"));
    assert_eq!(body[0]["startsAt"], body[0]["endsAt"]);
    let api = "http://am:9093/api/v2/alerts";
    assert_eq!(["http://am:9093", "http://am:9093/", api].map(alertmanager_v2::url), [api; 3]);
}

#[test]
fn json_body_has_all_of_the_alert() {
    let body = json_of(WebhookFormat::Json, Transition::Resolved);
    assert_eq!(
        body,
        json!({"type": "alert.resolved", "timestamp": "2026-11-30T12:01:30Z", "data": {
            "node": "gw-1", "url": "https://gateway.lan/", "id": "0192", "fingerprint": "f00d", "kind": "tunnel_down",
            "severity": "critical", "title": "Tunnel \"Berlin\" is down",
            "message": "No reply for 60 s <since> 12:00 & later", "subject": "Berlin", "resource_type": "tunnel",
            "resource_id": "t-1", "device_id": null, "labels": {"empty": "", "uplink-name": "fibre"}, "count": 3,
            "first_seen": "2026-11-30T12:00:00Z", "last_seen": "2026-11-30T12:01:00Z",
            "resolved_at": "2026-11-30T12:02:00Z"}})
    );
    assert_eq!(json_of(WebhookFormat::Json, Transition::Firing)["type"], "alert.firing");
}

#[test]
fn ntfy_message_has_its_title_and_priority_in_headers() {
    let Payload { headers, body } = made(WebhookFormat::Ntfy, Transition::Firing);
    let expected = [
        ("content-type", "text/plain; charset=utf-8"),
        ("title", "Tunnel \"Berlin\" is down"),
        ("priority", "5"),
        ("tags", "rotating_light,tunnel_down"),
        ("click", "https://gateway.lan/"),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
    assert_eq!(body, b"No reply for 60 s <since> 12:00 & later");
    let alert = AlertSnapshot { title: "Köln\r\nx: y".into(), message: String::new(), ..ended() };
    let Payload { headers, body } = ntfy::payload(Transition::Resolved, &alert, &Sender::default());
    // "Resolved: Köln  x: y" in Base64.
    assert_eq!(headers[1].1, "=?UTF-8?B?UmVzb2x2ZWQ6IEvDtmxuICB4OiB5?=");
    assert_eq!((headers[2].1.as_str(), headers.len()), ("3", 4));
    assert_eq!(body, "Resolved: Köln\r\nx: y".as_bytes());
}

#[test]
fn slack_message_mentions_no_user_of_the_channel() {
    let body = json_of(WebhookFormat::Slack, Transition::Firing);
    assert_eq!(
        body,
        json!({"text": "Tunnel \"Berlin\" is down", "attachments": [{
            "color": "danger", "fallback": "Tunnel \"Berlin\" is down", "title": "Tunnel \"Berlin\" is down",
            "text": "No reply for 60 s &lt;since&gt; 12:00 &amp; later",
            "fields": [{"title": "Severity", "value": "critical", "short": true},
                {"title": "Gateway", "value": "gw-1", "short": true}],
            "footer": "tunnel_down", "ts": 1_796_040_000, "title_link": "https://gateway.lan/"}]})
    );
    let resolved = json_of(WebhookFormat::Slack, Transition::Resolved);
    assert_eq!(
        (&resolved["attachments"][0]["color"], &resolved["attachments"][0]["ts"]),
        (&json!("good"), &json!(1_796_040_120))
    );
    let alert = AlertSnapshot { title: "<!channel>".into(), ..alert() };
    assert!(!slack::body(Transition::Firing, &alert, &sender()).to_string().contains("<!"));
}
