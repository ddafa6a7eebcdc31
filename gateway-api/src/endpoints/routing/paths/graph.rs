//! `GET /policy/paths/graph`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::compile::{HopState, shared_uplinks};
use gateway_core::evaluate::Decision;
use gateway_core::gateway_verdict::HostCounts;
use gateway_core::paths::{HostPath, Paths, PolicyOrigin, PolicyPath};
use gateway_ctl::os::link_counters::{self, LinkTraffic};
use gateway_ctl::world::{Live, World};
use gateway_model::Id;
use gateway_model::kinds::proxy::Proxy;
use gateway_model::kinds::routing_policy::{FailPolicy, Hits, Hop, HopType, PolicyStatus};
use gateway_model::settings::uplink::{UplinkState, Wan};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::request::Req;

/// Graph of live paths, from hosts by policies and hops to uplinks. Hosts are those of the verdict in `/status`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathGraph {
    /// Number of hosts on the LAN, devices or not.
    pub devices: usize,
    /// Hosts by treatment.
    pub counts: HostCounts,
    /// Policies at work, in order of evaluation, with exceptions, profiles and bridges.
    pub policies: Vec<PathPolicy>,
    /// Hosts that no policy decides on.
    pub unmatched: Unmatched,
    /// Each hop that policies use.
    pub hops: Vec<PathHop>,
    pub uplinks: Vec<PathUplink>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathPolicy {
    pub id: Id,
    pub origin: PolicyOrigin,
    pub name: String,
    pub priority: i64,
    pub fail_policy: FailPolicy,
    /// `error` while the plan is not in the kernel.
    pub status: PolicyStatus,
    /// Number of hosts whose connections to the internet it decides on.
    pub devices: usize,
    /// Of its traffic now; of both families the one that exposes more.
    pub decision: Decision,
    /// Names of the tunnels or uplinks that its traffic leaves by; `default` for the default route.
    pub via: Option<String>,
    /// Decision when none of its hops is usable, by its failure policy.
    pub when_down: Decision,
    pub hops: Vec<PolicyHop>,
    pub active_hop: Option<Hop>,
    /// End of the exception that it is.
    pub expires_at: Option<Timestamp>,
    /// Packets from the LAN that matched it, blocked ones included. Null if they are not counted: without a kernel, and for an
    /// exception, profile or bridge.
    pub packets: Option<u64>,
    pub bytes: Option<u64>,
}

/// A hop of a policy.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PolicyHop {
    pub r#type: HopType,
    pub target: String,
    pub usable: bool,
    /// Human-readable reason for which it is not usable. Empty if it is.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Unmatched {
    pub devices: usize,
    /// Those of them whose traffic does not leave.
    pub blocked: usize,
    /// Those that leave by the default route.
    pub direct: usize,
}

