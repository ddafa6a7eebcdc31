//! Demands of privacy classes on a device: those of its own class and of the classes of its groups, of which the strictest
//! counts. So the class of a group is a floor that a device cannot go below.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::privacy_class::{PrivacyClass, QueryLog};
use super::routing_policy::FailPolicy;
use super::{Device, DnsBlock, Exception};
use crate::state::State;

impl State {
    /// Returns the privacy classes whose demands a device has to meet. The first is the class of the device.
    pub fn privacy_classes_of(&self, device: &Device) -> impl Iterator<Item = &Arc<PrivacyClass>> {
        let of_groups = self.groups_of(device.meta.id);
        let of_groups = of_groups.filter_map(|group| self.referred::<PrivacyClass>(&group.privacy_class));
        self.privacy_class_of(device).into_iter().chain(of_groups)
    }

    /// Returns the weakest failure policy that policies may have for a device.
    pub fn fail_policy_floor_of(&self, device: &Device) -> FailPolicy {
        let floors = self.privacy_classes_of(device).map(|class| class.fail_policy_floor);
        floors.fold(FailPolicy::Open, FailPolicy::stricter)
    }

    /// Returns the fields of the query log that are kept for a device.
    pub fn query_log_of(&self, device: &Device) -> QueryLog {
        let logs = self.privacy_classes_of(device).map(|class| class.query_log);
        logs.fold(QueryLog::Full, QueryLog::stricter)
    }

    /// Returns the class that forbids exceptions which let a device out past its policies.
    pub fn class_without_exceptions(&self, device: &Device) -> Option<&Arc<PrivacyClass>> {
        self.privacy_classes_of(device).find(|class| !class.allow_exceptions)
    }

    /// Reports whether the classes of its device forbid an exception. They may have changed since it was made.
    pub fn is_forbidden(&self, exception: &Exception) -> bool {
        let device = self.devices.get(exception.device_id);
        exception.allows_egress()
            && device.is_some_and(|device| self.class_without_exceptions(device).is_some())
    }

    /// Reports whether a privacy class names a block list for its devices.
    pub fn is_telemetry_list(&self, list: &DnsBlock) -> bool {
        let names =
            |name: &String| self.privacy_classes.iter().any(|class| class.telemetry_lists.contains(name));
        list.name.as_ref().is_some_and(names)
    }

    /// Returns the names of the block lists against telemetry that apply to a device.
    pub fn telemetry_lists_of(&self, device: &Device) -> BTreeSet<&str> {
        self.privacy_classes_of(device).flat_map(|class| &class.telemetry_lists).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::Id;
    use crate::registry::kind;

    fn create(state: &mut State, kind_name: &str, body: Value) -> Id {
        kind(kind_name).unwrap().create(state, body).unwrap().id
    }

    #[test]
    fn classes_of_groups_are_floors() {
        let mut state = State::new(Timestamp::UNIX_EPOCH).begin(Timestamp::UNIX_EPOCH);
        let class = json!({"name": "quiet", "telemetry_lists": ["tv makers"]});
        create(&mut state, "privacy_class", class);
        let device = json!({"name": "tv", "mac": "02:00:00:00:00:01", "privacy_class": "quiet"});
        let device = create(&mut state, "device", device);
        let device = state.devices.get(device).unwrap().clone();
        let demands = |state: &State| {
            let forbids = state.class_without_exceptions(&device).map(|class| class.name.clone());
            (state.fail_policy_floor_of(&device), state.query_log_of(&device), forbids)
        };
        assert_eq!(demands(&state), (FailPolicy::Open, QueryLog::Full, None));
        for (group, class) in [("kids", "strict"), ("cameras", "isolated")] {
            let body =
                json!({"name": group, "members": [device.meta.id.to_string()], "privacy_class": class});
            create(&mut state, "device_group", body);
        }
        let forbids = Some("isolated".to_owned());
        assert_eq!(demands(&state), (FailPolicy::Closed, QueryLog::Off, forbids));
        assert_eq!(state.telemetry_lists_of(&device), BTreeSet::from(["tv makers"]));
    }
}
