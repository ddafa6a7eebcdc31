//! Applying and explaining policies, and views of the plan.

use std::sync::{Arc, OnceLock};

use gateway_core::compile::{Input, compile};
use gateway_core::conflicts::Conflict;
use gateway_core::matrix::{self, FailRow, LeakMatrix};
use gateway_core::network_tests::{self, TestResult};
use gateway_core::render::{self, Enforcement, Render};
use gateway_ctl::readings::BpfCounters;
use gateway_ctl::reconcile::{Reason, Status};
use gateway_ctl::services::events::Recent;
use gateway_ctl::world::World;
use gateway_model::{EditError, State, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};
use crate::view_cache::SharedView;

pub(crate) fn rows(t: &mut Table) {
    t.command(
        "/enforce/reconcile",
        "reconcile_enforcement",
        Effect::Acts(Audit { action: "reconcile_enforcement", resource_type: "enforcement" }),
        reconcile,
    )
    .summary("Compare the kernel with the plan now, and repair differences");
    t.command("/policy/conflicts", "find_policy_conflicts", Effect::Reads, conflicts)
        .heavy()
        .summary("Conflicting policies and policies with missing targets")
        .access(Access::Check);
    t.view("/policy/leak-matrix", "get_leak_matrix", leak_matrix)
        .heavy()
        .summary("Leak matrix: behaviour of each applied policy in each state of the tunnels")
        .query::<MatrixQuery>();
    t.view("/policy/fail-matrix", "get_fail_matrix", fail_matrix)
        .heavy()
        .summary("Behaviour of each applied policy now, without its first hop, and without any hop");
    t.view("/render", "get_render", rendered)
        .heavy()
        .summary("Compiled dataplane: maps, rules, routes, and counters of the programs");
    t.view("/enforce", "get_enforcement", enforcement).heavy().summary("Compiled policies as enforced");
}

/// Result of a reconcile run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Run {
    /// If false, this gateway is not attached to a kernel and enforced nothing.
    pub enforced: bool,
    /// All subsystems match the plan.
    pub ok: bool,
    /// Sequence number of the run; 0 without one.
    pub run: u64,
    /// Revision that was compiled.
    pub revision: u64,
    /// Duration of the run in milliseconds.
    pub duration_ms: u64,
    /// Number of entries that another program changed since the previous run.
    pub drift: usize,
}

impl Run {
    pub(crate) fn of(status: Option<&Status>) -> Self {
        let Some(status) = status else {
            return Self { enforced: false, ok: false, run: 0, revision: 0, duration_ms: 0, drift: 0 };
        };
        Self {
            enforced: true,
            ok: status.is_ok(),
            run: status.run,
            revision: status.revision,
            duration_ms: status.duration_ms,
            drift: status.subsystems.values().map(|subsystem| subsystem.outcome.drift.len()).sum(),
        }
    }
}

/// Returns the failures of a run as warnings.
pub(crate) fn failures(status: Option<&Arc<Status>>) -> Vec<Warning> {
    let subsystems = status.into_iter().flat_map(|status| &status.subsystems);
    subsystems
        .flat_map(|(name, subsystem)| {
            subsystem.outcome.failed.iter().map(move |failure| {
                Warning::new(format!("subsystems.{name}"), format!("{}: {}", failure.resource, failure.error))
            })
        })
        .collect()
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApplyResult {
    /// Revision of the applied policies, which steer traffic from now on.
    pub applied_revision: u64,
    /// Number of enabled policies.
    pub policies: usize,
    #[serde(flatten)]
    pub run: Run,
}

pub(crate) async fn apply(cx: Cx, _: Req<()>) -> Result<WithHeaders<ApplyResult>, ApiError> {
    if let Some(pending) = cx.open()?.store.pending() {
        // A rollback of the pending change would revert the apply as well.
        return Err(ApiError::apply_in_progress(&pending));
    }
    freeze(&cx, |draft| {
        draft.freeze_applied();
        Ok(())
    })
    .await?;
    enforce(&cx).await
}

/// Reconciles the kernel with the applied policies.
pub(crate) async fn enforce(cx: &Cx) -> Result<WithHeaders<ApplyResult>, ApiError> {
    let open = cx.open()?;
    let status = open.reconcile(Reason::Apply).await?;
    if let Some(refusal) = status.as_ref().and_then(|status| status.refusal()) {
        let mut error = ApiError::new(
            Code::ApplyFailed,
            "The policies are stored as applied, but the plan could not be installed; the previous plan stays in force.",
        )
        .detail("stage", "dataplane")
        .detail("kernel_message", refusal)
        .detail("kept_previous", true);
        // The commit has its audit entry. The observer reports the result in the kernel.
        error.recorded = true;
        return Err(error);
    }
    let state = open.store.current();
    let now = open.now();
    let mut answer = WithHeaders::new(ApplyResult {
        applied_revision: state.applied.revision.0,
        policies: state.applied.policies.iter().filter(|policy| policy.in_force(now)).count(),
        run: Run::of(status.as_deref()),
    });
    answer.warnings = failures(status.as_ref());
    Ok(answer)
}

/// Changes the set of applied policies. Fails if a gating test fails on them.
pub(crate) async fn freeze(
    cx: &Cx,
    change: impl FnOnce(&mut State) -> Result<(), EditError> + Send + 'static,
) -> Result<(), ApiError> {
    let open = cx.open()?;
    let World { network, facts, .. } = open.world();
    let failed: Arc<OnceLock<Vec<TestResult>>> = Arc::default();
    let reported = failed.clone();
    let frozen = cx.commit(move |draft| {
        change(draft)?;
        let input = Input { state: draft, network: &network, facts: &facts, now: draft.now() };
        let failing = network_tests::failing_gates(&input);
        if failing.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> =
            failing.iter().map(|test| format!("{:?}: {}", test.name, test.failures.join("; "))).collect();
        let reason =
            format!("the policies fail {} of the gating tests: {}", failing.len(), reasons.join("; "));
        // It is set only here.
        let _ = failed.set(failing);
        Err(EditError::PolicyConflict { policies: Vec::new(), reason })
    });
    frozen.await.map_err(|error| match reported.get() {
        Some(failing) => error
            .detail("stage", "test_definitions")
            .detail("kept_previous", true)
            .detail("failures", serde_json::json!(failing)),
        None => error,
    })
}

async fn reconcile(cx: Cx, _: Req<()>) -> Result<WithHeaders<Run>, ApiError> {
    let status = cx.open()?.reconcile(Reason::Manual).await?;
    let mut answer = WithHeaders::new(Run::of(status.as_deref()));
    answer.warnings = failures(status.as_ref());
    Ok(answer)
}

/// Computes an explanation on a blocking thread, because many policies take time.
pub(super) async fn explain<T: Send + 'static>(
    cx: &Cx,
    make: impl FnOnce(&World) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let world = cx.open()?.world();
    blocking(move || make(&world)).await
}

