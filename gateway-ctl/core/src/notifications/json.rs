//! Body in the gateway's own words, in the frame that Standard Webhooks recommend: type, timestamp, data.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AlertSnapshot, Sender, Transition};

pub(crate) fn body(transition: Transition, alert: &AlertSnapshot, sender: &Sender, now: Timestamp) -> Value {
    json!({
        "type": format!("alert.{}", transition.as_str()),
        "timestamp": now.to_string(),
        "data": {
            "node": sender.node,
            "url": sender.url,
            "id": alert.id,
            "fingerprint": alert.fingerprint,
            "kind": alert.kind,
            "severity": alert.severity,
            "title": alert.title,
            "message": alert.message,
            "subject": alert.subject,
            "resource_type": alert.resource_type,
            "resource_id": alert.resource_id,
            "device_id": alert.device_id,
            "labels": alert.labels,
            "count": alert.count,
            "first_seen": alert.first_seen.to_string(),
            "last_seen": alert.last_seen.to_string(),
            "resolved_at": alert.resolved_at.map(|at| at.to_string()),
        },
    })
}
