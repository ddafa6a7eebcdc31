//! Rules of alerts: one for each thing that can be alerted of. They are edited, not made.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::dns::{check_ids, id_refs, resolve_scope};
use super::{Device, DeviceGroup};
use crate::bulk_edit::Names;
use crate::edit::EditError;
use crate::id::Id;
use crate::id_or_name::keep_builtin;
use crate::problem::{Problems, code};
use crate::references::Ref;
use crate::resource::{Keys, Meta, Resource};
use crate::settings::groups::Severity;
use crate::state::State;
use crate::upstream::{check_web_address, normalise_web_address};
use crate::validated::{check_free_text, check_name, text_enum};

mod builtin;

pub use builtin::AlertKind;
use builtin::{RULES, Row};

text_enum! {
    /// Recipients of the alert.
    #[derive(Default)]
    pub enum Notify {
        None = "none",
        #[default]
        Webhook = "webhook",
    }
}

/// Devices that a rule applies to. All devices if both lists are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlertScope {
    /// Ids of devices.
    pub devices: Vec<Id>,
    /// Ids of device groups.
    pub groups: Vec<Id>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlertRule {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub description: String,
    #[schemars(extend("readOnly" = true))]
    pub kind: AlertKind,
    pub enabled: bool,
    pub severity: Severity,
    /// Threshold of the counted or measured value; the rule's description names it.
    pub threshold: f64,
    /// Seconds over which it counts or measures.
    pub window_sec: u32,
    /// Seconds in which the same alert is not raised again.
    pub cooldown_sec: u32,
    /// An alert whose reason is gone resolves itself.
    pub auto_resolve: bool,
    pub notify: Notify,
    pub scope: AlertScope,
    /// URL instead of the default webhook.
    pub webhook_url: Option<String>,
}

impl Default for AlertRule {
    fn default() -> AlertRule {
        AlertRule {
            meta: Meta::default(),
            name: String::new(),
            description: String::new(),
            kind: AlertKind::default(),
            enabled: true,
            severity: Severity::Warning,
            threshold: 0.0,
            window_sec: 0,
            cooldown_sec: 300,
            auto_resolve: true,
            notify: Notify::Webhook,
            scope: AlertScope::default(),
            webhook_url: None,
        }
    }
}

/// The form in which a rule shows its id.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct AlertRuleShown {
    /// The kind.
    id: AlertKind,
}

const SCHEMES: &[&str] = &["https", "http"];

impl Resource for AlertRule {
    const NOUN: &'static str = "alert_rule";
    const COLLECTION: &'static str = "alert_rules";
    const READ_ONLY: &'static [&'static str] = &[];
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        self.kind.as_str()
    }

    fn builtin(now: Timestamp) -> Vec<AlertRule> {
        (1..).zip(RULES).map(|(slot, row)| rule(slot, row, now)).collect()
    }

    fn alias(&self) -> Option<&str> {
        Some(self.kind.as_str())
    }

    fn spelling(name: &str) -> String {
        name.replace('-', "_")
    }

    fn prepare(&mut self) {
        if let Some(url) = &mut self.webhook_url {
            normalise_web_address(url, SCHEMES);
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if !(0.0..=1e12).contains(&self.threshold) {
            problems.add(code::RANGE, "threshold", "A number that is not negative.");
        }
        for (field, seconds) in [("window_sec", self.window_sec), ("cooldown_sec", self.cooldown_sec)] {
            if seconds > 7 * 86_400 {
                problems.add(code::RANGE, field, "At most 604800 seconds, a week.");
            }
        }
        check_ids::<Device>("scope.devices", &self.scope.devices, state, problems);
        check_ids::<DeviceGroup>("scope.groups", &self.scope.groups, state, problems);
        if let Some(url) = &self.webhook_url {
            check_web_address("webhook_url", url, SCHEMES, problems);
            if self.notify == Notify::None {
                problems.warn("webhook_url", "It is not used while notify is none.");
            }
        }
        if let Some(capability) = self.kind.needs() {
            problems.lacks("", capability);
        }
    }

    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        keep_builtin(self, true)
    }

    fn refs(&self) -> Vec<Ref> {
        id_refs("scope", &self.scope.devices, &self.scope.groups)
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        resolve_scope(input, names);
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("kind", self.kind.as_str());
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        input.insert("kind".into(), before.kind.as_str().into());
    }

    fn add_derived(&self, _state: &State, shown: &mut Map<String, Value>) {
        shown.insert("id".into(), self.kind.as_str().into());
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(AlertRuleShown::json_schema(generator))
    }
}

/// Makes a rule that every installation has.
fn rule(slot: u32, row: &Row, now: Timestamp) -> AlertRule {
    let (kind, name, description, severity, threshold, window_sec) = row;
    AlertRule {
        meta: Meta::builtin(5, slot, now),
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        kind: *kind,
        // Devices that sleep come and go all day.
        enabled: *kind != AlertKind::DeviceOffline,
        severity: *severity,
        threshold: *threshold,
        window_sec: *window_sec,
        cooldown_sec: 300,
        auto_resolve: true,
        notify: Notify::Webhook,
        scope: AlertScope::default(),
        webhook_url: None,
    }
}

#[cfg(test)]
mod tests;