/// A conflict with the names of its policies.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NamedConflict {
    #[serde(flatten)]
    pub conflict: Conflict,
    /// Names of the policies, in the order of the conflict.
    pub names: Vec<String>,
}

async fn conflicts(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<NamedConflict>>, ApiError> {
    let list = explain(&cx, |now| {
        let found = gateway_core::conflicts::conflicts(&now.input(), now.compiled());
        let name =
            |id| now.state.routing_policies.get(id).map(|policy| policy.name.clone()).unwrap_or_default();
        let named = found.into_iter().map(|conflict| NamedConflict {
            names: conflict.policies.iter().map(|id| name(*id)).collect(),
            conflict,
        });
        named.collect::<Vec<_>>()
    })
    .await?;
    Ok(WithHeaders::counted(list))
}

/// Query of the leak matrix.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MatrixQuery {
    /// Adds a column for each tunnel, proxy and uplink that policies use: only that one is down.
    per_hop: bool,
    /// Evaluates the stored policies, as they would steer traffic after an apply, in place of the applied ones.
    pending: bool,
}

async fn leak_matrix(cx: Cx, request: Req<()>) -> Result<SharedView<LeakMatrix>, ApiError> {
    let open = cx.open()?;
    let MatrixQuery { per_hop, pending } = request.query.read()?;
    let name = match (pending, per_hop) {
        (false, false) => "leak_matrix",
        (false, true) => "leak_matrix_per_hop",
        (true, false) => "leak_matrix_pending",
        (true, true) => "leak_matrix_pending_per_hop",
    };
    let compute = move |now: &World| {
        let state = if pending { with_stored_policies(now) } else { now.state.clone() };
        let input = Input { state: &state, ..now.input() };
        let mut matrix = match per_hop {
            true => matrix::per_hop::leak_matrix_per_hop(&input),
            false => matrix::leak_matrix(&input),
        };
        let plan = if pending { Arc::new(compile(&input)) } else { now.compiled().clone() };
        matrix.count_hosts(&input, &plan, &now.reports.hosts);
        matrix
    };
    cx.api.view_cache.get(name, || open.world(), compute, |_| None).await
}

/// Returns the state in which the stored policies are the applied ones.
pub(crate) fn with_stored_policies(world: &World) -> Arc<State> {
    let mut draft = world.state.begin(world.now);
    draft.freeze_applied();
    Arc::new(draft)
}

async fn fail_matrix(cx: Cx, _: Req<()>) -> Result<SharedView<Vec<FailRow>>, ApiError> {
    let open = cx.open()?;
    let compute = |now: &World| matrix::fail_matrix(&now.input(), now.compiled());
    cx.api.view_cache.get("fail_matrix", || open.world(), compute, |rows| Some(rows.len())).await
}

/// The plan, and its counters.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RenderedPlan {
    #[serde(flatten)]
    pub plan: Render,
    pub counters: BpfCounters,
}

async fn rendered(cx: Cx, _: Req<()>) -> Result<RenderedPlan, ApiError> {
    let open = cx.open()?;
    let (reader, facts, recent) =
        (open.enforcement.dataplane(), open.worlds.last().facts.clone(), open.handles.get::<Recent>());
    let counted = blocking(move || Ok((reader.generation()?, reader.counters(&facts, &recent)?))).await?;
    let (generation, counters) =
        counted.map_err(|error: gateway_ctl::os::bpf::Error| ApiError::internal(&error))?;
    let plan = explain(&cx, move |now| render::render(now.compiled(), generation)).await?;
    Ok(RenderedPlan { plan, counters })
}

async fn enforcement(cx: Cx, _: Req<()>) -> Result<SharedView<Enforcement>, ApiError> {
    let open = cx.open()?;
    let compute = |now: &World| render::enforce(&now.input(), now.compiled());
    cx.api.view_cache.get("enforcement", || open.world(), compute, |_| None).await
}
