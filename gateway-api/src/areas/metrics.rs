//! `GET /metrics`: what is measured, for Prometheus, in the OpenMetrics text format 1.0. Everything is read at the
//! time of the scrape, so a figure never differs from what the other rows show.

use axum::body::Body;
use gateway_ctl::reconcile::Status;
use gateway_model::kinds::routing_policy::Hits;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::request::Req;
use crate::table::Table;

const MEDIA: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PREFIX: &str = "gateway";

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;
type Counters = Family<Labels, Counter>;

pub fn rows(t: &mut Table) {
    t.stream("/metrics", "get_metrics", MEDIA, metrics)
        .summary("What is measured, for Prometheus")
        .doc("OpenMetrics 1.0 as text. Names begin with gateway_; policies and tunnels are told apart by id and name.")
        .outside();
}

async fn metrics(cx: Cx, _: Req<()>) -> Result<Body, ApiError> {
    let open = cx.open()?;
    let mut registry = Registry::with_prefix(PREFIX);
    service(&mut registry, open, cx.api.started.elapsed().as_secs());
    let status = open.world().status;
    enforcement(&mut registry, &status);
    dataplane(&mut registry, open)?;
    policies(&mut registry, open);
    tunnels(&mut registry, open);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| ApiError::internal(&error))?;
    Ok(Body::from(text))
}

fn service(registry: &mut Registry, open: &Open, uptime: u64) {
    let state = open.store.current();
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    gauges(registry, "build_info", "The daemon; always 1", [(version, 1)]);
    let seconds = Gauge::<i64>::default();
    seconds.set(number(uptime));
    registry.register_with_unit("uptime", "Since the daemon started", Unit::Seconds, seconds);
    gauge(registry, "store_revision", "Revision of the store", state.revision.0);
    gauge(registry, "applied_revision", "Revision of the last apply", state.applied.revision.0);
    let pending = u64::try_from(state.pending_policies()).unwrap_or(u64::MAX);
    gauge(registry, "pending_policies", "Stored policies that are not applied as they are", pending);
    let kinds = [
        ("device", state.devices.iter().count()),
        ("routing_policy", state.routing_policies.iter().count()),
        ("tunnel", state.tunnels.iter().count()),
    ];
    let kinds = kinds
        .map(|(kind, count)| (vec![("type", kind.to_owned())], i64::try_from(count).unwrap_or(i64::MAX)));
    gauges(registry, "objects", "Stored objects", kinds);
}

fn enforcement(registry: &mut Registry, status: &Status) {
    let runs = Counter::<u64>::default();
    runs.inc_by(status.run);
    registry.register("reconciles", "Comparisons of the kernel with the plan", runs);
    gauge(registry, "reconcile_milliseconds", "How long the last one took", status.duration_ms);
    let subsystems = status.subsystems.iter().map(|(name, subsystem)| {
        (vec![("subsystem", (*name).to_owned())], i64::from(subsystem.outcome.is_ok()))
    });
    gauges(registry, "subsystem_ok", "Whether a part of the kernel stands as wanted", subsystems);
}

fn dataplane(registry: &mut Registry, open: &Open) -> Result<(), ApiError> {
    let counted = open.enforcement.counters().map_err(|error| ApiError::internal(&error))?;
    let verdicts = || counted.verdicts.iter().map(|(reason, hits)| (vec![("reason", reason.clone())], hits));
    counters(
        registry,
        "verdict_packets",
        "Packets from LAN devices by the reason of their verdict",
        verdicts().map(|(labels, hits)| (labels, hits.packets)),
    );
    counters(registry, "verdict_bytes", "Their bytes", verdicts().map(|(labels, hits)| (labels, hits.bytes)));
    let no_labels = Vec::<(&str, String)>::new();
    counters(
        registry,
        "unrecorded_flow_packets",
        "Packets of flows without a record in the flow table, because their device exceeded its budget of new flows",
        [(no_labels, counted.unrecorded.packets)],
    );
    let prevented = counted
        .prevented_leaks
        .iter()
        .map(|(interface, hits)| (vec![("interface", interface.clone())], hits.packets));
    counters(
        registry,
        "prevented_leak_packets",
        "Packets without leave that were dropped at a way out",
        prevented,
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
    counters(registry, "policy_packets", "Packets that a policy decided", each(|hits| hits.packets));
    counters(registry, "policy_bytes", "Their bytes", each(|hits| hits.bytes));
    let states = live.iter().map(|(labels, live)| {
        let mut labels = labels.clone();
        labels.push(("status", live.status.to_string()));
        (labels, 1)
    });
    gauges(registry, "policy_status", "The status of a policy; always 1", states);
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
    gauges(registry, "tunnel_usable", "Whether policies may send traffic into a tunnel", healthy);
    let received = live.iter().map(|(labels, live)| (labels.clone(), live.rx_bytes));
    counters(registry, "tunnel_received_bytes", "Outer bytes received", received);
    let sent = live.iter().map(|(labels, live)| (labels.clone(), live.tx_bytes));
    counters(registry, "tunnel_sent_bytes", "Outer bytes sent", sent);
    let restarts = live.iter().map(|(labels, live)| (labels.clone(), u64::from(live.restarts)));
    counters(registry, "tunnel_restarts", "How often a tunnel was made anew", restarts);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(number(value));
    registry.register(name, help, gauge);
}

fn gauges(registry: &mut Registry, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, i64)>) {
    let family = Gauges::default();
    for (labels, value) in values {
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, help, family);
}

/// Counters of the kernel and of the store, taken over as they are.
fn counters(
    registry: &mut Registry,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) {
    let family = Counters::default();
    for (labels, value) in values {
        family.get_or_create(&labels).inc_by(value);
    }
    registry.register(name, help, family);
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
