//! Common parts of the DNS kinds: the clients that a rule applies to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Device, DeviceGroup, PrivacyClass};
use crate::bulk_edit::Names;
use crate::id::Id;
use crate::id_or_name::{check_reference, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::Resource;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    pub enum Weekday {
        Mon = "mon",
        Tue = "tue",
        Wed = "wed",
        Thu = "thu",
        Fri = "fri",
        Sat = "sat",
        Sun = "sun",
    }
}

/// Clients that an object applies to. All clients if every list is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Scope {
    /// Ids of devices.
    pub devices: Vec<Id>,
    /// Ids of device groups.
    pub groups: Vec<Id>,
    /// Id or name of a privacy class: the devices of that class.
    pub privacy_class: Option<String>,
}

impl Scope {
    pub(super) fn check(&self, path: &str, state: &State, problems: &mut Problems) {
        check_ids::<Device>(&format!("{path}.devices"), &self.devices, state, problems);
        check_ids::<DeviceGroup>(&format!("{path}.groups"), &self.groups, state, problems);
        let path = format!("{path}.privacy_class");
        check_reference::<PrivacyClass>(&path, &self.privacy_class, state, problems);
    }

    pub(super) fn refs(&self, path: &str) -> Vec<Ref> {
        let mut refs = id_refs(path, &self.devices, &self.groups);
        let class = format!("{path}.privacy_class");
        refs.extend(reference::<PrivacyClass>(&class, &self.privacy_class, Hold::Firm));
        refs
    }
}

/// Puts the ids of devices and groups where an input names them.
pub(super) fn resolve_scope(input: &mut Map<String, Value>, names: &Names<'_>) {
    if let Some(Value::Object(scope)) = input.get_mut("scope") {
        names.resolve_all(Device::NOUN, scope.get_mut("devices"));
        names.resolve_all(DeviceGroup::NOUN, scope.get_mut("groups"));
    }
}

/// References to devices and groups. Firm: with the last of them gone the rest would be for everyone.
pub(super) fn id_refs(path: &str, devices: &[Id], groups: &[Id]) -> Vec<Ref> {
    let devices = devices.iter().map(|id| Ref::new(Device::NOUN, id, format!("{path}.devices"), Hold::Firm));
    let groups =
        groups.iter().map(|id| Ref::new(DeviceGroup::NOUN, id, format!("{path}.groups"), Hold::Firm));
    devices.chain(groups).collect()
}

/// Reports ids that nothing has, and those given twice.
pub(super) fn check_ids<R: Resource>(path: &str, ids: &[Id], state: &State, problems: &mut Problems) {
    for (index, id) in ids.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if ids[..index].contains(id) {
            problems.add(code::DUPLICATE, path, format!("{id} is given twice."));
        } else if !R::table(state).contains(*id) {
            let message = format!("There is no {} {id}.", R::NOUN.replace('_', " "));
            problems.add(code::UNKNOWN_REFERENCE, path, message);
        }
    }
}

#[cfg(test)]
mod tests;
