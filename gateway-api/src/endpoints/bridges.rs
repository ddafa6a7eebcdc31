//! Bridges: transports that carry tunnels, and segments that connect a network to an egress.

use std::net::SocketAddr;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::plan::{TransportKind, TransportTarget};
use gateway_ctl::reconcile::Reason;
use gateway_ctl::services::bridges::{Step, test as probe};
use gateway_ctl::world::{Live as AtWork, World};
use gateway_model::kinds::Bridge;
use gateway_model::kinds::bridge::{
    BridgeKind, BridgeLive, BridgeStatus, BridgeTest, Transport, TransportType,
};
use gateway_model::kinds::routing_policy::PolicyStatus;
use gateway_model::{Id, Kind, Resource, State, Tunnel};
use gateway_outbound::Resolver;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::collection::{Live, Object, expected, shown};
use crate::table::{Audit, Collection, Effect, Ops, Table};

const KIND: &Kind = &Kind::of::<Bridge>();
const LIVE: Option<Live> = Some(Live::beside(observe));

pub(super) fn rows(t: &mut Table) {
    t.collection::<Bridge>(Collection {
        path: "/bridges",
        item: "/bridges/{id}",
        actions: ["create_bridge", "replace_bridge", "delete_bridge"],
        ops: Ops::ALL,
        live: LIVE,
    });
    let stores = Effect::Stores(Audit { action: "toggle_bridge", resource_type: Bridge::NOUN });
    t.command("/bridges/{id}/toggle", "toggle_bridge", stores, toggle)
        .summary("Toggle a bridge between enabled and disabled")
        .doc("Tunnels over a disabled bridge are unavailable; they never bypass it.")
        .tagged();
    t.view("/bridges/status", "get_bridges_status", status).summary("The health of all bridges").doc(
        "A transport is `up` if all tunnels that use it are connected through it, `degraded` if some are, `down` if none is. A segment has the state of its target.",
    );
    t.command("/bridges/{id}/test", "test_bridge", Effect::Reads, test)
        .summary("Test a bridge")
        .doc(
            "For a transport, connects to the remote end; for a SOCKS5 proxy, also requests a UDP association. The service behind a udp2tcp endpoint is not tested. For a segment, checks that source and target exist. The result is kept until the daemon ends.",
        );
    super::proxies::rows(t);
}

/// Adds the observed state of bridges.
fn observe(open: &Open, state: &State, shown: &mut [Value]) {
    let observed = open.live();
    super::observed::add_observed(shown, &state.bridges, |bridge| live(open, &observed, state, bridge));
}

/// Returns the tunnels that should use a transport now.
fn users<'a>(state: &'a State, bridge: &'a Bridge) -> impl Iterator<Item = &'a Tunnel> {
    let names = move |tunnel: &&Tunnel| {
        state.referred::<Bridge>(&tunnel.bridge).is_some_and(|named| named.meta.id == bridge.meta.id)
    };
    state.tunnels.iter().filter(|tunnel| tunnel.wanted_up()).filter(names)
}

fn live(open: &Open, observed: &AtWork<'_>, state: &State, bridge: &Bridge) -> BridgeLive {
    let status = match bridge.kind {
        _ if !bridge.enabled => BridgeStatus::Disabled,
        BridgeKind::Transport => transport_status(observed, state, bridge),
        BridgeKind::Segment => match observed.segment(bridge.meta.id) {
            None | Some(PolicyStatus::Blocked | PolicyStatus::Fallback) => BridgeStatus::Down,
            Some(PolicyStatus::Active) => BridgeStatus::Up,
            Some(PolicyStatus::Degraded) => BridgeStatus::Degraded,
            Some(PolicyStatus::Error | PolicyStatus::Disabled | PolicyStatus::Pending) => BridgeStatus::Error,
        },
    };
    let last_test = open.bridge_tests.last(bridge.meta.id);
    BridgeLive { status, healthy: status == BridgeStatus::Up, last_test }
}

fn transport_status(observed: &AtWork<'_>, state: &State, bridge: &Bridge) -> BridgeStatus {
    let (mut connected, mut broken, mut missing) = (0, 0, 0);
    for tunnel in users(state, bridge) {
        match observed.transport(tunnel.meta.id) {
            Some(connection) if connection.connected => connected += 1,
            Some(_) => broken += 1,
            None => missing += 1,
        }
    }
    match (connected, broken, missing) {
        // The transport could not be set up.
        (0, 0, 1..) if observed.is_enforced() => BridgeStatus::Error,
        (0, _, _) => BridgeStatus::Down,
        (_, 0, 0) => BridgeStatus::Up,
        _ => BridgeStatus::Degraded,
    }
}

/// Health of a bridge.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BridgeHealth {
    pub id: String,
    pub name: String,
    pub kind: BridgeKind,
    pub enabled: bool,
    #[serde(flatten)]
    pub live: BridgeLive,
    /// Tunnels that should use this transport.
    pub tunnels: Vec<BridgedTunnel>,
}

/// A tunnel over a transport.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BridgedTunnel {
    pub tunnel_id: String,
    pub tunnel: String,
    pub connected: bool,
    /// Reason why the tunnel is not connected; null if there is none.
    pub last_error: Option<String>,
    /// Number of connections since the bridge was assigned.
    pub connects: u64,
}

