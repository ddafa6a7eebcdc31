//! Health, status, drift and host information.

mod probe;
mod saved;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use gateway_common::wire::{FastCounter, XdpCounter};
use gateway_core::health::{Check, CheckState, TrackedCheck};
use gateway_core::xdp::Obstacle;
use gateway_ctl::os::bpf::{AttachMode, FastPathStats, XdpState, XdpStats};
use gateway_ctl::panics;
use gateway_ctl::reconcile::{DriftItem, Severity};
use gateway_ctl::services::gateway_verdict::Verdicts;
use gateway_ctl::supervise::{TaskHealth, TaskName};
use gateway_ctl::tls::CertificateStatus;
use gateway_ctl::world::World;
use gateway_model::settings::bootstrap::XdpMode;
use gateway_model::settings::keys;
use gateway_model::text_enum;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::checks::CheckResult;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::host_info::{self, Platform};
use crate::query::parameters::Limit;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;
use probe::{CheckCode, FindingView};
pub(crate) use saved::{LastSaved, SavedChanges};
use verdict::VerdictView;

pub(crate) fn rows(t: &mut Table) {
    t.view("/health", "get_health", probe::health)
        .summary("Liveness of the daemon, and whether it enforces policies")
        .doc("blocked: the store cannot be used, so nothing is forwarded; reason says why.")
        .query::<probe::HealthQuery>()
        .answers(&[Code::NotReady])
        .access(Access::Open)
        .always();
    t.view("/status", "get_status", status)
        .summary("Status summary: version, readiness, snapshot age, revisions, failed services");
    t.view("/observer", "list_observer", observer).summary("Result of the last reconcile run, by subsystem");
    t.view("/drift", "list_drift", drift)
        .summary("List recent drift: kernel changes by other programs, newest first")
        .query::<DriftQuery>();
    t.view("/platform", "get_platform", platform)
        .summary("Host: hardware, operating system and load")
        .always();
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceStatus {
    pub version: &'static str,
    /// A plan is active, all subsystems match it, and the reconcile loop is running.
    pub ready: bool,
    /// Seconds since the start of the daemon.
    pub uptime_sec: u64,
    /// Seconds since the newest snapshot was taken; null before the first one.
    pub snapshot_age_sec: Option<u64>,
    /// Time at which the pending change is rolled back unless it is confirmed; null if none is pending.
    pub pending_confirm_until: Option<Timestamp>,
    /// `network.mode` of the configuration.
    pub mode: String,
    pub dataplane: DataplaneState,
    /// Fast path of established flows.
    pub fast_path: FastPathStatus,
    /// Stable UUID of this installation.
    pub node_id: Option<String>,
    /// Revision of the store.
    pub revision: u64,
    /// Revision of the last change of a stored policy, or of a profile, chain or privacy class that policies use.
    pub stored_revision: u64,
    /// Revision of the last apply that left no policy pending; 0 before the first.
    pub applied_revision: u64,
    /// Time of that apply; null before the first.
    pub applied_at: Option<Timestamp>,
    /// Stored policies differ from the applied ones, which steer traffic.
    pub pending_changes: bool,
    /// Number of policies that differ: new, changed or deleted ones.
    pub pending_policies: usize,
    /// Last change of a stored policy, profile, chain or privacy class. Null if none is pending, or if the change is no
    /// longer among the last entries of the audit trail.
    pub last_saved: Option<LastSaved>,
    /// Name of this host.
    pub hostname: String,
    /// Does anything leak, in one sentence.
    pub verdict: VerdictView,
    /// Services that failed and have not yet recovered. Left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_services: Option<Vec<FailedService>>,
}

/// Fast path: packets of established flows pass the IP stack by. Statistics since the start of the daemon.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FastPathStatus {
    /// The setting `dataplane.fast_path` is on, and the daemon follows the changes that invalidate entries.
    pub on: bool,
    /// Cause for which it is off in spite of the setting. Null if it is on, or off by the setting.
    pub message: Option<String>,
    /// Packets from the LAN that passed the IP stack by.
    pub forwarded_packets: u64,
    /// Replies that passed the IP stack by.
    pub replied_packets: u64,
    /// Share of the packets from the LAN that passed the IP stack by while the fast path was on, in percent.
    pub share_pct: f64,
    /// Entries, two for each flow; counted once a minute.
    pub entries: u64,
    /// Changes after which no entry was valid, by cause.
    pub epoch_changes: BTreeMap<&'static str, u64>,
    /// Packets that left in the driver (XDP), which `forwarded_packets` and `replied_packets` include.
    pub xdp_packets: u64,
    /// XDP on each interface with programs.
    pub xdp: Vec<XdpStatus>,
}

