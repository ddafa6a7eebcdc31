//! Configuration of an interface.

use std::net::IpAddr;

use gateway_core::interfaces::{InterfaceRole, lease_refusal};
use gateway_ctl::reconcile::Reason;
use gateway_ctl::world::World;
use gateway_ctl::world::reports::dhcp_clients::{DhcpStage, DhcpState};
use gateway_model::settings::group::Group as _;
use gateway_model::settings::groups::{InterfaceConfig, InterfaceMethod, InterfacesConfig};
use gateway_model::{EditError, IfName, Problems, State, Warning};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::named::{NOUN, named, protected};
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::expect;

/// Configuration of an interface, and its state.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InterfaceConfigView")]
pub(super) struct View {
    name: String,
    #[serde(flatten)]
    config: InterfaceConfig,
    /// The configuration waits for the next start of the daemon.
    pending_restart: bool,
    state: InterfaceState,
}

/// Configuration of an interface. The other fields of the response may be sent back and are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "InterfaceConfigRequest")]
pub(super) struct Input {
    method: InterfaceMethod,
    #[serde(default)]
    address: Option<IpAddr>,
    #[serde(default)]
    prefix: Option<u8>,
    #[serde(default)]
    gateway: Option<IpAddr>,
    #[serde(default)]
    dns: Vec<IpAddr>,
    #[serde(default)]
    mtu: Option<u16>,
    #[serde(default, rename = "name")]
    #[schemars(skip)]
    _name: Value,
    #[serde(default, rename = "pending_restart")]
    #[schemars(skip)]
    _pending_restart: Value,
    #[serde(default, rename = "state")]
    #[schemars(skip)]
    _state: Value,
}

/// State of an interface.
#[derive(Debug, Serialize, JsonSchema)]
struct InterfaceState {
    role: InterfaceRole,
    exists: bool,
    up: bool,
    /// All addresses, those of other programs included.
    addresses: Vec<String>,
    /// Router of a default route by this interface; null without one.
    gateway: Option<IpAddr>,
    /// Name servers of the lease, else those of the configuration.
    dns: Vec<IpAddr>,
    mtu: Option<u32>,
    /// DHCP client of the daemon; null if none runs.
    dhcp: Option<DhcpView>,
}

/// DHCP client of an interface.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InterfaceDhcp")]
pub(super) struct DhcpView {
    pub stage: DhcpStage,
    pub address: Option<String>,
    pub gateway: Option<IpAddr>,
    pub server: Option<IpAddr>,
    pub expires_at: Option<Timestamp>,
    /// The address of the lease is set. A lease that takes addresses of others is not used.
    pub used: bool,
    /// Reason for which there is no lease, or for which it is not used.
    pub error: Option<String>,
}

pub(super) async fn show(cx: Cx, request: Req<()>) -> Result<WithHeaders<View>, ApiError> {
    let open = cx.open()?;
    let (name, role) = named(&open.world(), request.params.get("name"))?;
    Ok(tagged(open, &name, role, Vec::new()))
}

pub(super) async fn replace(cx: Cx, request: Req<Input>) -> Result<WithHeaders<View>, ApiError> {
    let open = cx.open()?;
    let (name, role) = named(&open.world(), request.params.get("name"))?;
    let Input { method, address, prefix, gateway, dns, mtu, .. } = request.input;
    let config = InterfaceConfig { method, address, prefix, gateway, dns, mtu };
    check_role(&name, role, &config)?;
    check_access_point(&open.world(), &name, &config)?;
    let (if_match, edited) = (request.if_match, name.clone());
    let warnings = cx
        .commit(move |draft| {
            expect(NOUN, revision(draft), if_match.as_deref())?;
            store(draft, &edited, config)
        })
        .await?;
    open.reconcile(Reason::Revision).await?;
    Ok(tagged(open, &name, role, warnings))
}

/// Checks what the role of the interface allows.
fn check_role(name: &IfName, role: InterfaceRole, config: &InterfaceConfig) -> Result<(), ApiError> {
    match role {
        InterfaceRole::Tunnel | InterfaceRole::Loopback | InterfaceRole::Port => {
            Err(protected(name, role, "it has no configuration of its own"))
        }
        InterfaceRole::Lan | InterfaceRole::Uplink if config.method == InterfaceMethod::Dhcp => {
            Err(protected(name, role, "the daemon runs no DHCP client there"))
        }
        InterfaceRole::Lan if config.gateway.is_some() && config.method == InterfaceMethod::Static => {
            let mut problems = Problems::new();
            let message = "An interface of the LAN has no gateway: this host is the router there.";
            problems.add(gateway_model::problem::code::CONFLICT, "gateway", message);
            Err(ApiError::validation(&problems))
        }
        _ => Ok(()),
    }
}

