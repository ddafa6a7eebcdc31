//! Webhook body of the Alertmanager, version 4 (`template.Data` of its source). Each body has a group of one alert.

use serde_json::{Value, json};

use super::{AlertSnapshot, Sender, Transition, labels};

/// Time that stands for none in Go.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

pub(crate) fn body(transition: Transition, alert: &AlertSnapshot, sender: &Sender) -> Value {
    let labels = labels(alert, sender);
    let group = json!({ "alertname": alert.kind, "instance": alert.subject });
    let annotations = json!({ "summary": alert.title, "description": alert.message });
    let ends_at = match transition {
        Transition::Firing => ZERO_TIME.to_owned(),
        Transition::Resolved => alert.resolved_at.unwrap_or(alert.last_seen).to_string(),
    };
    json!({
        "version": "4",
        "groupKey": group_key(alert),
        "truncatedAlerts": 0,
        "status": transition.as_str(),
        "receiver": "gateway",
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": sender.url,
        "alerts": [{
            "status": transition.as_str(),
            "labels": labels,
            "annotations": annotations,
            "startsAt": alert.starts_at().to_string(),
            "endsAt": ends_at,
            "generatorURL": sender.url,
            "fingerprint": alert.fingerprint,
        }],
    })
}

/// Returns the key that identifies the group, in the notation of the Alertmanager: `{}:{alertname="x", instance="y"}`.
fn group_key(alert: &AlertSnapshot) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    format!("{{}}:{{alertname={}, instance={}}}", quoted(&alert.kind), quoted(&alert.subject))
}
