//! Segments, lowered: an enabled bridge between networks becomes one policy behind all others.
//!
//! So a joined network carries nothing that a policy or a trust class forbids, and there is no second set of rules.
//! Like exceptions and profiles, the present segments apply.

use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::bridge::{Bridge, BridgeSourceType};
use gateway_model::kinds::policy_source::SourceType;
use gateway_model::kinds::routing_policy::FailPolicy;
use gateway_model::resource::Meta;

use super::input::Input;

/// Behind the profiles of devices.
const PRIORITY: i64 = super::profiles::PRIORITY + 1;

impl Input<'_> {
    /// The segments that are enabled, as policies behind all others.
    pub(super) fn segments(&self) -> Vec<RoutingPolicy> {
        self.state.bridges.iter().filter(|bridge| bridge.enabled).filter_map(segment).collect()
    }

    pub(super) fn segment_of(&self, id: Id) -> Option<RoutingPolicy> {
        segment(self.state.bridges.get(id).filter(|bridge| bridge.enabled)?)
    }
}

fn segment(bridge: &Bridge) -> Option<RoutingPolicy> {
    let (source, target) = (bridge.source.as_ref()?, bridge.target.as_ref()?);
    let source_type = match source.r#type {
        BridgeSourceType::Interface => SourceType::Interface,
        BridgeSourceType::Vlan => SourceType::Vlan,
        BridgeSourceType::Subnet => SourceType::Subnet,
        BridgeSourceType::Tunnel => return None,
    };
    Some(RoutingPolicy {
        // Counters belong to policies; 0 is none of them.
        meta: Meta { slot: 0, ..bridge.meta.clone() },
        name: format!("bridge {}", bridge.name),
        priority: PRIORITY,
        source_type,
        source_value: source.value.clone(),
        hops: vec![target.clone()],
        fail_policy: Some(FailPolicy::Closed),
        ..RoutingPolicy::default()
    })
}
