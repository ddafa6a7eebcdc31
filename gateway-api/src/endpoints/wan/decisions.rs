//! The manager of uplinks: its decisions, and what the kernel has of them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_core::compile::shared_uplinks;
use gateway_core::indexes::LegId;
use gateway_core::plan::names;
use gateway_core::state_machines::wan_manager::{FAILBACK_DELAY, HOLD_DOWN};
use gateway_ctl::world::World;
use gateway_ctl::world::reports::uplinks::{PinnedUplink, UplinkDecision};
use gateway_model::settings::bootstrap::FailoverMode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

/// A flow counts if it had a packet within this time, in seconds.
const FLOW_AGE: u32 = 60;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct WanManager {
    /// `manual`: the manager only observes.
    pub mode: FailoverMode,
    /// Name of the active uplink. Null before the first decision, and with a single uplink: the main routing table decides.
    pub active: Option<String>,
    /// The other enabled uplinks.
    pub standby: Vec<String>,
    /// New flows are distributed over several uplinks now.
    pub balanced: bool,
    /// Newest first, those included that were not made.
    pub decisions: Vec<UplinkDecision>,
    pub flap_pins: Vec<PinnedUplink>,
    pub timing: Timing,
    pub egress_legs: Vec<EgressLeg>,
    /// Routing in the kernel, as the last run read it.
    pub kernel: KernelRouting,
}

/// Default route in the kernel.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct KernelRouting {
    /// Names of the uplinks that the plan in the kernel gives new connections. Empty if the main routing table decides,
    /// and while no plan is in the kernel.
    pub new_connections: Vec<String>,
    /// Default routes of the main routing table, the preferred one of each family first.
    pub default_routes: Vec<KernelRoute>,
    /// Time of the run; null before the first.
    pub read_at: Option<Timestamp>,
    /// The kernel has the selection of the manager. Null if the manager selects nothing.
    pub agrees: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct KernelRoute {
    pub interface: String,
    /// Name of the uplink on this interface; null if it is none.
    pub uplink: Option<String>,
    pub gateway: Option<IpAddr>,
    pub metric: u32,
    pub ipv6: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Timing {
    /// Time of the next probe.
    pub next_eval: Option<Timestamp>,
    /// Seconds between two changes, unless the active uplink fails.
    pub hold_down_sec: u64,
    /// Seconds for which a better uplink must work before traffic goes back to it.
    pub failback_delay_sec: u64,
}

/// An uplink as the dataplane knows it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct EgressLeg {
    pub uplink: String,
    /// Number of the routing table.
    pub table: u32,
    /// Fwmark in hexadecimal.
    pub mark: String,
    /// Share of new flows while balancing.
    pub weight: u32,
    /// Flows with a packet in the last minute.
    pub flows: u64,
    /// Its table has a default route.
    pub installed: bool,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<WanManager, ApiError> {
    let open = cx.open()?;
    let reader = open.enforcement.dataplane();
    let flows = blocking(move || reader.flows_by_leg(FLOW_AGE)).await?;
    let flows = flows.map_err(|error| ApiError::internal(&error))?;
    let on_leg =
        |number: LegId| flows.iter().filter(|((_, leg), _)| *leg == number).map(|(_, count)| count).sum();
    Ok(manager(&open.world(), on_leg))
}

fn kernel(world: &World, name: impl Fn(&str) -> String) -> KernelRouting {
    let live = world.live();
    let is_installed = world.attached.is_some() && world.status.is_plan_in_force();
    let shared = if is_installed { shared_uplinks(&live.plan.dataplane) } else { BTreeSet::new() };
    let legs = shared.iter().filter_map(|number| live.legs.get(*number));
    let uplinks = world.config.all_uplinks();
    let is_uplink = |interface: &str| uplinks.iter().any(|wan| wan.interface.as_str() == interface);
    let mut routes: Vec<_> = world.facts.default_routes.iter().collect();
    routes.sort_by_key(|route| (route.ipv6, route.metric));
    let routes = routes.into_iter().map(|route| KernelRoute {
        interface: route.interface.clone(),
        uplink: is_uplink(&route.interface).then(|| name(&route.interface)),
        gateway: route.gateway,
        metric: route.metric,
        ipv6: route.ipv6,
    });
    let active = world.reports.uplinks.active.as_deref();
    let carries = |interface: &str| legs.clone().any(|leg| leg.interface == interface);
    KernelRouting {
        agrees: active.filter(|_| world.facts.uplinks.active.is_some()).map(carries),
        new_connections: legs.clone().map(|leg| name(&leg.interface)).collect(),
        default_routes: routes.collect(),
        read_at: (world.status.run > 0).then_some(world.status.started),
    }
}

fn manager(world: &World, flows: impl Fn(LegId) -> u64) -> WanManager {
    let report = &world.reports.uplinks;
    let uplinks = world.config.all_uplinks();
    let name = |interface: &str| {
        let wan = uplinks.iter().find(|wan| wan.interface.as_str() == interface);
        wan.map_or(interface, |wan| wan.display_name()).to_owned()
    };
    let enabled = uplinks.iter().filter(|wan| wan.enabled).map(|wan| wan.interface.as_str());
    let standby = enabled.filter(|interface| report.active.as_deref() != Some(interface));
    let live = world.live();
    let legs = live.legs.by_number.values().filter(|leg| leg.is_uplink());
    let legs = legs.map(|leg| EgressLeg {
        uplink: name(&leg.interface),
        table: names::TABLE_BASE + u32::from(leg.number),
        mark: format!("{:#010x}", leg.number.mark().0),
        weight: leg.weight,
        flows: flows(leg.number),
        installed: leg.ipv4 || leg.ipv6,
    });
    WanManager {
        mode: world.config.network.wan_failover_mode,
        active: report.active.as_deref().map(name),
        standby: standby.map(name).collect(),
        balanced: shared_uplinks(&live.plan.dataplane).len() > 1,
        decisions: report.decisions.iter().cloned().collect(),
        flap_pins: report.pins.clone(),
        timing: Timing {
            next_eval: report.next_eval,
            hold_down_sec: HOLD_DOWN.as_secs(),
            failback_delay_sec: FAILBACK_DELAY.as_secs(),
        },
        egress_legs: legs.collect(),
        kernel: kernel(world, name),
    }
}
