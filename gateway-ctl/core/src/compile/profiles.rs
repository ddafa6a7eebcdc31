//! Profiles of devices in the plan: the egress of traffic that no policy matches. A device has a profile itself, by a
//! group or by its trust class. Each profile in use becomes one policy after all others. Like devices, the present
//! profiles apply.
//!
//! Before the policies, a profile would take their traffic. Explanations and matrices show it with the priority
//! 1000001; it has no counters.

use std::collections::BTreeMap;

use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::policy_source::SourceType;
use gateway_model::kinds::profile::Profile;
use gateway_model::resource::Meta;

use super::Input;

/// Behind that of every policy: those end at 1 000 000.
pub(super) const PRIORITY: i64 = 1_000_001;

impl Input<'_> {
    /// The profiles in use, as policies for the devices that use them.
    pub(super) fn defaults(&self) -> Vec<RoutingPolicy> {
        if self.state.profiles.is_empty() {
            return Vec::new();
        }
        let mut users: BTreeMap<Id, Vec<String>> = BTreeMap::new();
        for device in self.state.devices.iter() {
            if let Some(profile) = self.state.profile_of(device) {
                users.entry(profile.meta.id).or_default().push(device.meta.id.to_string());
            }
        }
        let profiles =
            users.into_iter().filter_map(|(id, devices)| Some((self.state.profiles.get(id)?, devices)));
        profiles.map(|(profile, devices)| self.default_policy(profile, &devices)).collect()
    }

    /// The policy that a profile is for the devices that use it; none if none does.
    pub(super) fn default_of(&self, profile: Id) -> Option<RoutingPolicy> {
        self.defaults().into_iter().find(|policy| policy.meta.id == profile)
    }

    fn default_policy(&self, profile: &Profile, devices: &[String]) -> RoutingPolicy {
        let policy = RoutingPolicy {
            // Counters belong to policies; 0 is none of them.
            meta: Meta { slot: 0, ..profile.meta.clone() },
            name: format!("profile {}", profile.name),
            priority: PRIORITY,
            source_type: SourceType::Device,
            source_value: devices.join(","),
            profile: Some(profile.meta.id.to_string()),
            ..RoutingPolicy::default()
        };
        self.state.resolved(&policy).into_owned()
    }
}
