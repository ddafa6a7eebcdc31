//! Splitting endpoints: tunnels that shall take a share of a policy's new connections.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::routing_policy::RoutingPolicy;
use super::tunnel::Tunnel;
use crate::id::Id;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    #[derive(Default)]
    pub enum EndpointState {
        Active = "active",
        Draining = "draining",
        #[default]
        Down = "down",
    }
}

/// Role of a tunnel in the pools of policies that split. A pool consists of the vpn hops of its policy. An endpoint
/// sets the weight of one hop, or removes it from the pool. It takes effect at once, without an apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SplittingEndpoint {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Null: for every policy that splits.
    pub policy_id: Option<Id>,
    /// Name of the tunnel.
    pub tunnel: String,
    /// Weight among the members for new flows, 1 to 16; replaces that of the tunnel.
    pub weight: u16,
    /// Disabled, the tunnel takes no new flows of these pools; those it has go on for half a minute.
    pub enabled: bool,
}

impl Default for SplittingEndpoint {
    fn default() -> SplittingEndpoint {
        SplittingEndpoint {
            meta: Meta::default(),
            policy_id: None,
            tunnel: String::new(),
            weight: 1,
            enabled: true,
        }
    }
}

/// Live state of an endpoint, shown beside the stored fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct EndpointLive {
    /// `active`: takes new flows of at least one of its pools. `draining`: only keeps flows that it has.
    pub state: EndpointState,
    /// Health of the tunnel.
    pub healthy: bool,
    /// Flows of its pools that it had a packet of in the last minute.
    pub flows: u64,
    /// Bytes in both directions through the tunnel since it came up, of any sender.
    pub bytes: u64,
    /// Round-trip time of the last probes through the tunnel; null without a reply.
    pub rtt_ms: Option<f64>,
    /// Share of the flows of its pools; null while they have none. A share of flows is no share of bytes.
    pub share_pct: Option<f64>,
}

impl Resource for SplittingEndpoint {
    const NOUN: &'static str = "splitting_endpoint";
    const COLLECTION: &'static str = "splitting_endpoints";
    const READ_ONLY: &'static [&'static str] = &["state", "healthy", "flows", "bytes", "rtt_ms", "share_pct"];
    const REQUIRED: &'static [&'static str] = &["tunnel"];

    fn label(&self) -> &str {
        &self.tunnel
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        if state.tunnel_by_name(&self.tunnel).is_none() {
            let known = state.tunnels.iter().map(|tunnel| tunnel.name.clone()).take(50).collect();
            let message = format!("There is no tunnel {:?}.", self.tunnel);
            problems.add(code::UNKNOWN_REFERENCE, "tunnel", message).allowed = Some(known);
        }
        if let Some(id) = self.policy_id.filter(|id| !state.routing_policies.contains(*id)) {
            problems.add(code::UNKNOWN_REFERENCE, "policy_id", format!("There is no routing policy {id}."));
        }
        if !(1..=256).contains(&self.weight) {
            problems.add(code::RANGE, "weight", "Must be from 1 to 256.");
        }
        let Some(policy) = self.policy_id.and_then(|id| state.routing_policies.get(id)) else { return };
        let whole = state.resolved(policy);
        if !whole.vpn_hops().any(|hop| hop.target == self.tunnel) {
            problems.warn("tunnel", "It is no vpn hop of the policy: the endpoint has no effect.");
        } else if !whole.is_pool() {
            problems.warn("policy_id", "The policy does not split: see POST /splitting/activate.");
        }
    }

    fn refs(&self) -> Vec<Ref> {
        let policy = self.policy_id.map(|id| Ref::new(RoutingPolicy::NOUN, id, "policy_id", Hold::Loose));
        let tunnel = Ref::new(Tunnel::NOUN, &self.tunnel, "tunnel", Hold::Loose);
        policy.into_iter().chain([tunnel]).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        let policy = self.policy_id.map_or_else(|| "all".to_owned(), |id| id.to_string());
        keys.unique("tunnel", format!("endpoint:{policy}:{}", self.tunnel));
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(EndpointLive::json_schema(generator))
    }
}
