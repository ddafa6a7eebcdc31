//! Splitting: distribution of the new flows of a policy over several tunnels.

mod cover;
mod pools;

use gateway_core::compile::DRAIN;
use gateway_model::kinds::routing_policy::{HopMode, Sticky};
use gateway_model::kinds::{EndpointLive, EndpointState, SplittingEndpoint};
use gateway_model::{EditError, Id, Problems, Resource, RoutingPolicy, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::pools::{Pool, Pools, percent};
use super::routing::views::{ApplyResult, enforce, freeze};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Collection, Effect, Live, Ops, Table};

pub(super) fn rows(t: &mut Table) {
    t.collection::<SplittingEndpoint>(Collection {
        path: "/splitting/endpoints",
        item: "/splitting/endpoints/{id}",
        actions: ["create_splitting_endpoint", "replace_splitting_endpoint", "delete_splitting_endpoint"],
        ops: Ops::LIST | Ops::CREATE | Ops::DELETE,
        live: Some(Live::beside(observe)),
    });
    t.view("/splitting/status", "get_splitting_status", status)
        .summary("Pools: members, their share of new flows, and their flows");
    t.view("/splitting/dns/status", "get_splitting_dns_status", dns).summary("DNS egress of pools");
    t.view("/splitting/transport", "get_splitting_transport", transport)
        .summary("Tunnels in pools, and their MTU");
    t.action(
        "/splitting/activate",
        "activate_splitting",
        Effect::Stores(Audit { action: "activate_splitting", resource_type: RoutingPolicy::NOUN }),
        activate,
    )
    .summary("Enable or disable splitting of a policy, at once")
    .doc("Stores and applies the policy. A policy with other pending edits is rejected.")
    .answers(&[
        Code::NotFound,
        Code::InvalidState,
        Code::PolicyConflict,
        Code::ApplyInProgress,
        Code::ApplyFailed,
    ]);
    t.view("/splitting/cover/stats", "get_cover_stats", cover::stats)
        .summary("Counters of cover traffic and of payload")
        .doc("Cover traffic is configured by the key splitting.cover of /settings; the default is off.");
}

/// Adds the status of the splitting endpoints, summed over their pools.
fn observe(open: &Open, state: &State, shown: &mut [Value]) {
    if shown.is_empty() {
        return;
    }
    let pools = Pools::of(open);
    super::observed::add_observed(shown, &state.splitting_endpoints, |endpoint| {
        let of = |pool: &&Pool| endpoint.policy_id.is_none_or(|id| pool.policy_id == id.to_string());
        let concerned = || pools.pools.iter().filter(of);
        let members = || concerned().flat_map(|pool| &pool.endpoints).filter(|m| m.tunnel == endpoint.tunnel);
        let in_state = |state| members().any(|member| member.state == state);
        let state = match (in_state(EndpointState::Active), in_state(EndpointState::Draining)) {
            (true, _) => EndpointState::Active,
            (false, true) => EndpointState::Draining,
            (false, false) => EndpointState::Down,
        };
        let (healthy, bytes, rtt_ms) = pools.tunnel(&endpoint.tunnel);
        let flows = members().map(|member| member.flows).sum();
        let all = concerned().filter(|pool| pool.endpoints.iter().any(|m| m.tunnel == endpoint.tunnel));
        let share_pct = percent(flows, all.map(|pool| pool.flows).sum());
        EndpointLive { state, healthy, flows, bytes, rtt_ms, share_pct }
    });
}

/// Status of splitting.
#[derive(Debug, Serialize, JsonSchema)]
struct SplittingStatus {
    /// At least one policy in force splits.
    enabled: bool,
    /// `round_robin`: weighted round robin of new flows over the legs. The distribution is exact if all weights are
    /// equal.
    algorithm: &'static str,
    /// Stickiness of policies that set none.
    sticky: Sticky,
    /// Pools of the policies in force that split.
    policies: Vec<Pool>,
}

async fn status(cx: Cx, _: Req<()>) -> Result<SplittingStatus, ApiError> {
    let policies = pools(&cx).await?.pools;
    Ok(SplittingStatus {
        enabled: !policies.is_empty(),
        algorithm: "round_robin",
        sticky: Sticky::Flow,
        policies,
    })
}

async fn pools(cx: &Cx) -> Result<Pools, ApiError> {
    let cx = cx.clone();
    blocking(move || Ok(Pools::of(cx.open()?))).await?
}

/// DNS resolution of policies that split.
#[derive(Debug, Serialize, JsonSchema)]
struct SplittingDns {
    /// `shared`: queries to external resolvers are ordinary flows, and each takes the leg selected for it (with
    /// `sticky: source` the leg of its host). Queries that the gateway sends for a host of the policy use its legs in
    /// round robin. If the profile uses the name servers of the tunnel, the query goes through a tunnel of the policy
    /// that has some.
    mode: &'static str,
    /// The gateway is a resolver for its LAN.
    resolver: bool,
    per_endpoint: Vec<EndpointDns>,
}