/// Refuses an address where `network.ap` gives another one.
fn check_access_point(world: &World, name: &IfName, config: &InterfaceConfig) -> Result<(), ApiError> {
    let Some(ap) = world.config.network.ap.as_ref().filter(|ap| ap.interface == *name) else {
        return Ok(());
    };
    if config.method != InterfaceMethod::Static || config.network() == Some(ap.address()) {
        return Ok(());
    }
    let mut problems = Problems::new();
    let message = format!("The setting network.ap gives {name} the address {}.", ap.address());
    problems.add(gateway_model::problem::code::CONFLICT, "address", message);
    Err(ApiError::validation(&problems))
}

/// Stores the configuration of one interface. An empty one is removed.
pub(super) fn store(
    draft: &mut State,
    name: &IfName,
    config: InterfaceConfig,
) -> Result<Vec<Warning>, EditError> {
    let mut all: InterfacesConfig = draft.group();
    if config == InterfaceConfig::default() {
        all.0.remove(name);
    } else {
        all.0.insert(name.clone(), config);
    }
    let mut problems = Problems::new();
    all.validate(draft, &mut problems);
    // Those of other interfaces were stored before.
    let inside = |path: &str| path.strip_prefix(name.as_str())?.strip_prefix('.').map(str::to_owned);
    let mut own = Problems::new();
    for problem in problems.list() {
        match inside(&problem.path) {
            Some(path) => {
                own.add(problem.code, path, problem.message.clone()).allowed.clone_from(&problem.allowed)
            }
            None if problem.path.is_empty() => {
                own.add(problem.code, "", problem.message.clone());
            }
            None => {}
        }
    }
    if !own.is_empty() {
        return Err(EditError::Invalid(own));
    }
    let warnings = problems.warnings().iter();
    let warnings =
        warnings.filter_map(|one| Some(Warning::new(inside(&one.path)?, one.message.clone()))).collect();
    draft.set_group(&all);
    Ok(warnings)
}

fn revision(state: &State) -> gateway_model::Revision {
    state
        .settings
        .setting(InterfacesConfig::KEY)
        .map_or(gateway_model::Revision(0), |setting| setting.revision)
}

fn tagged(open: &Open, name: &IfName, role: InterfaceRole, warnings: Vec<Warning>) -> WithHeaders<View> {
    let world = open.world();
    let etag = Some(revision(&world.state).to_string());
    WithHeaders { etag, warnings, ..WithHeaders::new(view(open, &world, name, role)) }
}

fn view(open: &Open, world: &World, name: &IfName, role: InterfaceRole) -> View {
    let all: InterfacesConfig = world.state.group();
    let config = all.0.get(name).cloned().unwrap_or_default();
    let configuration = open.worlds.configuration();
    let pending_restart =
        configuration.is_interface_pending(&world.config, &world.state.settings, name.as_str());
    View {
        name: name.to_string(),
        pending_restart,
        state: state_of(world, name.as_str(), role, &config),
        config,
    }
}

fn state_of(world: &World, name: &str, role: InterfaceRole, config: &InterfaceConfig) -> InterfaceState {
    let (facts, link) = (&world.facts, world.facts.links.get(name));
    let dhcp = world.reports.dhcp_clients.clients.get(name);
    let lease = dhcp.and_then(|state| state.lease.as_ref());
    let routed = facts.default_routes.iter().find(|route| route.interface == name);
    let in_force = world.network.interfaces.get(name);
    let gateway = lease.and_then(|lease| lease.gateway).map(IpAddr::from);
    let dns = lease.map(|lease| lease.dns.iter().copied().map(IpAddr::from).collect());
    InterfaceState {
        role,
        exists: link.is_some(),
        up: link.is_some_and(|link| link.up),
        addresses: facts.addresses.get(name).into_iter().flatten().map(ToString::to_string).collect(),
        gateway: gateway
            .or_else(|| routed.and_then(|route| route.gateway))
            .or_else(|| in_force.and_then(|settings| settings.gateway)),
        dns: dns.unwrap_or_else(|| config.dns.clone()),
        mtu: link.map(|link| link.mtu),
        dhcp: dhcp.map(|state| dhcp_view(world, name, state)),
    }
}

pub(super) fn dhcp_view(world: &World, name: &str, state: &DhcpState) -> DhcpView {
    let lease = state.lease.as_ref();
    let refusal = lease.and_then(|lease| lease_refusal(&world.input(), name, lease));
    let has = |net: ipnet::Ipv4Net| {
        world
            .facts
            .addresses
            .get(name)
            .is_some_and(|nets| nets.iter().any(|have| have.addr() == IpAddr::from(net.addr())))
    };
    DhcpView {
        stage: state.stage,
        address: lease.map(|lease| lease.address.to_string()),
        gateway: lease.and_then(|lease| lease.gateway).map(IpAddr::from),
        server: lease.and_then(|lease| lease.server).map(IpAddr::from),
        expires_at: state.expires_at(),
        used: refusal.is_none() && lease.is_some_and(|lease| has(lease.address)),
        error: refusal
            .map(|reason| format!("the lease is not used: {reason}"))
            .or_else(|| state.error.clone()),
    }
}
