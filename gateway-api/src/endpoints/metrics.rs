//! `GET /metrics` in the OpenMetrics text format 1.0. A scrape reads the same values as the other endpoints; each
//! service adds what it measures.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use gateway_common::verdict::Reason;
use gateway_core::health::{CheckState, TrackedCheck};
use gateway_ctl::metrics::{counter, counters, gauge, gauges, seconds};
use gateway_ctl::reconcile::Status;
use gateway_ctl::services::events::Recent;
use gateway_model::kinds::routing_policy::Hits;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::request::Req;
use crate::table::Table;

const MEDIA: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PREFIX: &str = "gateway";

pub(super) fn rows(t: &mut Table) {
    t.stream("/metrics", "get_metrics", MEDIA, metrics)
        .summary("Metrics for Prometheus")
        .doc("OpenMetrics 1.0 as text. Names begin with gateway_; policies and tunnels are distinguished by id and name.")
        .outside();
}

async fn metrics(cx: Cx, _: Req<()>) -> Result<Body, ApiError> {
    page(cx.open()?, cx.api.started.elapsed()).map(Body::from)
}

/// Returns the page. `uptime` is the time since the daemon started.
pub(crate) fn page(open: &Open, uptime: Duration) -> Result<String, ApiError> {
    let mut registry = Registry::with_prefix(PREFIX);
    service(&mut registry, open, uptime.as_secs_f64());
    let status = open.world().status;
    enforcement(&mut registry, &status);
    checks(&mut registry, open);
    dataplane(&mut registry, open)?;
    fast_path(&mut registry, open)?;
    blocks(&mut registry, open)?;
    policies(&mut registry, open);
    tunnels(&mut registry, open);
    for services in open.all_services() {
        services.measure(&mut registry);
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| ApiError::internal(&error))?;
    Ok(text)
}

fn service(registry: &mut Registry, open: &Open, uptime: f64) {
    let state = open.store.current();
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    gauges(
        registry,
        "build_info",
        "Version of the daemon, as a label; the value is always 1",
        [(version, 1)],
    );
    let now = open.store.clock().now().as_millisecond() as f64 / 1_000.0;
    seconds(registry, "start_time", "Start time of the daemon since the Unix epoch", now - uptime);
    gauge(registry, "store_revision", "Revision of the stored configuration", state.revision.0);
    gauge(
        registry,
        "applied_revision",
        "Revision of the configuration that was applied last",
        state.applied.revision.0,
    );
    let pending = u64::try_from(state.pending_policies()).unwrap_or(u64::MAX);
    gauge(
        registry,
        "policies_pending_apply",
        "Policies whose stored form differs from the applied one",
        pending,
    );
    let kinds = [
        ("device", state.devices.iter().count()),
        ("routing_policy", state.routing_policies.iter().count()),
        ("tunnel", state.tunnels.iter().count()),
    ];
    let kinds = kinds
        .map(|(kind, count)| (vec![("type", kind.to_owned())], i64::try_from(count).unwrap_or(i64::MAX)));
    gauges(registry, "objects", "Stored objects by type", kinds);
}

fn enforcement(registry: &mut Registry, status: &Status) {
    counter(registry, "reconcile_runs", "Runs that compared the kernel with the plan", status.run);
    let duration = status.duration_ms as f64 / 1_000.0;
    seconds(registry, "reconcile_duration", "Duration of the last reconcile run", duration);
    counter(
        registry,
        "reconcile_drift",
        "Kernel entries that were found changed by another program",
        status.drift_found,
    );
    let subsystems = status.subsystems.iter().map(|(name, subsystem)| {
        (vec![("subsystem", (*name).to_owned())], i64::from(subsystem.outcome.is_ok()))
    });
    gauges(
        registry,
        "subsystem_healthy",
        "1 if the last reconcile run brought the subsystem to the plan, else 0",
        subsystems,
    );
}

fn checks(registry: &mut Registry, open: &Open) {
    let checks = open.checks.last();
    let states = checks.iter().flat_map(|TrackedCheck { check, .. }| {
        CheckState::ALL.iter().map(|state| {
            let labels = vec![("check", check.name.to_owned()), ("state", state.as_str().to_owned())];
            (labels, i64::from(check.state == *state))
        })
    });
    gauges(registry, "health_check", "1 for the state of the health check, 0 for the others", states);
}

fn dataplane(registry: &mut Registry, open: &Open) -> Result<(), ApiError> {
    let counted = open
        .enforcement
        .dataplane()
        .counters(&open.worlds.last().facts, &open.handles.get::<Recent>())
        .map_err(|error| ApiError::internal(&error))?;
    let verdicts = || counted.verdicts.iter().map(|(reason, hits)| (vec![("reason", reason.clone())], hits));
    counters(
        registry,
        "verdict_packets",
        "Packets from LAN devices, by reason of the verdict",
        verdicts().map(|(labels, hits)| (labels, hits.packets)),
    );
    counters(
        registry,
        "verdict_bytes",
        "Bytes of packets from LAN devices, by reason of the verdict",
        verdicts().map(|(labels, hits)| (labels, hits.bytes)),
    );
    counter(
        registry,
        "unrecorded_flow_packets",
        "Packets of flows that are not in the flow table because their device exceeded its rate of new flows",
        counted.unrecorded.packets,
    );
    let prevented = counted
        .prevented_leaks
        .iter()
        .map(|(interface, hits)| (vec![("interface", interface.clone())], hits.packets));
    counters(
        registry,
        "guard_dropped_packets",
        "Packets dropped by the egress guard, by interface",
        prevented,
    );
    Ok(())
}