/// DNS queries of the gateway through a tunnel. Excludes queries through a proxy behind it.
#[derive(Debug, Serialize, JsonSchema)]
struct EndpointDns {
    /// Addresses of the upstreams that are reached through the tunnel.
    tunnel: String,
    upstreams: Vec<String>,
    queries: u64,
    /// Number of queries without an answer, or with an error.
    failures: u64,
}

async fn dns(cx: Cx, _: Req<()>) -> Result<SplittingDns, ApiError> {
    let pools = pools(&cx).await?;
    let names = cx.open()?.names.clone();
    let asked = names.as_ref().map(|names| names.upstreams()).unwrap_or_default();
    let per_endpoint = pools.tunnels().into_iter().map(|tunnel| {
        let by_it = || asked.iter().filter(|one| one.egress == tunnel);
        EndpointDns {
            upstreams: by_it().map(|one| one.address.clone()).collect(),
            queries: by_it().map(|one| one.queries).sum(),
            failures: by_it().map(|one| one.failures).sum(),
            tunnel,
        }
    });
    Ok(SplittingDns { mode: "shared", resolver: names.is_some(), per_endpoint: per_endpoint.collect() })
}

/// Unit of splitting.
#[derive(Debug, Serialize, JsonSchema)]
struct SplittingTransport {
    /// `flow`: whole flows. A flow keeps its leg as long as the leg is available.
    mode: &'static str,
    protocols: [&'static str; 3],
    /// `steer`: QUIC is distributed like other UDP.
    quic: &'static str,
    /// Largest packet in bytes that fits all legs of all pools; null without a pool.
    mtu_min: Option<u16>,
    /// The MSS of TCP connections is clamped to the MTU of the leg.
    mss_clamp: bool,
    /// Seconds for which flows on a removed or disabled leg may finish. TCP connections are reset afterwards.
    drain_sec: i64,
}

async fn transport(cx: Cx, _: Req<()>) -> Result<SplittingTransport, ApiError> {
    let pools = pools(&cx).await?;
    let world = cx.open()?.world();
    let compiled = world.live();
    let legs = pools.tunnels();
    let legs =
        legs.iter().filter_map(|name| compiled.legs.tunnel(name).or_else(|| compiled.legs.mesh_peer(name)));
    Ok(SplittingTransport {
        mode: "flow",
        protocols: ["tcp", "udp", "icmp"],
        quic: "steer",
        mtu_min: legs.map(|leg| leg.mtu).min(),
        mss_clamp: true,
        drain_sec: DRAIN.as_secs(),
    })
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default)]
struct Activation {
    #[schemars(required)]
    policy_id: Option<Id>,
    enabled: bool,
}

impl Default for Activation {
    fn default() -> Self {
        Self { policy_id: None, enabled: true }
    }
}

/// Result of the activation.
#[derive(Debug, Serialize, JsonSchema)]
struct ActivationResult {
    policy_id: String,
    enabled: bool,
    #[serde(flatten)]
    applied: ApplyResult,
}

async fn activate(cx: Cx, request: Req<Activation>) -> Result<WithHeaders<ActivationResult>, ApiError> {
    let Activation { policy_id, enabled } = request.input;
    let Some(id) = policy_id else {
        let mut problems = Problems::new();
        problems.required("policy_id");
        return Err(ApiError::validation(&problems));
    };
    if let Some(pending) = cx.open()?.store.pending() {
        return Err(ApiError::apply_in_progress(&pending));
    }
    freeze(&cx, move |draft| switch(draft, id, enabled)).await?;
    let answer = enforce(&cx).await?;
    let activated = ActivationResult { policy_id: id.to_string(), enabled, applied: answer.data };
    let mut reply = WithHeaders::new(activated);
    reply.warnings = answer.warnings;
    Ok(reply)
}

fn switch(draft: &mut State, id: Id, enabled: bool) -> Result<(), EditError> {
    let resource_type = RoutingPolicy::NOUN;
    let refuse = |state: &'static str, message: &str| {
        Err(EditError::WrongState { resource_type, id, state, message: message.to_owned() })
    };
    let policy = draft.expect::<RoutingPolicy>(id, None)?;
    if !draft.is_applied(id) {
        return refuse("pending", "The policy was not applied as it stands; apply the policies first.");
    }
    if enabled && policy.hop_mode == HopMode::Failover {
        return refuse(
            "failover",
            "The policy takes the first hop that is available, so it shares nothing out.",
        );
    }
    draft.update::<RoutingPolicy>(id, None, |policy| policy.splitting = enabled)?;
    let policy = draft.expect::<RoutingPolicy>(id, None)?;
    match (draft.resolved(&policy).is_pool(), enabled) {
        (false, true) => {
            return refuse(
                "too_few_hops",
                "The policy has fewer than two vpn hops to share its traffic among.",
            );
        }
        (true, false) => {
            return refuse("splitting_by_profile", "The profile of the policy says that it splits.");
        }
        _ => {}
    }
    draft.freeze_policy(id);
    Ok(())
}
