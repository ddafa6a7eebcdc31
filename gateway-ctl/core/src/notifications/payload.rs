//! Request of a webhook: its body, the path below the receiver's URL, and the headers that belong to the format.

use gateway_model::settings::groups::WebhookFormat;
use jiff::Timestamp;
use serde_json::Value;

use super::{AlertSnapshot, Sender, Transition, alertmanager, alertmanager_v2, json, ntfy, slack};

/// Body of a request, and its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `Content-Type` first.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Payload {
    pub(super) fn json(value: &Value) -> Payload {
        let headers = vec![("content-type", "application/json".to_owned())];
        Payload { headers, body: value.to_string().into_bytes() }
    }
}

/// Returns the request for one transition.
pub fn payload(
    format: WebhookFormat,
    transition: Transition,
    alert: &AlertSnapshot,
    sender: &Sender,
    now: Timestamp,
) -> Payload {
    match format {
        WebhookFormat::Alertmanager => Payload::json(&alertmanager::body(transition, alert, sender)),
        WebhookFormat::AlertmanagerV2 => Payload::json(&alertmanager_v2::body([alert], sender, now)),
        WebhookFormat::Json => Payload::json(&json::body(transition, alert, sender, now)),
        WebhookFormat::Ntfy => ntfy::payload(transition, alert, sender),
        WebhookFormat::Slack => Payload::json(&slack::body(transition, alert, sender)),
    }
}
