//! External programs that the gateway depends on, and the comparison of the installed plan with the expected one.

use gateway_core::compile::compile;
use gateway_core::network_tests;
use gateway_core::render;
use gateway_ctl::os::required_programs::{self, Unit};
use gateway_ctl::reconcile::Status;
use gateway_ctl::services::access_point::AccessPointHandle;
use gateway_ctl::services::flow_check::{FlowCheck, FlowCheckReport};
use gateway_ctl::world::World;
use gateway_model::kinds::tunnel::TunnelType;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/services", "list_services", services)
        .summary("Programs and units on this host that the gateway needs")
        .doc("enabled and running are null if unknown: for programs that run only on demand, and without systemd.");
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Service {
    pub name: String,
    /// The program or module is present.
    pub installed: bool,
    /// Started at boot; null if unknown.
    pub enabled: Option<bool>,
    /// Running now; null if unknown.
    pub running: Option<bool>,
    pub version: Option<String>,
    /// Name of the systemd unit; null if there is none, and without systemd.
    pub unit: Option<String>,
    /// Features or tunnels of the gateway that need it.
    pub required_by: Vec<String>,
}

async fn services(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Service>>, ApiError> {
    let open = cx.open()?;
    let World { attached, state, reports, config, .. } = open.world();
    let has_access_point = config.network.ap.as_ref().is_some_and(|ap| ap.enabled);
    let access_point = open.handles.get::<AccessPointHandle>().status();
    let wireguard = state.tunnels.iter().filter(|tunnel| tunnel.r#type == TunnelType::Wireguard);
    let tunnels: Vec<String> = wireguard.map(|tunnel| format!("tunnel {}", tunnel.name)).collect();
    let of_openvpn = || state.tunnels.iter().filter(|tunnel| tunnel.r#type == TunnelType::Openvpn);
    let over_openvpn: Vec<String> = of_openvpn().map(|tunnel| format!("tunnel {}", tunnel.name)).collect();
    let seen = reports.tunnels;
    let running = of_openvpn()
        .any(|tunnel| seen.tunnels.get(&tunnel.meta.id).is_some_and(|live| live.interface.is_some()));
    let list = blocking(move || {
        vec![
            daemon("gatewayd", true, "the API, tunnels, changes of the plan"),
            daemon("gatewayd-guard", false, "blocking before the daemon has started"),
            program("nft", "--version", attached.map(|_| "second net, NAT")),
            kernel_wireguard(tunnels),
            openvpn(over_openvpn, running),
            Service {
                running: Some(access_point.running),
                ..program("hostapd", "-v", has_access_point.then_some("access point"))
            },
        ]
    })
    .await?;
    Ok(WithHeaders::counted(list))
}

/// Returns the status of a systemd unit of the gateway. The current process may run without the unit.
fn daemon(name: &str, this: bool, required_by: &str) -> Service {
    let unit_name = format!("{name}.service");
    let unit: Option<Unit> = required_programs::unit(&unit_name);
    let unit_runs = unit.map(|unit| unit.running);
    Service {
        name: name.to_owned(),
        installed: this || unit.is_some_and(|unit| unit.installed),
        enabled: unit.map(|unit| unit.enabled),
        running: if this { Some(true) } else { unit_runs },
        version: this.then(|| env!("CARGO_PKG_VERSION").to_owned()),
        unit: unit.filter(|unit| unit.installed).map(|_| unit_name),
        required_by: vec![required_by.to_owned()],
    }
}

/// Returns the status of a program that runs only on demand.
fn program(name: &str, argument: &str, required_by: Option<&str>) -> Service {
    let file = required_programs::find(name);
    Service {
        name: name.to_owned(),
        installed: file.is_some(),
        enabled: None,
        running: None,
        version: file.and_then(|file| required_programs::version(&file, argument)),
        unit: None,
        required_by: required_by.map(str::to_owned).into_iter().collect(),
    }
}

/// Returns the status of OpenVPN. Without it, tunnels of type openvpn do not come up.
fn openvpn(tunnels: Vec<String>, running: bool) -> Service {
    Service { running: Some(running), required_by: tunnels, ..program("openvpn", "--version", None) }
}

/// Returns the status of WireGuard in the kernel. If it is missing, the daemon carries the tunnels itself and no tunnel
/// requires it.
fn kernel_wireguard(tunnels: Vec<String>) -> Service {
    let module = std::path::Path::new("/sys/module/wireguard");
    let loaded = module.is_dir();
    let version = std::fs::read_to_string(module.join("version")).ok();
    Service {
        name: "wireguard (kernel)".to_owned(),
        installed: loaded,
        enabled: None,
        running: Some(loaded),
        version: version.map(|text| text.trim().to_owned()),
        unit: None,
        required_by: if loaded { tunnels } else { Vec::new() },
    }
}

/// Result of the self-test.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Verification {
    /// No check failed, and the gateway is attached to a kernel.
    pub ok: bool,
    /// Hash of the installed plan, as in `/render`; null if the gateway is not attached to a kernel.
    pub hash: Option<String>,
    /// Hash of the plan that follows from the current state.
    pub expected_hash: String,
    /// Generation of the plan that is active in the kernel; 0 without a plan (default deny).
    pub generation: u32,
    pub checks: Vec<Check>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Check {
    pub name: &'static str,
    /// Result of the check; null if it was not possible, with the reason in `detail`.
    pub ok: Option<bool>,
    /// Human-readable result.
    pub detail: String,
}

pub(super) fn verify_rows(t: &mut Table) {
    t.view("/verify", "verify_plan", verify)
        .summary("Self-test: compare the installed plan with the one compiled from the state")
        .doc("Read-only; POST /enforce/reconcile repairs.");
}

async fn verify(cx: Cx, _: Req<()>) -> Result<Verification, ApiError> {
    let open = cx.open()?;
    let (reader, world) = (open.enforcement.dataplane(), open.world());
    let (enforced, runs) = (world.attached.is_some(), subsystems(&world.status));
    let checked = open.handles.get::<FlowCheck>().report();
    blocking(move || {
        let generation = reader.generation().map_err(|error| ApiError::internal(&error))?;
        let fresh = compile(&world.input());
        let expected_hash = render::render(&fresh, generation).hash;
        let hash = enforced.then(|| render::render(world.compiled(), generation).hash);
        let mut checks = vec![live(enforced, generation), same(hash.as_deref(), &expected_hash), runs];
        checks.push(gates(&world));
        checks.push(flows(&checked));
        let ok = enforced && checks.iter().all(|check| check.ok != Some(false));
        Ok(Verification { ok, hash, expected_hash, generation, checks })
    })
    .await?
}

fn live(enforced: bool, generation: u32) -> Check {
    let (ok, detail) = match (enforced, generation) {
        (false, _) => (None, "This gateway is not attached to a kernel.".to_owned()),
        (true, 0) => (Some(false), "No plan is live: nothing is forwarded.".to_owned()),
        (true, number) => (Some(true), format!("Generation {number} is live.")),
    };
    Check { name: "live", ok, detail }
}

fn same(installed: Option<&str>, expected: &str) -> Check {
    let (ok, detail) = match installed {
        None => (None, "Nothing is installed.".to_owned()),
        Some(hash) if hash == expected => (Some(true), "The installed plan is that of the state.".to_owned()),
        Some(_) => {
            (Some(false), "The state asks for another plan than the one that is installed.".to_owned())
        }
    };
    Check { name: "plan", ok, detail }
}

/// Returns the result of the last comparison with the kernel.
fn subsystems(status: &Status) -> Check {
    if status.run == 0 {
        let detail = "The kernel was not compared with the plan yet.".to_owned();
        return Check { name: "kernel", ok: None, detail };
    }
    let failed: Vec<&str> =
        status.subsystems.iter().filter(|(_, last)| !last.outcome.is_ok()).map(|(name, _)| *name).collect();
    let detail = match failed.as_slice() {
        [] => format!("All subsystems match the plan since the run at {:.0}.", status.started),
        names => format!("These differ from the plan: {}; /observer shows the reasons.", names.join(", ")),
    };
    Check { name: "kernel", ok: Some(failed.is_empty()), detail }
}

/// Returns the result of the samples of the flow log.
fn flows(report: &FlowCheckReport) -> Check {
    let FlowCheckReport { agreed, unknown, differing, last_unknown, differences, .. } = report;
    let ok = (agreed + differing > 0).then_some(*differing == 0);
    let mut detail = match differences.back() {
        None if ok.is_none() => "No recent flow was decided again.".to_owned(),
        None => format!(
            "{agreed} paths of recent flows were decided again by their plans, with the same results."
        ),
        Some(last) => format!(
            "{differing} paths of recent flows differ from the decisions of their plans, {agreed} agree. The last one is of the flow {}: {}.",
            last.flow_id, last.difference
        ),
    };
    if let Some(reason) = last_unknown {
        detail.push_str(&format!(
            " {unknown} cannot be decided again; of the last one, the reason is: {reason}."
        ));
    }
    Check { name: "flows", ok, detail }
}

/// Runs the gating tests against the applied policies.
fn gates(world: &World) -> Check {
    let failed = network_tests::failing_gates(&world.input());
    let names: Vec<String> = failed.iter().map(|result| format!("{:?}", result.name)).collect();
    let detail = match names.as_slice() {
        [] => "No gating test fails on the applied policies.".to_owned(),
        names => format!("Failing on the applied policies: {}.", names.join(", ")),
    };
    Check { name: "tests", ok: Some(names.is_empty()), detail }
}
