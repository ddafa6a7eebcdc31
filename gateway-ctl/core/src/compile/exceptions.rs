//! Exceptions of devices in the plan. An exception that diverts a device becomes a policy before all others; quarantine
//! becomes a mark of the device. The present exceptions apply, not those of the last apply.
//!
//! Quarantine is a flag of the device, which nothing outranks. An exception does not permit what the trust class
//! forbids.

use std::borrow::Cow;

use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::exception::Exception;
use gateway_model::kinds::policy_source::{Source, SourceType};
use gateway_model::kinds::profile::Profile;
use gateway_model::kinds::routing_policy::FailPolicy;
use gateway_model::resource::Meta;
use jiff::Timestamp;

use super::Input;

/// Before that of every policy: those begin at 0.
pub(super) const PRIORITY: i64 = -1;

impl<'a> Input<'a> {
    /// The policy of this id, as it was applied or as an exception, a profile or a segment makes it.
    pub fn policy(&self, id: Id) -> Option<Cow<'a, RoutingPolicy>> {
        if let Some(policy) = self.state.applied.policies.get(id) {
            return Some(Cow::Borrowed(policy.as_ref()));
        }
        let Some(exception) = self.state.exceptions.get(id) else {
            return self.policy_behind(id).map(Cow::Owned);
        };
        let diverts = self.is_in_force(exception) && exception.diverts();
        diverts.then(|| Cow::Owned(self.diversion(exception)))
    }

    /// The policy that a profile, a segment or the prefixes of a mesh peer make.
    fn policy_behind(&self, id: Id) -> Option<RoutingPolicy> {
        self.default_of(id).or_else(|| self.segment_of(id)).or_else(|| self.mesh_route_of(id))
    }

    /// Returns the sources of a policy; of an exception its destinations.
    pub fn sources(&self, policy: &RoutingPolicy) -> Vec<Source> {
        let exception = self.state.exceptions.get(policy.meta.id);
        exception.and_then(|exception| exception.destinations()).unwrap_or_else(|| policy.sources())
    }

    /// Device to which a policy of this id is limited in addition to its sources: that of an exception for some
    /// destinations.
    pub fn only_for(&self, id: Id) -> Option<Id> {
        let exception = self.state.exceptions.get(id)?;
        exception.destinations().map(|_| exception.device_id)
    }

    /// Returns the end of the exception with this id.
    pub fn exception_end(&self, id: Id) -> Option<Timestamp> {
        self.state.exceptions.get(id)?.expires_at
    }

    /// Exceptions in force.
    pub fn active_exceptions(&self) -> impl Iterator<Item = &'a Exception> + use<'a> {
        let input = *self;
        self.state.exceptions.iter().filter(move |exception| input.is_in_force(exception))
    }

    /// Reports whether an exception has begun and not ended, and the privacy classes of its device allow it.
    pub fn is_in_force(&self, exception: &Exception) -> bool {
        exception.is_active(self.now) && !self.state.is_forbidden(exception)
    }

    /// Allows egress by the hops of its profile, or by the default route.
    pub(super) fn diversion(&self, exception: &Exception) -> RoutingPolicy {
        let state = self.state;
        let device = state.devices.get(exception.device_id);
        let device = device.map_or_else(|| exception.device_id.to_string(), |device| device.name.clone());
        let profile = state.referred::<Profile>(&exception.profile);
        RoutingPolicy {
            // Counters belong to policies; 0 is none of them.
            meta: Meta { slot: 0, ..exception.meta.clone() },
            name: format!("{} of {device}", exception.r#type),
            priority: PRIORITY,
            source_type: SourceType::Device,
            source_value: exception.device_id.to_string(),
            hops: profile.map(|profile| profile.hops.clone()).unwrap_or_default(),
            fail_policy: Some(profile.map_or(FailPolicy::Open, |profile| profile.fail_policy)),
            ..RoutingPolicy::default()
        }
    }
}
