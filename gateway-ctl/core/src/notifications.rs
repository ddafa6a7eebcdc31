//! Notifications of alerts: who receives them, in which form, and when each is sent again.
//!
//! A notification is one transition of one alert. Receivers of webhooks and mail get each transition once; receivers
//! that keep a state of their own get the state again until the alert is resolved.

pub(crate) mod alertmanager;
pub mod alertmanager_v2;
mod backoff;
pub mod email;
pub mod format;
pub mod home_assistant;
pub(crate) mod json;
pub(crate) mod ntfy;
pub mod outbox;
pub mod payload;
pub mod receivers;
pub mod response;
pub mod signature;
pub(crate) mod slack;

use std::collections::BTreeMap;

use gateway_model::settings::groups::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// State of an alert that a receiver is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transition {
    Firing,
    Resolved,
}

impl Transition {
    pub const fn as_str(self) -> &'static str {
        match self {
            Transition::Firing => "firing",
            Transition::Resolved => "resolved",
        }
    }
}

/// Alert at the time of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertSnapshot {
    pub id: String,
    /// The same for all alerts of one kind about one subject.
    pub fingerprint: String,
    /// Kind as rules name it: `tunnel_down`.
    pub kind: String,
    pub severity: Severity,
    pub title: String,
    pub message: String,
    /// Subject of the alert, among those of its kind.
    pub subject: String,
    pub resource_type: Option<String>,
    pub resource_id: Option<String>,
    pub device_id: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub count: u64,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    pub resolved_at: Option<Timestamp>,
}

impl AlertSnapshot {
    /// Returns the start time, which is never after the end: the clock may have been set meanwhile.
    pub fn starts_at(&self) -> Timestamp {
        self.resolved_at.map_or(self.first_seen, |end| end.min(self.first_seen))
    }
}

/// Transition of an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// Position in the order of all transitions; it only grows.
    pub sequence: u64,
    pub transition: Transition,
    /// The alert is a consequence of another one, whose notification is enough.
    pub is_consequence: bool,
    pub alert: AlertSnapshot,
}

/// Name and address of the gateway in notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    pub node: String,
    /// URL of the dashboard; empty if none is known.
    pub url: String,
}

/// Returns the labels that identify an alert at receivers of the Alertmanager family.
pub fn labels(alert: &AlertSnapshot, sender: &Sender) -> BTreeMap<String, String> {
    let own = [
        ("alertname", Some(&alert.kind)),
        ("kind", Some(&alert.kind)),
        ("node", Some(&sender.node)),
        ("instance", Some(&alert.subject)),
        ("resource_type", alert.resource_type.as_ref()),
        ("resource_id", alert.resource_id.as_ref()),
        ("device_id", alert.device_id.as_ref()),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone())));
    let given = alert.labels.iter().map(|(name, value)| (label_name(name), value.clone()));
    let severity = ("severity".to_owned(), alert.severity.to_string());
    given.chain(own).chain([severity]).filter(|(_, value)| !value.is_empty()).collect()
}

/// Returns a name in the characters that Prometheus allows: letters, digits and underscores, no digit first.
fn label_name(text: &str) -> String {
    let name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Returns an alert that stands for none, which tests a receiver.
pub fn test_alert(now: Timestamp) -> AlertSnapshot {
    AlertSnapshot {
        id: format!("test-{}", now.as_millisecond()),
        fingerprint: "test".to_owned(),
        kind: "test".to_owned(),
        severity: Severity::Info,
        title: "Test of the receiver".to_owned(),
        message: "Someone asked the gateway to test its deliveries. Nothing is wrong.".to_owned(),
        subject: "receiver".to_owned(),
        resource_type: None,
        resource_id: None,
        device_id: None,
        labels: BTreeMap::new(),
        count: 1,
        first_seen: now,
        last_seen: now,
        resolved_at: None,
    }
}

#[cfg(test)]
mod tests;