async fn status(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<BridgeHealth>>, ApiError> {
    let open = cx.open()?;
    let (state, observed) = (open.store.current(), open.live());
    let carried = |tunnel: &Tunnel| {
        let connection = observed.transport(tunnel.meta.id).cloned().unwrap_or_default();
        BridgedTunnel {
            tunnel_id: tunnel.meta.id.to_string(),
            tunnel: tunnel.name.clone(),
            connected: connection.connected,
            last_error: (!connection.reason.is_empty()).then_some(connection.reason),
            connects: connection.connects,
        }
    };
    let list = state.bridges.iter().map(|bridge| BridgeHealth {
        id: bridge.meta.id.to_string(),
        name: bridge.name.clone(),
        kind: bridge.kind,
        enabled: bridge.enabled,
        live: live(open, &observed, &state, bridge),
        tunnels: users(&state, bridge).map(carried).collect(),
    });
    Ok(WithHeaders::counted(list.collect()))
}

/// Result of a bridge test.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestOutcome {
    pub ok: bool,
    /// Total duration of all steps in milliseconds. Null after a failure, and for a segment.
    pub latency_ms: Option<f64>,
    pub steps: Vec<TestStep>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestStep {
    /// Name of the step. Transport: `resolve`, `connect`, `associate`. Segment: `source`, `target`.
    pub name: String,
    pub ok: bool,
    pub latency_ms: Option<f64>,
    pub error: Option<String>,
}

async fn test(cx: Cx, request: Req<()>) -> Result<WithHeaders<TestOutcome>, ApiError> {
    let id = &super::by_id::id_of(KIND, &cx, request.params.get("id"))?;
    let open = cx.open()?;
    let world = open.world();
    let found = id.parse().ok().and_then(|id| world.state.bridges.get(id));
    let bridge = found.cloned().ok_or_else(|| super::by_id::not_found::<Bridge>(id))?;
    let steps = match &bridge.transport {
        Some(transport) => probe(&target(&world, &bridge, transport, &open.endpoint_names).await).await,
        None => segment_steps(&world, bridge.meta.id),
    };
    let failed = steps.iter().find_map(|step| step.error.clone());
    let took: Duration = steps.iter().filter_map(|step| step.took).sum();
    let latency = (failed.is_none() && bridge.transport.is_some()).then(|| milliseconds(took));
    let kept =
        BridgeTest { at: open.now(), ok: failed.is_none(), latency_ms: latency, error: failed.clone() };
    open.bridge_tests.keep(bridge.meta.id, kept, |id| world.state.bridges.contains(id));
    let steps = steps.into_iter().map(|step| TestStep {
        name: step.name.to_owned(),
        ok: step.error.is_none(),
        latency_ms: step.took.map(milliseconds),
        error: step.error,
    });
    Ok(WithHeaders::new(TestOutcome { ok: failed.is_none(), latency_ms: latency, steps: steps.collect() }))
}

fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}

/// Returns the target as a tunnel uses the bridge. Without such a tunnel it carries the mark of the gateway itself.
async fn target(
    world: &World,
    bridge: &Bridge,
    transport: &Transport,
    endpoint_names: &Resolver,
) -> TransportTarget {
    let id = bridge.meta.id.to_string();
    let used = world.compiled().plan.transports.values().find(|target| target.bridge_id == id);
    if let Some(used) = used {
        return used.clone();
    }
    let address = match transport.endpoint_name() {
        None => transport.address.parse().ok().map(|ip| SocketAddr::new(ip, transport.port)),
        Some(name) => {
            let found = endpoint_names.resolve(&name, Some(Mark::OWN)).await;
            found.ok().and_then(|found| found.first().copied())
        }
    };
    let kind = match transport.r#type {
        TransportType::Udp2Tcp => TransportKind::Udp2Tcp,
        // The test sends no data.
        TransportType::Socks5 => TransportKind::Socks5 { to: "0.0.0.0:0".to_owned() },
    };
    TransportTarget {
        bridge_id: id,
        kind,
        near: SocketAddr::from(([127, 0, 0, 1], 0)),
        address,
        mark: Some(Mark::OWN),
    }
}

/// Returns the status of the two sides of a segment in the compiled plan.
fn segment_steps(world: &World, id: Id) -> Vec<Step> {
    let compiled = world.compiled();
    let missing = compiled.findings.iter().find(|finding| finding.policy == Some(id));
    let source = missing.map(|finding| finding.message.clone());
    let target = match compiled.policies.iter().find(|policy| policy.id == id) {
        None => Some("the bridge is disabled".to_owned()),
        Some(policy) => {
            let broken = policy.hops.iter().find(|hop| !hop.usable);
            broken.map(|hop| format!("{} {}: {}", hop.hop.r#type, hop.hop.target, hop.reason))
        }
    };
    vec![
        Step { name: "source", took: None, error: source },
        Step { name: "target", took: None, error: target },
    ]
}

async fn toggle(cx: Cx, request: Req<()>) -> Result<Object<Bridge>, ApiError> {
    let id = super::by_id::id_of(KIND, &cx, request.params.get("id"))?;
    let warnings = {
        let id = id.clone();
        cx.commit(move |draft| {
            let expected = expected(KIND, draft, &id, request.if_match.as_deref())?;
            let parsed = id.parse().map_err(|_| super::by_id::not_found::<Bridge>(&id))?;
            let (_, warnings) =
                draft.update::<Bridge>(parsed, expected, |bridge| bridge.enabled = !bridge.enabled)?;
            Ok(warnings)
        })
        .await?
    };
    let open = cx.open()?;
    open.reconcile(Reason::Revision).await?;
    let state = open.store.current();
    let (value, revision) = KIND.get(&state, &id)?;
    let mut reply = shown(open, &state, LIVE, value, revision);
    reply.warnings = warnings;
    Ok(Object::new(reply))
}
