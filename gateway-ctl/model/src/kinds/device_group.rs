//! Groups of devices. A group keeps its members; a device shows its groups from here.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::device::{Device, class_refs};
use super::privacy_class::PrivacyClass;
use super::profile::Profile;
use super::trust_class::TrustClass;
use crate::bulk_edit::Names;
use crate::id::Id;
use crate::id_or_name::check_reference;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_name};

/// A group of devices that policies can name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceGroup {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub description: String,
    /// Ids of devices.
    pub members: Vec<Id>,
    /// Trust class of members without their own.
    pub trust_class: Option<String>,
    /// Id or name of a privacy class.
    pub privacy_class: Option<String>,
    /// Id or name of a route profile for members without one, for traffic that no policy matches.
    pub profile: Option<String>,
    /// `#rrggbb`, for display.
    pub color: Option<String>,
}

impl Resource for DeviceGroup {
    const NOUN: &'static str = "device_group";
    const COLLECTION: &'static str = "device_groups";
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        let mut seen = BTreeSet::new();
        for (index, member) in self.members.iter().enumerate() {
            if !seen.insert(*member) {
                problems.add(
                    code::DUPLICATE,
                    format!("members[{index}]"),
                    format!("{member} is given twice."),
                );
            } else if !state.devices.contains(*member) {
                problems.add(
                    code::UNKNOWN_REFERENCE,
                    format!("members[{index}]"),
                    format!("There is no device {member}."),
                );
            }
        }
        check_reference::<TrustClass>("trust_class", &self.trust_class, state, problems);
        check_reference::<PrivacyClass>("privacy_class", &self.privacy_class, state, problems);
        check_reference::<Profile>("profile", &self.profile, state, problems);
        if let Some(color) = &self.color {
            let fine = color.len() == 7
                && color.starts_with('#')
                && color[1..].bytes().all(|b| b.is_ascii_hexdigit());
            if !fine {
                problems.add(code::FORMAT, "color", "Expected a colour such as #2f6d1b.");
            }
        }
    }

    fn refs(&self) -> Vec<Ref> {
        class_refs(&self.trust_class, &self.privacy_class, &self.profile)
            .chain(self.members.iter().map(|id| Ref::new(Device::NOUN, id, "members", Hold::Member)))
            .collect()
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        names.resolve_all(Device::NOUN, input.get_mut("members"));
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }
}
