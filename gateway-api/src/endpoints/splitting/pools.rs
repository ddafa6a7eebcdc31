//! Pools at run time: plan, tunnels and flow table combined.

use std::collections::{BTreeMap, BTreeSet};

use gateway_common::wire::Choice;
use gateway_core::compile::{CompiledPolicy, HopState};
use gateway_core::indexes::{LegId, PolicyIndex};
use gateway_ctl::services::flow_rate::FlowRates;
use gateway_ctl::services::mesh::MeshPeer;
use gateway_ctl::world::World;
use gateway_model::kinds::EndpointState;
use gateway_model::kinds::routing_policy::{HopType, Sticky};
use gateway_model::kinds::tunnel_health::TunnelLive;
use schemars::JsonSchema;
use serde::Serialize;

use crate::gateway::Open;

/// Seconds after its last packet for which a flow counts.
const RECENT_SECONDS: u32 = 60;

/// Pool of a policy.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pool {
    pub policy_id: String,
    pub policy: String,
    /// New flows are distributed now.
    pub active: bool,
    pub sticky: Sticky,
    pub endpoints: Vec<Member>,
    /// Number of flows with a packet in the last minute.
    pub flows: u64,
    /// New flows per minute, over the last minute. Null before the counter was read twice, and for policies that are
    /// sticky by address: they do not use the round-robin counter.
    pub new_flows_per_min: Option<f64>,
}

/// A tunnel or a mesh peer in a pool.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Member {
    /// Name of the tunnel or the mesh peer.
    pub tunnel: String,
    /// Weight from its splitting endpoint, else its own weight. That of a mesh peer is 1.
    pub weight: u32,
    /// `active`: receives new flows. `draining`: only keeps existing flows. `down`: neither.
    pub state: EndpointState,
    /// End of draining; null if it is not draining.
    pub draining_until: Option<jiff::Timestamp>,
    pub healthy: bool,
    /// Reason why it receives no new flows; empty if it does.
    pub reason: String,
    /// Number of flows of this policy with a packet in the last minute.
    pub flows: u64,
    /// Bytes in both directions through the tunnel since it came up, of all traffic.
    pub bytes: u64,
    /// Round-trip time of the last probes through the tunnel in milliseconds; null without answered probes.
    pub rtt_ms: Option<f64>,
    /// Share of the flows of the policy in percent; null without flows.
    pub share_pct: Option<f64>,
    /// Share of new flows in percent that it receives now.
    pub new_share_pct: f64,
}

/// All pools.
pub(super) struct Pools {
    pub pools: Vec<Pool>,
    /// Tunnels by name.
    tunnels: BTreeMap<String, TunnelLive>,
}

