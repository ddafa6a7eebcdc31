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
use crate::text::text_enum;

text_enum! {
    #[derive(Default)]
    pub enum EndpointState {
        Active = "active",
        Draining = "draining",
        #[default]
        Down = "down",
    }
}

/// A splitting endpoint. Stored; in this version a policy's pool is made of its own vpn hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SplittingEndpoint {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Null: for every policy that splits.
    pub policy_id: Option<Id>,
    /// Name of the tunnel.
    pub tunnel: String,
    /// 1 to 16.
    pub weight: u8,
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

/// What is known of an endpoint; shown beside what is stored. Null is what this version does not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct EndpointLive {
    pub state: EndpointState,
    /// Of the tunnel.
    pub healthy: bool,
    pub flows: Option<u64>,
    pub bytes: Option<u64>,
    pub rtt_ms: Option<f64>,
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
        if !(1..=16).contains(&self.weight) {
            problems.add(code::RANGE, "weight", "Must be from 1 to 16.");
        }
        problems.warn(
            "",
            "Stored without effect: in this version a policy with splitting: true shares its traffic among its own vpn hops.",
        );
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
