//! Leak check: probes as a host would send them, and what became of them.

use std::sync::Arc;

use gateway_core::leak_check::{self, Check, CheckResult, LeakVerdict, Report};
use gateway_ctl::reconcile::Reason;
use gateway_ctl::world::World;
use gateway_model::kinds::{Device, PrivacyClass};
use gateway_model::problem::code;
use gateway_model::{EditError, Id, Problems, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

pub(super) const DOC: &str = "Packets enter the LAN interface with the addresses of the device, pass the programs, \
    nftables and routing like any of its packets, and are observed at the interfaces behind the egress guard. They \
    have a hop limit of 2, so the next router discards them: no third party sees them. The device may receive an \
    ICMP error. Without a device and a class, they have the addresses of a host that the gateway does not know. If \
    the setting `privacy.leak_check` names STUN servers, the gateway itself asks them for the address that they see, \
    by the egress of the device and by the uplinks.";

/// Host and checks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct LeakCheckRequest {
    /// ID of a device, or its name if no other device has it.
    #[schemars(with = "String")]
    pub device_id: Option<String>,
    /// ID or name of a privacy class: checks the first of its devices, by name. Not with `device_id`.
    #[schemars(with = "String")]
    pub privacy_class: Option<String>,
    /// All by default.
    #[schemars(with = "Vec<Check>")]
    pub checks: Option<Vec<Check>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LeakCheck {
    pub id: Id,
    pub started_at: Timestamp,
    /// Device as which the probes were sent; null for a host that the gateway does not know.
    pub device_id: Option<Id>,
    pub results: Vec<CheckResult>,
    /// `fail` if any probe left where it may not leave, else `inconclusive` if it is not known what became of any.
    pub verdict: LeakVerdict,
    /// Sentences about what can reveal names or addresses although no check fails.
    pub remaining_risks: Vec<String>,
}

/// Runs until one ends under the plan that it began with.
const ATTEMPTS: usize = 2;

pub(super) async fn run(cx: Cx, request: Req<LeakCheckRequest>) -> Result<LeakCheck, ApiError> {
    let open = cx.open()?;
    let started_at = open.now();
    let device = device(&open.world().state, &request.input)?;
    let checks = checks(request.input.checks)?;
    let mut report = attempt(&cx, device.clone(), &checks).await?;
    for _ in 1..ATTEMPTS {
        if report.is_none() {
            report = attempt(&cx, device.clone(), &checks).await?;
        }
    }
    let report =
        report.unwrap_or_else(|| leak_check::nothing_sent(&checks, "The plan changes all the time."));
    let Report { verdict, results, remaining_risks } = report;
    let device_id = device.map(|device| device.meta.id);
    let id = Id::mint(started_at, 0);
    Ok(LeakCheck { id, started_at, device_id, results, verdict, remaining_risks })
}

/// Runs the checks once. `None` if the plan changed meanwhile.
async fn attempt(cx: &Cx, device: Option<Arc<Device>>, checks: &[Check]) -> Result<Option<Report>, ApiError> {
    let open = cx.open()?;
    // Changes that were stored just now are in force first.
    let _ = open.enforcement.reconcile(Reason::Manual).await;
    let before = open.world();
    let random = Id::mint(open.now(), 0).as_bytes()[8..].try_into().map_or(0, u64::from_be_bytes);
    let (world, wanted) = (before.clone(), checks.to_vec());
    let plan =
        blocking(move || leak_check::plan(&world.input(), world.live(), device.as_deref(), &wanted, random));
    let Some(plan) = plan.await?.map(Arc::new) else {
        let reason = "No LAN interface exists by which probes could enter.";
        return Ok(Some(leak_check::nothing_sent(checks, reason)));
    };
    let run = open.enforcement.send_probes(plan.clone()).await;
    Ok(is_same_plan(&before, &open.world()).then(|| leak_check::compare(&plan, &run)))
}

/// Reports whether the kernel had the same plan at two times.
pub(in crate::endpoints) fn is_same_plan(before: &World, after: &World) -> bool {
    Arc::ptr_eq(before.live(), after.live()) || before.live().plan.dataplane == after.live().plan.dataplane
}

/// Returns the device of a request. `None` is a host that the gateway does not know.
fn device(state: &State, request: &LeakCheckRequest) -> Result<Option<Arc<Device>>, ApiError> {
    let mut problems = Problems::new();
    let found = match (&request.device_id, &request.privacy_class) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            problems.add(code::CONFLICT, "privacy_class", "Name a device or a class, not both.");
            None
        }
        (Some(device), None) => match state.find_device(device) {
            Ok(device) => Some(device),
            Err(message) => {
                problems.add(code::UNKNOWN_REFERENCE, "device_id", message);
                None
            }
        },
        (None, Some(class)) => match state.find::<PrivacyClass>(class) {
            None => {
                let message = "No privacy class has this id or name.";
                problems.add(code::UNKNOWN_REFERENCE, "privacy_class", message);
                None
            }
            Some(class) => {
                let has_class = |device: &&Device| {
                    state.privacy_class_of(device).is_some_and(|of| of.meta.id == class.meta.id)
                };
                let first = state.devices.iter().filter(has_class).min_by_key(|device| &device.name);
                if first.is_none() {
                    problems.add(
                        code::UNKNOWN_REFERENCE,
                        "privacy_class",
                        "No device has this privacy class.",
                    );
                }
                first
            }
        },
    };
    match found {
        Some(device) => Ok(Some(Arc::new(device.clone()))),
        None => Err(EditError::Invalid(problems).into()),
    }
}

fn checks(checks: Option<Vec<Check>>) -> Result<Vec<Check>, ApiError> {
    let mut checks = checks.unwrap_or_else(|| Check::ALL.to_vec());
    if checks.is_empty() {
        let mut problems = Problems::new();
        problems.add(code::REQUIRED, "checks", "Name at least one check, or omit the field for all.");
        return Err(EditError::Invalid(problems).into());
    }
    checks.sort_unstable();
    checks.dedup();
    Ok(checks)
}
