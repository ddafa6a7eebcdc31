//! Traffic presets: bodies to begin a policy or a profile with.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::edit::EditError;
use crate::id_or_name::{keep_builtin, keep_name};
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_name, text_enum};

/// Number of the kind in the ids of built-in objects.
const KIND_NUMBER: u16 = 2;

text_enum! {
    #[derive(Default)]
    pub enum PresetCategory {
        Streaming = "streaming",
        Gaming = "gaming",
        Work = "work",
        Iot = "iot",
        #[default]
        Privacy = "privacy",
    }
}

/// Object that a preset creates: one of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PresetTemplate {
    /// Body of `POST /routing/policies`, but for the source value and the names of tunnels.
    pub policy: Option<Map<String, Value>>,
    /// Body of `POST /profiles`, but for the names of tunnels.
    pub profile: Option<Map<String, Value>>,
}

/// A traffic preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Preset {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub description: String,
    pub category: PresetCategory,
    pub template: PresetTemplate,
    /// Came with the service: cannot be deleted or renamed.
    #[schemars(extend("readOnly" = true))]
    pub builtin: bool,
}

impl Resource for Preset {
    const NOUN: &'static str = "preset";
    const COLLECTION: &'static str = "presets";
    const READ_ONLY: &'static [&'static str] = &["builtin"];
    const REQUIRED: &'static [&'static str] = &["name", "template"];

    fn label(&self) -> &str {
        &self.name
    }

    fn builtin(now: Timestamp) -> Vec<Preset> {
        builtin(now)
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if self.template.policy.is_some() == self.template.profile.is_some() {
            problems.add(code::CONFLICT, "template", "Give a policy or a profile, one of them.");
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, before.is_some_and(|before| before.builtin), state)
    }

    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        keep_builtin(self, self.builtin)
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        input.insert("builtin".into(), before.builtin.into());
    }
}

/// The presets every installation has.
fn builtin(now: Timestamp) -> Vec<Preset> {
    let preset = |slot: u32, category: PresetCategory, description: &str, policy: bool, body: Value| {
        let body = body.as_object().cloned();
        let template = match policy {
            true => PresetTemplate { policy: body, profile: None },
            false => PresetTemplate { policy: None, profile: body },
        };
        Preset {
            meta: Meta::builtin(KIND_NUMBER, slot, now),
            name: category.to_string(),
            description: description.to_owned(),
            category,
            template,
            builtin: true,
        }
    };
    vec![
        preset(
            1,
            PresetCategory::Streaming,
            "The default route, whatever the rest of the network does: services refuse the exits of tunnels.",
            true,
            json!({"name": "streaming", "priority": 400, "source_type": "device_group", "source_value": "", "hops": [], "fail_policy": "fail-open"}),
        ),
        preset(
            2,
            PresetCategory::Gaming,
            "The default route for the least delay, ahead of other policies.",
            true,
            json!({"name": "gaming", "priority": 300, "source_type": "device_group", "source_value": "", "hops": [], "fail_policy": "fail-open", "sticky": "source"}),
        ),
        preset(
            3,
            PresetCategory::Work,
            "One tunnel for all of a device's connections, or nothing.",
            false,
            json!({"name": "work", "hops": [], "fail_policy": "fail-closed", "sticky": "source"}),
        ),
        preset(
            4,
            PresetCategory::Iot,
            "Appliances through a tunnel; without it they have no internet, and the answer comes at once.",
            true,
            json!({"name": "iot", "priority": 500, "source_type": "device_group", "source_value": "", "hops": [], "fail_policy": "fail-closed", "reject": "unreachable"}),
        ),
        preset(
            5,
            PresetCategory::Privacy,
            "Connections shared among several tunnels, never without one.",
            false,
            json!({"name": "privacy", "hops": [], "splitting": true, "fail_policy": "fail-closed", "privacy_class": "isolated"}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::kind;

    #[test]
    fn every_template_makes_an_object_once_its_blanks_are_filled() {
        let mut state = State::new(Timestamp::UNIX_EPOCH).begin(Timestamp::UNIX_EPOCH);
        let group =
            kind("device_group").unwrap().create(&mut state, json!({"name": "g"})).unwrap().id.to_string();
        assert_eq!(state.presets.len(), 5);
        for preset in state.presets.clone().iter() {
            let (noun, body) = match (&preset.template.policy, &preset.template.profile) {
                (Some(policy), None) => ("routing_policy", policy),
                (None, Some(profile)) => ("profile", profile),
                other => panic!("{other:?}"),
            };
            let mut body = body.clone();
            if body.contains_key("source_value") {
                body.insert("source_value".into(), group.as_str().into());
            }
            let written = kind(noun).unwrap().create(&mut state, body.into()).unwrap();
            assert_eq!(written.warnings, [], "{}", preset.name);
        }
    }
}