/// XDP on an interface.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct XdpStatus {
    pub interface: String,
    /// Setting of the interface.
    pub mode: XdpMode,
    /// The program is attached, in native mode. Otherwise packets take the fast path behind the driver.
    pub attached: bool,
    /// Packets of other interfaces with XDP may leave by it without its queues.
    pub sends: bool,
    /// Obstacle to either: `off`, `fast_path_off`, `captured`, `absent`, `no_ethernet`, `virtual`, `vlans`, `shaped`,
    /// `no_driver_support`, `unknown_support`, `no_transmit` or `refused`. Null if there is none.
    pub reason: Option<&'static str>,
    /// The same in one sentence.
    pub message: Option<String>,
}

impl FastPathStatus {
    fn new(stats: FastPathStats, xdp: XdpStats) -> Self {
        let packets = |counter| stats.counters.get(&counter).map_or(0, |hits| hits.packets);
        Self {
            on: stats.on,
            message: stats.problem.clone(),
            forwarded_packets: packets(FastCounter::Forwarded),
            replied_packets: packets(FastCounter::Replied),
            share_pct: stats.share_pct(),
            entries: stats.entries,
            epoch_changes: stats.changes.iter().map(|(change, count)| (change.as_str(), *count)).collect(),
            xdp_packets: [XdpCounter::Forwarded, XdpCounter::Replied]
                .iter()
                .filter_map(|counter| Some(xdp.counters.get(counter)?.packets))
                .sum(),
            xdp: xdp.interfaces.into_iter().map(xdp_status).collect(),
        }
    }
}

fn xdp_status((interface, state): (String, XdpState)) -> XdpStatus {
    let XdpState { mode, attached, sends, obstacle } = state;
    let (reason, message) = (obstacle.as_ref().map(Obstacle::code), obstacle.map(|o| o.to_string()));
    XdpStatus { interface, mode, attached, sends, reason, message }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FailedService {
    /// Name of the service in `/observer`.
    pub name: String,
    /// Human-readable reason.
    pub failure: String,
    pub since: Timestamp,
}

fn failed_services(open: &Open) -> Option<Vec<FailedService>> {
    let tasks = open.services.supervisor().report();
    let failed = tasks.into_iter().filter_map(|(name, TaskHealth { failure, since, .. })| {
        Some(FailedService { name: name.into_owned(), failure: failure?, since })
    });
    Some(failed.collect()).filter(|failed: &Vec<_>| !failed.is_empty())
}

async fn status(cx: Cx, _: Req<()>) -> Result<ServiceStatus, ApiError> {
    let open = cx.open()?;
    let world = open.world();
    let World { state, status: last, .. } = &world;
    let stored = [
        state.routing_policies.revision(),
        state.profiles.revision(),
        state.chains.revision(),
        state.privacy_classes.revision(),
    ];
    let stored = stored.into_iter().max().unwrap_or_default();
    let pending = state.pending_policies();
    let reader = open.enforcement.dataplane();
    let fast_path = reader.fast_path().map_err(|error| ApiError::internal(&error))?;
    let xdp = reader.xdp().map_err(|error| ApiError::internal(&error))?;
    let last_saved = if pending > 0 { cx.api.last_saved.of(&open.store, state.revision).await } else { None };
    Ok(ServiceStatus {
        version: env!("CARGO_PKG_VERSION"),
        ready: last.run > 0 && last.is_ok() && open.enforcement.loop_idle_time() < STALL_TIMEOUT,
        uptime_sec: cx.api.started.elapsed().as_secs(),
        snapshot_age_sec: open.store.newest_snapshot().map(|taken| age(taken, open.now())),
        pending_confirm_until: open.store.pending().map(|pending| pending.until),
        mode: world.config.network.mode.to_string(),
        dataplane: dataplane(&world),
        fast_path: FastPathStatus::new(fast_path, xdp),
        node_id: state.settings.get(keys::NODE_ID).and_then(|id| id.as_str()).map(str::to_owned),
        revision: state.revision.0,
        stored_revision: stored.0,
        applied_revision: state.applied.revision.0,
        applied_at: state.applied.at,
        pending_changes: pending > 0,
        pending_policies: pending,
        last_saved,
        hostname: host_info::hostname(),
        verdict: verdict::show(
            open.handles.get::<Verdicts>().borrow().as_deref(),
            open.now(),
            &open.checks.last(),
        ),
        failed_services: failed_services(open),
    })
}

/// Idle time after which the reconcile loop counts as hung.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the age in seconds; 0 if the clock was set back since.
fn age(taken: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(taken).as_secs()).unwrap_or(0)
}