fn fast_path(registry: &mut Registry, open: &Open) -> Result<(), ApiError> {
    let stats = open.enforcement.dataplane().fast_path().map_err(|error| ApiError::internal(&error))?;
    gauge(
        registry,
        "fast_path_enabled",
        "1 while the fast path of established flows is on",
        u64::from(stats.on),
    );
    gauge(
        registry,
        "fast_path_entries",
        "Entries of the fast path, two for each flow; counted once a minute",
        stats.entries,
    );
    let packets = stats.counters.iter();
    counters(
        registry,
        "fast_path_packets",
        "Packets of the fast path by what became of them",
        packets.map(|(counter, hits)| (vec![("kind", counter.as_str().to_owned())], hits.packets)),
    );
    counters(
        registry,
        "fast_path_epochs",
        "Changes after which no entry of the fast path was valid, by cause",
        stats.changes.iter().map(|(change, count)| (vec![("cause", change.as_str().to_owned())], *count)),
    );
    let xdp = open.enforcement.dataplane().xdp().map_err(|error| ApiError::internal(&error))?;
    let packets = xdp.counters.iter();
    counters(
        registry,
        "xdp_packets",
        "Packets of the fast path in the drivers by what became of them",
        packets.map(|(counter, hits)| (vec![("kind", counter.as_str().to_owned())], hits.packets)),
    );
    Ok(())
}

/// Adds the packets of privacy blocks, by device, policy and block.
fn blocks(registry: &mut Registry, open: &Open) -> Result<(), ApiError> {
    let blocks = open.enforcement.dataplane().block_hits().map_err(|error| ApiError::internal(&error))?;
    let state = open.store.current();
    let devices: BTreeMap<u32, &str> =
        state.devices.iter().map(|device| (device.meta.slot, device.name.as_str())).collect();
    let policies: BTreeMap<u32, &str> =
        state.routing_policies.iter().map(|policy| (policy.meta.slot, policy.name.as_str())).collect();
    let hits = blocks.hits.iter().filter_map(|(key, hits)| {
        let reason = Reason::from_wire(u8::try_from(key.reason).ok()?)?;
        let name = |names: &BTreeMap<u32, &str>, number: u32| {
            names.get(&number).copied().unwrap_or_default().to_owned()
        };
        let labels = vec![
            ("device", name(&devices, key.device)),
            ("policy", name(&policies, key.policy)),
            ("reason", reason.as_str().to_owned()),
        ];
        Some((labels, hits.packets))
    });
    let mut sums: BTreeMap<Vec<(&'static str, String)>, u64> = BTreeMap::new();
    hits.for_each(|(labels, packets)| *sums.entry(labels).or_default() += packets);
    counters(
        registry,
        "blocked_packets",
        "Packets to other resolvers or of blocked protocols, by device, policy and reason of the verdict",
        sums,
    );
    Ok(())
}

fn policies(registry: &mut Registry, open: &Open) {
    let observed = open.live();
    let state = &observed.world.state;
    let live: Vec<_> = state
        .routing_policies
        .iter()
        .map(|policy| {
            let labels = vec![("id", policy.meta.id.to_string()), ("name", policy.name.to_string())];
            (labels, observed.policy(policy))
        })
        .collect();
    let each =
        |value: fn(&Hits) -> u64| live.iter().map(move |(labels, live)| (labels.clone(), value(&live.hits)));
    counters(registry, "policy_packets", "Packets that matched the policy", each(|hits| hits.packets));
    counters(registry, "policy_bytes", "Bytes of packets that matched the policy", each(|hits| hits.bytes));
    let states = live.iter().map(|(labels, live)| {
        let mut labels = labels.clone();
        labels.push(("status", live.status.to_string()));
        (labels, 1)
    });
    gauges(registry, "policy_status", "Status of the policy, as a label; the value is always 1", states);
}

fn tunnels(registry: &mut Registry, open: &Open) {
    let observed = open.live();
    let state = &observed.world.state;
    let live: Vec<_> = state
        .tunnels
        .iter()
        .map(|tunnel| {
            let labels = vec![("id", tunnel.meta.id.to_string()), ("name", tunnel.name.clone())];
            (labels, observed.tunnel(tunnel))
        })
        .collect();
    let healthy = live.iter().map(|(labels, live)| (labels.clone(), i64::from(live.healthy)));
    gauges(registry, "tunnel_up", "1 if policies may send traffic into the tunnel, else 0", healthy);
    let received = live.iter().map(|(labels, live)| (labels.clone(), live.rx_bytes));
    counters(registry, "tunnel_receive_bytes", "Bytes of encrypted packets received", received);
    let sent = live.iter().map(|(labels, live)| (labels.clone(), live.tx_bytes));
    counters(registry, "tunnel_transmit_bytes", "Bytes of encrypted packets sent", sent);
    let restarts = live.iter().map(|(labels, live)| (labels.clone(), u64::from(live.restarts)));
    counters(registry, "tunnel_restarts", "Restarts of the tunnel", restarts);
}
