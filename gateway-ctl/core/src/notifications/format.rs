//! Requests of webhooks in each format.

use gateway_model::settings::groups::WebhookFormat;
use jiff::Timestamp;

use super::payload::Payload;
use super::{AlertSnapshot, Sender, Transition, alertmanager, alertmanager_v2, json, ntfy, slack};

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