/// A tunnel, proxy or uplink that policies name.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathHop {
    pub r#type: HopType,
    pub target: String,
    /// Id of the tunnel or proxy; null for an uplink, or if there is none of this name.
    pub id: Option<Id>,
    /// Status of the tunnel, proxy or uplink; `missing` if there is none of this name.
    pub status: String,
    /// Policies can use it.
    pub usable: bool,
    /// Human-readable reason for which it is not usable. Empty if it is.
    pub reason: String,
    /// Time of the last change of the tunnel's status; null if unknown.
    pub since: Option<Timestamp>,
    /// Ids of the policies that name it.
    pub policies: Vec<Id>,
    /// Number of hosts that leave by it now.
    pub devices: usize,
    /// Interface of the uplink that carries it at last; null if unknown.
    pub uplink: Option<String>,
    /// Latest handshake of the tunnel's peers.
    pub last_handshake: Option<Timestamp>,
    pub latency_ms: Option<f64>,
    /// Bytes through its interface; null if they are not counted, as for a proxy.
    pub rx_bytes: Option<u64>,
    pub tx_bytes: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathUplink {
    /// Name of the uplink, else of its interface.
    pub name: String,
    pub interface: String,
    pub state: UplinkState,
    /// Time since which the state is the same; null without probes.
    pub since: Option<Timestamp>,
    /// New connections by the default route use it.
    pub active: bool,
    /// Number of hosts whose traffic leaves directly by it.
    pub direct_devices: usize,
    /// Number of hosts whose traffic it carries, direct or inside a tunnel.
    pub devices: usize,
    /// Bytes through its interface; null if they are not counted.
    pub rx_bytes: Option<u64>,
    pub tx_bytes: Option<u64>,
    /// Addresses of the interface.
    pub addresses: Vec<IpAddr>,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<PathGraph, ApiError> {
    let (world, paths) = super::current::paths_now(&cx).await?;
    blocking(move || Ok(graph(cx.open()?, &world, &paths))).await?
}

fn graph(open: &Open, world: &World, paths: &Arc<Paths>) -> PathGraph {
    // Without a kernel nothing is observed.
    let traffic = world.attached.and_then(|_| link_counters::traffic().ok()).unwrap_or_default();
    let reader = open.enforcement.dataplane();
    let hits = |policy: &PolicyPath| {
        policy.number.filter(|_| world.attached.is_some()).map(|number| reader.hits(number))
    };
    PathGraph {
        devices: paths.hosts.len(),
        counts: paths.counts,
        policies: paths.policies.iter().map(|policy| of_policy(world, policy, hits(policy))).collect(),
        unmatched: unmatched(&paths.hosts),
        hops: hops(&open.live(), world, paths, &traffic),
        uplinks: uplinks(world, &paths.hosts, &traffic),
    }
}

fn of_policy(world: &World, policy: &PolicyPath, hits: Option<Hits>) -> PathPolicy {
    let is_installed = world.attached.is_some() && world.status.is_plan_in_force();
    let PolicyPath { id, origin, name, priority, fail_policy, active_hop, devices, decision, via, .. } =
        policy.clone();
    let hop = |state: &HopState| PolicyHop {
        r#type: state.hop.r#type,
        target: state.hop.target.clone(),
        usable: state.usable,
        reason: state.reason.clone(),
    };
    PathPolicy {
        id,
        origin,
        name,
        priority,
        fail_policy,
        status: if is_installed { policy.status } else { PolicyStatus::Error },
        devices,
        decision,
        via,
        when_down: match fail_policy {
            FailPolicy::Open => Decision::Direct,
            FailPolicy::Closed | FailPolicy::Degraded => Decision::Block,
        },
        hops: policy.hops.iter().map(hop).collect(),
        active_hop: active_hop.filter(|_| is_installed),
        expires_at: policy.exception_until,
        packets: hits.map(|hits| hits.packets),
        bytes: hits.map(|hits| hits.bytes),
    }
}

fn unmatched(hosts: &[HostPath]) -> Unmatched {
    let mut numbers = Unmatched::default();
    for device in hosts.iter().filter(|host| host.decided_by().is_none()) {
        numbers.devices += 1;
        match device.decision {
            Decision::Block => numbers.blocked += 1,
            Decision::Tunnel | Decision::Direct => numbers.direct += 1,
        }
    }
    numbers
}

fn hops(
    live: &Live<'_>,
    world: &World,
    paths: &Paths,
    traffic: &BTreeMap<String, LinkTraffic>,
) -> Vec<PathHop> {
    let mut hops: BTreeMap<&Hop, (Vec<Id>, bool, String)> = BTreeMap::new();
    for policy in &paths.policies {
        for state in &policy.hops {
            let (policies, usable, reason) = hops.entry(&state.hop).or_default();
            policies.push(policy.id);
            *usable |= state.usable;
            if reason.is_empty() {
                reason.clone_from(&state.reason);
            }
        }
    }
    let mut devices: BTreeMap<&str, usize> = BTreeMap::new();
    for device in paths.hosts.iter().filter(|host| host.decision != Decision::Block) {
        let hop = device.hop.as_ref().map(|hop| hop.target.as_str());
        let names: BTreeSet<&str> = device.egress.iter().map(String::as_str).chain(hop).collect();
        names.into_iter().for_each(|name| *devices.entry(name).or_default() += 1);
    }
    let shown = |(hop, (policies, usable, reason)): (&Hop, (Vec<Id>, bool, String))| {
        let reason = if usable { String::new() } else { reason };
        let devices = devices.get(hop.target.as_str()).copied().unwrap_or_default();
        let leg = world.compiled().legs.of_hop(hop);
        let bytes = leg.and_then(|leg| traffic.get(&leg.interface));
        let common = PathHop {
            r#type: hop.r#type,
            target: hop.target.clone(),
            id: None,
            status: "missing".to_owned(),
            usable,
            reason,
            since: None,
            policies,
            devices,
            uplink: leg.and_then(|leg| paths.uplinks.get(&leg.number).cloned()),
            last_handshake: None,
            latency_ms: None,
            rx_bytes: bytes.map(|bytes| bytes.received),
            tx_bytes: bytes.map(|bytes| bytes.sent),
        };
        with_status(live, world, hop, common)
    };
    hops.into_iter().map(shown).collect()
}

/// Adds the status of the hop's target.
fn with_status(live: &Live<'_>, world: &World, hop: &Hop, common: PathHop) -> PathHop {
    match hop.r#type {
        HopType::Vpn => {
            let Some(tunnel) = world.state.tunnel_by_name(&hop.target) else { return common };
            let observed = live.tunnel(tunnel);
            let handshakes = tunnel.peers.iter().map(|peer| live.peer(tunnel, &peer.public_key));
            PathHop {
                id: Some(tunnel.meta.id),
                status: observed.status.to_string(),
                since: observed.last_change,
                last_handshake: handshakes.filter_map(|peer| peer.last_handshake).max(),
                latency_ms: observed.latency_ms,
                ..common
            }
        }
        HopType::Proxy => {
            let Some(proxy) = world.state.find::<Proxy>(&hop.target) else { return common };
            let observed = live.proxy(proxy);
            PathHop {
                id: Some(proxy.meta.id),
                status: observed.status.to_string(),
                latency_ms: observed.latency_ms,
                ..common
            }
        }
        HopType::Interface => {
            let uplinks = world.config.all_uplinks();
            let by_interface = |wan: &&Wan| wan.interface.as_str() == hop.target;
            let by_name = |wan: &&Wan| wan.name == hop.target;
            let wan = uplinks.iter().find(by_interface).or_else(|| uplinks.iter().find(by_name));
            let Some(wan) = wan else { return common };
            let report = world.reports.uplinks.uplinks.get(wan.interface.as_str());
            let report = report.cloned().unwrap_or_default();
            let state = if wan.enabled { report.state } else { UplinkState::Disabled };
            PathHop {
                status: state.to_string(),
                since: report.since,
                latency_ms: report.latency_ms,
                ..common
            }
        }
        HopType::MeshPeer => {
            let Some(leg) = world.compiled().legs.mesh_peer(&hop.target) else { return common };
            PathHop { status: if leg.usable { "up" } else { "down" }.to_owned(), ..common }
        }
    }
}

