//! Prefixes of mesh peers that are used without a policy of a user (`mesh.member.accept_routes`): one policy for each peer, behind
//! all others.
//!
//! So they take nothing that a policy or a trust class forbids, as with segments.

use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::policy_source::SourceType;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, HopType};
use gateway_model::resource::Meta;

use super::input::Input;
use crate::facts::MeshLeg;

/// Behind segments.
const PRIORITY: i64 = super::profiles::PRIORITY + 2;
/// First id of these policies. No stored object has one: it is of no version.
const FIRST_ID: u128 = 0x6d65_7368_0000_0000_0000_0000_0000_0000;

impl Input<'_> {
    /// The accepted prefixes, as policies behind all others.
    pub(super) fn mesh_routes(&self) -> Vec<RoutingPolicy> {
        let legs = self.facts.mesh.iter().flat_map(|mesh| &mesh.legs);
        legs.filter_map(|(name, leg)| mesh_route(name, leg)).collect()
    }

    pub(super) fn mesh_route_of(&self, id: Id) -> Option<RoutingPolicy> {
        self.mesh_routes().into_iter().find(|policy| policy.meta.id == id)
    }
}

/// Reports whether a policy of this id is made of prefixes of a mesh peer.
pub(crate) fn is_mesh_route(id: Id) -> bool {
    u128::from_be_bytes(*id.as_bytes()) >> 8 == FIRST_ID >> 8
}

fn mesh_route(name: &str, leg: &MeshLeg) -> Option<RoutingPolicy> {
    let prefixes = leg.routes.iter().filter(|net| leg.accepts_routes && net.prefix_len() > 0);
    let prefixes: Vec<String> = prefixes.map(ToString::to_string).collect();
    if prefixes.is_empty() {
        return None;
    }
    Some(RoutingPolicy {
        // Counters belong to policies; 0 is none of them.
        meta: Meta { id: Id::from_u128(FIRST_ID | u128::from(leg.number.get())), slot: 0, ..Meta::default() },
        name: format!("routes of {name}"),
        priority: PRIORITY,
        source_type: SourceType::Destination,
        source_value: prefixes.join(","),
        hops: vec![Hop { r#type: HopType::MeshPeer, target: name.to_owned() }],
        fail_policy: Some(FailPolicy::Closed),
        ..RoutingPolicy::default()
    })
}