text_enum! {
    /// State of the dataplane.
    pub enum DataplaneState {
        Ebpf = "ebpf",
        /// The programs differ from the plan.
        Degraded = "degraded",
        /// There is no kernel behind the API.
        Detached = "detached",
    }
}

text_enum! {
    /// State of a check, a subsystem or a task.
    pub enum ObservationState {
        Ok = "ok",
        /// Works partially, or will soon fail.
        Degraded = "degraded",
        /// Does not work, or its state is unknown.
        Failed = "failed",
        /// Not checked yet.
        Unknown = "unknown",
        Disabled = "disabled",
    }
}

impl From<CheckState> for ObservationState {
    fn from(state: CheckState) -> ObservationState {
        match state {
            CheckState::Ok => ObservationState::Ok,
            CheckState::Unknown => ObservationState::Unknown,
            CheckState::Degraded => ObservationState::Degraded,
            CheckState::Failed => ObservationState::Failed,
        }
    }
}

fn dataplane(world: &World) -> DataplaneState {
    let stands = world.status.subsystems.get("dataplane").is_some_and(|subsystem| subsystem.outcome.is_ok());
    match (world.attached, stands) {
        (None, _) => DataplaneState::Detached,
        (Some(_), true) => DataplaneState::Ebpf,
        (Some(_), false) => DataplaneState::Degraded,
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Observation {
    /// Name of a check or of a subsystem.
    pub subsystem: String,
    pub state: ObservationState,
    /// Human-readable errors; may be empty.
    pub message: String,
    /// Time since which the subsystem has this state; null if unknown.
    pub since: Option<Timestamp>,
    /// Number of checks so far. For a task: its starts. For `panics`: the panics.
    pub checks: u64,
    /// Code of a check, as the documentation lists it. Left out for subsystems and tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CheckCode>")]
    pub code: Option<&'static str>,
    /// Parameters of the sentence of a check. Left out if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<&'static str, String>,
    /// Human-readable remedy. Left out if none is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// All reasons of a check, the sentence in parts. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingView>,
}

impl Observation {
    fn new(
        subsystem: impl Into<String>,
        state: impl Into<ObservationState>,
        message: impl Into<String>,
    ) -> Observation {
        Observation {
            subsystem: subsystem.into(),
            state: state.into(),
            message: message.into(),
            since: None,
            checks: 0,
            code: None,
            params: BTreeMap::new(),
            remedy: None,
            findings: Vec::new(),
        }
    }
}

impl From<CertificateStatus> for Observation {
    fn from(status: CertificateStatus) -> Self {
        let CertificateStatus { served, fault, since, checks, not_after } = status;
        let state = match (served, &fault) {
            (true, None) => CheckState::Ok,
            (true, Some(_)) => CheckState::Degraded,
            (false, _) => CheckState::Failed,
        };
        let valid = || not_after.map(|end| format!("The certificate is valid until {end}."));
        let message = fault.or_else(valid).unwrap_or_default();
        Self { since: Some(since), checks, ..Self::new("tls", state, message) }
    }
}

impl From<CheckResult> for Observation {
    fn from(result: CheckResult) -> Self {
        let CheckResult { tracked: TrackedCheck { check, since }, checks } = result;
        let Check { name, state, code, params, findings, message, remedy } = check;
        Self {
            since: Some(since),
            checks,
            code: Some(code.as_str()),
            params,
            remedy: Some(remedy).filter(|remedy| !remedy.is_empty()),
            findings: findings.iter().map(FindingView::from).collect(),
            ..Self::new(name, state, message)
        }
    }
}

async fn observer(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Observation>>, ApiError> {
    let open = cx.open()?;
    let World { status: last, attached, .. } = open.world();
    let mut list: Vec<Observation> = last
        .subsystems
        .iter()
        .map(|(name, subsystem)| {
            let outcome = &subsystem.outcome;
            let messages: Vec<String> = outcome
                .failed
                .iter()
                .map(|failure| format!("{}: {}", failure.resource, failure.error))
                .collect();
            // A backend that could not be read reports itself as the resource.
            let unreadable = outcome.failed.iter().any(|failure| failure.resource == *name);
            let state = match (outcome.is_ok(), unreadable) {
                (true, _) => CheckState::Ok,
                (false, true) => CheckState::Failed,
                (false, false) => CheckState::Degraded,
            };
            Observation {
                since: Some(subsystem.since),
                checks: subsystem.checks,
                ..Observation::new(*name, state, messages.join("; "))
            }
        })
        .collect();
    list.extend(open.tls.certificate().map(Observation::from));
    list.push(secrets(open));
    list.extend(open.check().await.into_iter().map(Observation::from));
    list.extend(open.services.supervisor().report().into_iter().map(task));
    list.push(panicked());
    if attached.is_none() {
        let message = "This gateway is not attached to a kernel; it enforces nothing.";
        list.push(Observation::new("dataplane", ObservationState::Disabled, message));
    }
    Ok(WithHeaders::counted(list))
}

/// Returns the status of the stored secrets.
fn secrets(open: &Open) -> Observation {
    let status = open.store.secrets_status();
    let (state, message) = match (status.locked, status.unreadable) {
        (true, _) => (CheckState::Failed, "the passphrase of the secrets is lost: set it again".to_owned()),
        (false, 0) => (CheckState::Ok, String::new()),
        (false, count) => {
            (CheckState::Degraded, format!("{count} secrets cannot be decrypted: set them again"))
        }
    };
    Observation::new("secrets", state, message)
}

/// Returns the status of a long-lived task. It is failed from its end until it has recovered.
fn task((name, health): (TaskName, TaskHealth)) -> Observation {
    let state = if health.failure.is_some() { CheckState::Failed } else { CheckState::Ok };
    Observation {
        since: Some(health.since),
        checks: health.starts,
        ..Observation::new(name.into_owned(), state, health.failure.unwrap_or_default())
    }
}

/// Returns the number of panics of tasks and threads since the start, including short-lived ones.
fn panicked() -> Observation {
    let panics = panics::watch().borrow().clone();
    let message = panics.last.map(|last| {
        format!(
            "{} tasks have panicked, the last one in thread {} at {}",
            panics.count, last.thread, last.location
        )
    });
    let state = if message.is_none() { CheckState::Ok } else { CheckState::Degraded };
    Observation { checks: panics.count, ..Observation::new("panics", state, message.unwrap_or_default()) }
}

/// A field of a kernel object that another program changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Drift {
    /// Subsystem of the object.
    pub r#type: String,
    pub resource: String,
    pub field: String,
    pub expected: String,
    pub actual: String,
    pub severity: Severity,
    pub detected_at: Timestamp,
    pub repaired: bool,
}

impl From<&DriftItem> for Drift {
    fn from(item: &DriftItem) -> Self {
        let DriftItem { subsystem, resource, field, expected, actual, severity, detected_at, repaired } =
            item;
        Self {
            r#type: subsystem.clone(),
            resource: resource.clone(),
            field: field.clone(),
            expected: expected.clone(),
            actual: actual.clone(),
            severity: *severity,
            detected_at: *detected_at,
            repaired: *repaired,
        }
    }
}

/// Query of the recent drift.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DriftQuery {
    /// Maximum number of entries: 1 to 1000.
    limit: Limit<1000, 1000>,
}

async fn drift(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<Drift>>, ApiError> {
    let open = cx.open()?;
    let limit = request.query.read::<DriftQuery>()?.limit.get();
    let last = open.world().status;
    let mut answer =
        WithHeaders::new(last.drift.iter().rev().take(limit).map(Drift::from).collect::<Vec<_>>());
    answer.total = Some(last.drift.len());
    Ok(answer)
}

async fn platform(cx: Cx, _: Req<()>) -> Result<Platform, ApiError> {
    let open = cx.open().ok();
    let xdp = open.as_ref().map(|open| open.enforcement.dataplane().xdp()).transpose();
    let xdp = xdp.map_err(|error| ApiError::internal(&error))?.unwrap_or_default().interfaces;
    let xdp = xdp.into_iter().filter(|(_, state)| state.attached).map(|(name, _)| name).collect();
    let world = open.map(|open| open.world());
    let attached = world.as_ref().and_then(|world| world.attached).map_or("none", AttachMode::as_str);
    let facts = world.map(|world| world.facts).unwrap_or_default();
    blocking(move || host_info::read(attached, &facts, &xdp)).await
}