fn uplinks(world: &World, devices: &[HostPath], traffic: &BTreeMap<String, LinkTraffic>) -> Vec<PathUplink> {
    let report = &world.reports.uplinks;
    let live = world.live();
    let shared = shared_uplinks(&live.plan.dataplane);
    let leg_of = |interface: &str| {
        let mut legs = live.legs.by_number.values().filter(|leg| leg.is_uplink());
        legs.find(|leg| leg.interface == interface).map(|leg| leg.number)
    };
    let main = world.facts.default_routes.iter().min_by_key(|route| (route.ipv6, route.metric));
    let is_active = |interface: &str| match shared.is_empty() {
        false => leg_of(interface).is_some_and(|number| shared.contains(&number)),
        true => main.is_some_and(|route| route.interface == interface),
    };
    let shown = |wan: &gateway_model::settings::uplink::Wan| {
        let interface = wan.interface.as_str();
        let observed = report.uplinks.get(interface).cloned().unwrap_or_default();
        let carried = || devices.iter().filter(|device| device.uplink.as_deref() == Some(interface));
        let bytes = traffic.get(interface);
        let addresses = world.facts.addresses.get(interface).into_iter().flatten();
        PathUplink {
            name: wan.display_name().to_owned(),
            interface: interface.to_owned(),
            state: if wan.enabled { observed.state } else { UplinkState::Disabled },
            since: observed.since,
            active: is_active(interface),
            direct_devices: carried().filter(|device| device.decision == Decision::Direct).count(),
            devices: carried().count(),
            rx_bytes: bytes.map(|bytes| bytes.received),
            tx_bytes: bytes.map(|bytes| bytes.sent),
            addresses: addresses.map(ipnet::IpNet::addr).collect(),
        }
    };
    world.config.all_uplinks().iter().map(shown).collect()
}
