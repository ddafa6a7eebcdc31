//! Rules in force, with their scopes resolved to devices.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::State;
use gateway_model::id::Id;
use gateway_model::kinds::AlertRule;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::Severity;
use jiff::SignedDuration;

use super::behaviour::behaviour;

/// Rule as the engine applies it.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveRule {
    pub name: String,
    pub enabled: bool,
    pub severity: Severity,
    pub threshold: f64,
    pub window: SignedDuration,
    pub cooldown: SignedDuration,
    pub auto_resolve: bool,
    /// Devices to which it applies; `None` if to all.
    pub devices: Option<BTreeSet<Id>>,
}

/// Rules of all kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules(BTreeMap<AlertKind, ActiveRule>);

impl Rules {
    /// Returns the rules of a state.
    pub fn of(state: &State) -> Rules {
        Rules(state.alert_rules.iter().map(|rule| (rule.kind, ActiveRule::of(rule, state))).collect())
    }

    pub fn from_rules(rules: impl IntoIterator<Item = (AlertKind, ActiveRule)>) -> Rules {
        Rules(rules.into_iter().collect())
    }

    /// Returns the rule of a kind, if it is enabled.
    pub(super) fn enabled(&self, kind: AlertKind) -> Option<&ActiveRule> {
        self.0.get(&kind).filter(|rule| rule.enabled)
    }

    pub(super) fn get(&self, kind: AlertKind) -> Option<&ActiveRule> {
        self.0.get(&kind)
    }
}

impl ActiveRule {
    fn of(rule: &AlertRule, state: &State) -> ActiveRule {
        let groups = state.device_groups.iter().filter(|group| rule.scope.groups.contains(&group.meta.id));
        let members = groups.flat_map(|group| group.members.iter().copied());
        let devices: BTreeSet<Id> = rule.scope.devices.iter().copied().chain(members).collect();
        let is_scoped = !rule.scope.devices.is_empty() || !rule.scope.groups.is_empty();
        ActiveRule {
            name: rule.name.clone(),
            enabled: rule.enabled,
            severity: rule.severity,
            threshold: rule.threshold,
            window: SignedDuration::from_secs(i64::from(rule.window_sec)),
            cooldown: SignedDuration::from_secs(i64::from(rule.cooldown_sec)),
            auto_resolve: rule.auto_resolve,
            devices: is_scoped.then_some(devices),
        }
    }

    /// Reports whether the rule applies to something of this device.
    pub(super) fn covers(&self, kind: AlertKind, device: Option<Id>) -> bool {
        match &self.devices {
            Some(devices) if behaviour(kind).is_about_devices => {
                device.is_some_and(|device| devices.contains(&device))
            }
            _ => true,
        }
    }
}
