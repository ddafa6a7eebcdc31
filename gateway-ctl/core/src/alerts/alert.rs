//! Alerts as they are stored and shown, their states, and the notifications about them.

use std::collections::BTreeMap;

use gateway_model::id::Id;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::Severity;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key::AlertKey;
use super::subject::Subject;
use super::timing::{Mute, Now};

/// State of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlertStatus {
    Active,
    /// A person has seen it, and it still lasts.
    Acknowledged,
    Resolved,
}

impl AlertStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            AlertStatus::Active => "active",
            AlertStatus::Acknowledged => "acknowledged",
            AlertStatus::Resolved => "resolved",
        }
    }

    /// Reports whether the alert lasts: it is not resolved.
    pub fn is_open(self) -> bool {
        self != AlertStatus::Resolved
    }
}

/// Alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    pub id: u64,
    pub kind: AlertKind,
    pub severity: Severity,
    pub status: AlertStatus,
    /// Name of the rule, and what the alert is about.
    pub title: String,
    /// Newest message of the producer.
    pub message: String,
    /// Subject among those of the kind: the interface of an uplink, the ID of a tunnel, an address.
    pub subject: String,
    /// Part of the gateway that observed it.
    pub source: String,
    /// Type of the object that it is about, such as tunnel or routing_policy.
    pub resource_type: String,
    pub resource_id: Option<String>,
    pub device_id: Option<Id>,
    pub labels: BTreeMap<String, String>,
    /// Same for all alerts of this kind and subject.
    pub fingerprint: String,
    /// Number of times that it occurred: returns of a flapping condition and repeated events count, and are no alerts of their own.
    pub count: u64,
    /// Time of the first occurrence; unique among all alerts.
    pub first_seen: Timestamp,
    /// Time of the last occurrence.
    pub last_seen: Timestamp,
    pub acknowledged_at: Option<Timestamp>,
    pub acknowledged_by: Option<String>,
    pub resolved_at: Option<Timestamp>,
    /// User who resolved it; null if it resolved itself.
    pub resolved_by: Option<String>,
    /// It resolved itself when its condition ended.
    pub auto_resolved: bool,
    /// Alert of which this one is a consequence, such as that of the uplink below a tunnel. Consequences are not sent.
    pub caused_by: Option<u64>,
    /// Time until which receivers are not notified; null if it is not muted.
    pub muted_until: Option<Timestamp>,
    /// User who muted it.
    pub muted_by: Option<String>,
}

impl Alert {
    /// Returns a new alert, which is not described yet.
    pub(super) fn new(id: u64, key: &AlertKey, severity: Severity, at: Timestamp) -> Alert {
        Alert {
            id,
            kind: key.kind,
            severity,
            status: AlertStatus::Active,
            title: String::new(),
            message: String::new(),
            subject: key.subject.clone(),
            source: String::new(),
            resource_type: String::new(),
            resource_id: None,
            device_id: None,
            labels: BTreeMap::new(),
            fingerprint: key.fingerprint(),
            count: 1,
            first_seen: at,
            last_seen: at,
            acknowledged_at: None,
            acknowledged_by: None,
            resolved_at: None,
            resolved_by: None,
            auto_resolved: false,
            caused_by: None,
            muted_until: None,
            muted_by: None,
        }
    }

    pub fn key(&self) -> AlertKey {
        AlertKey::new(self.kind, self.subject.clone())
    }

    /// Takes over what is known of the subject.
    pub(super) fn describe(&mut self, rule_name: &str, subject: &Subject, message: String) {
        self.title = format!("{rule_name}: {}", subject.label);
        self.message = message;
        self.source = subject.source.to_owned();
        self.resource_type = subject.resource_type.to_owned();
        self.resource_id.clone_from(&subject.resource_id);
        self.device_id = subject.device_id;
        self.labels = subject.labels.clone();
    }
}

/// Form in which an alert was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announced {
    /// In its own right, so that its end is sent, too.
    Sent,
    AsConsequence,
}

impl Announced {
    pub(super) fn is_sent(self) -> bool {
        self == Announced::Sent
    }
}

/// Alert with what the engine keeps about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub alert: Alert,
    /// Form in which receivers heard of it. `None` before that, and while a short alert is not worth a notification.
    pub announced: Option<Announced>,
    /// The notification that it is raised is still to be made.
    pub is_due: bool,
    /// The condition had ended at this time, and the alert waits whether it returns. An alert that flaps resolves only
    /// after a quiet time.
    pub ended_at: Option<Timestamp>,
    /// Its condition has returned since it was raised.
    pub has_flapped: bool,
    /// Time at which its condition ends if nothing more is observed, also by the next run.
    #[serde(default)]
    pub holds_until: Option<Timestamp>,
    /// Time at which it was muted.
    #[serde(default)]
    pub muted_at: Option<Timestamp>,
}

impl Record {
    /// Returns the times of the mute.
    pub(super) fn mute_times(&self, now: Now) -> Option<Mute> {
        Some(Mute::restore(self.muted_at?, self.alert.muted_until?, now))
    }

    /// Takes over the mute of the alert before.
    pub(super) fn keep_mute(&mut self, before: Record) {
        self.muted_at = before.muted_at;
        (self.alert.muted_until, self.alert.muted_by) = (before.alert.muted_until, before.alert.muted_by);
    }
}

/// Change of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transition {
    Raised,
    /// The cause of a consequence ended, and the consequence did not.
    Promoted,
    Acknowledged,
    Muted,
    /// Its mute has ended, and it still lasts.
    Unmuted,
    Resolved,
}

/// Transition for receivers outside, in the order of its sequence number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    pub sequence: u64,
    pub at: Timestamp,
    pub transition: Transition,
    /// The alert is a consequence of another. It is not sent.
    pub is_consequence: bool,
    /// Alert after the transition.
    pub alert: Alert,
}