impl Pools {
    pub(super) fn of(open: &Open) -> Pools {
        let observed = open.live();
        let World { state, now, .. } = &observed.world;
        let (compiled, now) = (observed.world.live(), *now);
        let tunnels = state.tunnels.iter().map(|tunnel| (tunnel.name.clone(), observed.tunnel(tunnel)));
        let tunnels: BTreeMap<String, TunnelLive> = tunnels.collect();
        let peers = open.mesh_member.peers().unwrap_or_default();
        let of_hop = |hop: &HopState| match hop.hop.r#type {
            HopType::MeshPeer => peers
                .iter()
                .find(|peer| peer.name == hop.hop.target)
                .map_or((false, 0, None), |peer| of_peer(peer, hop.usable)),
            HopType::Vpn | HopType::Interface | HopType::Proxy => {
                tunnels.get(&hop.hop.target).map_or((false, 0, None), measured)
            }
        };
        let mut splitting =
            state.applied.policies.iter().filter(|p| p.is_pool() && p.in_force(now)).peekable();
        // The flow table may be large, so it is only read if needed.
        let flows = match splitting.peek() {
            Some(_) => open.enforcement.dataplane().flows_by_leg(RECENT_SECONDS),
            None => Ok(BTreeMap::new()),
        };
        let flows = flows.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read the flow table");
            BTreeMap::new()
        });
        let rates = open.handles.get::<FlowRates>().per_minute();
        let pool = |policy: &gateway_model::RoutingPolicy| {
            let at_work = compiled.policies.iter().find(|one| one.id == policy.meta.id)?;
            let sticky = policy.sticky.unwrap_or_default();
            let mut endpoints: Vec<Member> =
                members(at_work).map(|hop| member(at_work, hop, &flows, of_hop(hop))).collect();
            let all = endpoints.iter().map(|member| member.flows).sum();
            endpoints.iter_mut().for_each(|member| member.share_pct = percent(member.flows, all));
            let drawn = observed.policy(policy).routing && sticky == Sticky::Flow;
            Some(Pool {
                policy_id: policy.meta.id.to_string(),
                policy: policy.name.clone(),
                active: observed.policy(policy).routing
                    && endpoints.iter().any(|member| member.state == EndpointState::Active),
                sticky,
                endpoints,
                flows: all,
                new_flows_per_min: at_work
                    .number
                    .and_then(|number| rates.get(&number))
                    .copied()
                    .filter(|_| drawn),
            })
        };
        let pools = splitting.filter_map(pool).collect();
        Pools { pools, tunnels }
    }

    /// Returns the names of the tunnels and mesh peers in pools.
    pub(super) fn tunnels(&self) -> BTreeSet<String> {
        self.pools.iter().flat_map(|pool| &pool.endpoints).map(|member| member.tunnel.clone()).collect()
    }

    /// Returns health, traffic in bytes and round-trip time of a tunnel.
    pub(super) fn tunnel(&self, name: &str) -> (bool, u64, Option<f64>) {
        self.tunnels.get(name).map_or((false, 0, None), measured)
    }
}

fn measured(live: &TunnelLive) -> (bool, u64, Option<f64>) {
    (live.healthy, live.rx_bytes.saturating_add(live.tx_bytes), live.latency_ms)
}

/// Returns health, traffic in bytes and round-trip time of a mesh peer.
fn of_peer(peer: &MeshPeer, usable: bool) -> (bool, u64, Option<f64>) {
    let bytes = peer.rx.unwrap_or_default().saturating_add(peer.tx.unwrap_or_default());
    (usable, bytes, peer.latency_ms)
}

fn members(policy: &CompiledPolicy) -> impl Iterator<Item = &HopState> {
    policy.hops.iter().filter(|hop| hop.hop.r#type.is_tunnel())
}

fn member(
    policy: &CompiledPolicy,
    hop: &HopState,
    flows: &BTreeMap<(Option<PolicyIndex>, LegId), u64>,
    (healthy, bytes, rtt_ms): (bool, u64, Option<f64>),
) -> Member {
    let of_new = |choice: &Choice| {
        let legs = &choice.all()[..usize::from(choice.count).min(choice.all().len())];
        let places = legs.iter().filter(|leg| LegId::new(**leg) == hop.leg && hop.leg.is_some()).count();
        (places as u64, legs.len() as u64)
    };
    let kept = |choice: &Choice| hop.leg.is_some_and(|leg| choice.all().contains(&leg.get()));
    let (four, six) = (of_new(&policy.v4), of_new(&policy.v6));
    let (places, all) = if four.0 > 0 { four } else { six };
    let state = if places > 0 {
        EndpointState::Active
    } else if hop.draining.is_some() && (kept(&policy.v4) || kept(&policy.v6)) {
        EndpointState::Draining
    } else {
        EndpointState::Down
    };
    Member {
        tunnel: hop.hop.target.clone(),
        weight: hop.weight,
        state,
        draining_until: hop.draining.filter(|_| state == EndpointState::Draining),
        healthy,
        reason: hop.reason.clone(),
        flows: hop.leg.and_then(|leg| flows.get(&(policy.number, leg)).copied()).unwrap_or_default(),
        bytes,
        rtt_ms,
        share_pct: None,
        new_share_pct: percent(places, all).unwrap_or_default(),
    }
}

/// Returns a percentage with one decimal. `None` if `all` is 0.
pub(super) fn percent(part: u64, all: u64) -> Option<f64> {
    let thousandths = u128::from(part) * 1000 / u128::from(all.max(1));
    (all > 0).then(|| f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 10.0)
}
