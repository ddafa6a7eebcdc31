//! Alerts as clients of the Alertmanager post them to `/api/v2/alerts`.
//!
//! The Alertmanager keeps an alert until its end. While the alert is active, the end is a time in the near future, and
//! the alert is sent again before it. So the alerts of a gateway that is gone resolve themselves there.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{AlertSnapshot, Sender, labels};

/// Interval at which active alerts are sent again, as Prometheus does.
pub const RESEND_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// Time for which an alert stays active without being sent again: four intervals, as with Prometheus.
const LIFETIME: SignedDuration = SignedDuration::from_secs(240);

const PATH: &str = "/api/v2/alerts";

/// Returns the list of alerts. Those without an end are active.
pub fn body<'a>(
    alerts: impl IntoIterator<Item = &'a AlertSnapshot>,
    sender: &Sender,
    now: Timestamp,
) -> Value {
    let alert = |alert: &AlertSnapshot| {
        let lasts_until = now.saturating_add(LIFETIME).unwrap_or(Timestamp::MAX).max(alert.starts_at());
        json!({
            "labels": labels(alert, sender),
            "annotations": { "summary": alert.title, "description": alert.message },
            "startsAt": alert.starts_at().to_string(),
            "endsAt": alert.resolved_at.unwrap_or(lasts_until).to_string(),
            "generatorURL": sender.url,
        })
    };
    alerts.into_iter().map(alert).collect()
}

/// Returns the URL of the API, given that of an Alertmanager.
pub fn url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") }
}
