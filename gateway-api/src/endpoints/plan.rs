//! Bulk changes: dry run, apply, and confirmation or rollback (commit-confirmed).

use std::sync::Arc;
use std::time::Duration;

use gateway_core::compile::{Input, compile};
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_core::network_tests::failing_gates;
use gateway_core::plan_diff::{PlanDiff, plan_diff};
use gateway_ctl::reconcile::{Reason, Status};
use gateway_ctl::store::{
    AuditTicket, ChangeRecords, Confirm, RollbackOptions, RolledBackChange, SnapshotReason,
};
use gateway_ctl::world::World;
use gateway_model::bulk_edit::undo::Overlap;
use gateway_model::bulk_edit::{self, ItemChange, Mode, Op, Order, Outcome};
use gateway_model::field_diff::SettingChange;
use gateway_model::problem::code;
use gateway_model::{EditError, Problem, Problems, Revision, State, Warning};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::routing::views::{Run, failures};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::dispatch::conditional;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

/// Maximum time for the confirmation of a change, in seconds.
const MAX_CONFIRM_SECONDS: u32 = 86_400;

pub(super) fn rows(t: &mut Table) {
    t.question("/validate", "validate_plan", validate)
        .summary("Preview the changes of a plan of several objects")
        .doc(
            "Accepts the body of /apply and changes nothing. errors lists the faults of the plan; the status is 200 nevertheless.",
        )
        .answers(&[Code::PreconditionFailed])
        .requires_input();
    t.action("/apply", "apply_plan", Effect::Stores(AUDIT), apply)
        .summary("Create, change and delete several objects and apply them")
        .doc(
            "One transaction, all or nothing, with a snapshot taken first. Objects are matched by id, else by a \
             unique name or address, else by a name that only one object has; those of one plan may name each other. \
             Policies that were pending before and that the plan does not name stay pending; warnings list them. A \
             plan without resources applies all. Answers when the kernel has the new plan. With confirm_timeout_sec \
             the change is undone by itself, unless /apply/confirm is called in time; what was written since stays. \
             If-Match takes the revision of the store.",
        )
        .answers(&[Code::PreconditionFailed])
        .requires_input();
    t.command(
        "/apply/confirm",
        "confirm_apply",
        Effect::Stores(Audit { action: "confirm_apply", resource_type: "plan" }),
        confirm,
    )
    .summary("Confirm the pending change");
    t.command(
        "/apply/revert",
        "revert_apply",
        Effect::Stores(Audit { action: "revert_apply", resource_type: "plan" }),
        revert,
    )
    .summary("Roll back the pending change now")
    .doc(
        "Undoes the writes of the pending change and keeps later writes. overlaps lists the objects that both wrote: fields set by the change are restored; objects that it created stay if they were changed or are referred to since.",
    );
}

const AUDIT: Audit = Audit { action: "apply_plan", resource_type: "plan" };

/// Changes of many objects.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct PlanInput {
    /// If true, only reports the changes.
    pub dry_run: bool,
    pub mode: Mode,
    /// Lists of objects by collection, in the format of the collection. `-` and `_` are alike in its name.
    pub resources: Map<String, Value>,
    /// Seconds within which /apply/confirm must be called, at most 86400. Otherwise the change is rolled back. 0: no
    /// confirmation needed.
    pub confirm_timeout_sec: u32,
    /// If true, also deletes objects that policies refer to. They are then unavailable for these policies.
    pub force: bool,
}

/// Result of a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct PlanResult {
    /// The plan has no errors.
    pub valid: bool,
    pub dry_run: bool,
    /// The change is in force.
    pub applied: bool,
    /// Revision of the store after the change; for a dry run the current one.
    pub revision: u64,
    pub changes: Vec<ItemChange>,
    /// Changed settings; an import or a rollback changes some.
    pub settings: Vec<SettingChange>,
    /// Number of objects per kind of change.
    pub counts: Counts,
    pub warnings: Vec<Warning>,
    pub errors: Vec<Problem>,
    /// Changes in the dataplane; null for an invalid plan.
    pub plan: Option<PlanDiff>,
    /// Name of the snapshot taken before the change; null if nothing changed.
    pub snapshot: Option<String>,
    /// Time at which the change is rolled back unless it is confirmed; null if it needs no confirmation.
    pub pending_confirm_until: Option<Timestamp>,
    /// Result of the reconcile run; null if the plan was not applied.
    pub run: Option<Run>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Counts {
    pub create: usize,
    pub update: usize,
    pub unchanged: usize,
    pub delete: usize,
}

impl Counts {
    fn of(changes: &[ItemChange]) -> Counts {
        let count = |op: Op| changes.iter().filter(|change| change.op == op).count();
        Counts {
            create: count(Op::Create),
            update: count(Op::Update),
            unchanged: count(Op::Unchanged),
            delete: count(Op::Delete),
        }
    }
}

async fn validate(cx: Cx, request: Req<PlanInput>) -> Result<PlanResult, ApiError> {
    check_timeout(request.input.confirm_timeout_sec)?;
    let order = order(&request.input);
    dry_run(&cx, request.if_match, Gate::Tests, carrying_out(order)).await
}

async fn apply(cx: Cx, request: Req<PlanInput>) -> Result<WithHeaders<PlanResult>, ApiError> {
    let Req { input, if_match, .. } = request;
    check_timeout(input.confirm_timeout_sec)?;
    let order = order(&input);
    may_change(&cx, &order)?;
    if input.dry_run {
        return Ok(WithHeaders::new(dry_run(&cx, if_match, Gate::Tests, carrying_out(order)).await?));
    }
    let confirm = confirm_within(input.confirm_timeout_sec);
    let safety = RollbackOptions { reason: SnapshotReason::PreApply, confirm };
    execute(&cx, if_match, safety, Gate::Tests, carrying_out(order)).await
}

fn carrying_out(order: Order) -> impl FnOnce(&mut State) -> Result<Outcome, EditError> + Send + 'static {
    move |draft| bulk_edit::change(draft, &order).map_err(EditError::Invalid)
}

fn order(input: &PlanInput) -> Order {
    let PlanInput { dry_run: _, mode, resources, confirm_timeout_sec: _, force } = input.clone();
    Order { mode, resources, force, redacted: false, freeze: true, pending: Vec::new(), origin: None }
}

/// Checks that the caller may edit each kind of object in the plan through its collection.
pub(super) fn may_change(cx: &Cx, order: &Order) -> Result<(), ApiError> {
    let nouns: Vec<&str> = order
        .resources
        .keys()
        .filter_map(|name| bulk_edit::planned_kind(name))
        .map(|kind| kind.noun)
        .collect();
    for row in cx.api.table.endpoints() {
        let edits = row.effect.audit().is_some_and(|audit| {
            let verb = audit.action.split('_').next().unwrap_or_default();
            nouns.contains(&audit.resource_type) && matches!(verb, "create" | "replace" | "delete")
        });
        if edits {
            cx.require(row.access)?;
        }
    }
    Ok(())
}

pub(super) fn check_timeout(seconds: u32) -> Result<(), ApiError> {
    if seconds <= MAX_CONFIRM_SECONDS {
        return Ok(());
    }
    let mut problems = Problems::new();
    problems.add(
        code::RANGE,
        "confirm_timeout_sec",
        format!("At most {MAX_CONFIRM_SECONDS} seconds, which is a day."),
    );
    Err(ApiError::validation(&problems))
}

pub(super) fn confirm_within(seconds: u32) -> Option<Confirm> {
    (seconds > 0).then(|| Confirm { within: Duration::from_secs(u64::from(seconds)) })
}

/// Fails if `If-Match` does not name the current revision of the store.
fn check_revision(state: &State, if_match: Option<&str>) -> Result<(), EditError> {
    let Some(list) = if_match else { return Ok(()) };
    if conditional::matches_revision(list, &state.revision.to_string()) {
        return Ok(());
    }
    let expected = Revision(conditional::first_revision(list).unwrap_or(0));
    Err(EditError::Stale { resource_type: "plan", expected, current: state.revision })
}

/// Checks of a draft beside those of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// The gating tests must pass.
    Tests,
    /// Gating tests that fail are reported and recorded, and prevent nothing.
    Forced,
    /// None. Gating tests must not prevent a rollback, because they may have been added after the snapshot.
    None,
}

impl Gate {
    /// Fails if a gating test fails on the draft. Returns the names of the tests that fail nevertheless, and adds a
    /// warning for each.
    fn check(
        self,
        draft: &State,
        network: &Network,
        facts: &Facts,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<String>, EditError> {
        if self == Gate::None {
            return Ok(Vec::new());
        }
        let failing = failing_gates(&Input { state: draft, network, facts, now: draft.now() });
        let reasons: Vec<String> =
            failing.iter().map(|test| format!("{:?}: {}", test.name, test.failures.join("; "))).collect();
        if self == Gate::Tests && !failing.is_empty() {
            let reason =
                format!("the policies fail {} of the gating tests: {}", failing.len(), reasons.join("; "));
            return Err(EditError::PolicyConflict { policies: Vec::new(), reason });
        }
        warnings.extend(
            reasons.into_iter().map(|reason| {
                Warning::new("force", format!("Imported although a gating test fails: {reason}"))
            }),
        );
        Ok(failing.into_iter().map(|test| test.name).collect())
    }
}

/// Computes the changes without applying them.
pub(super) async fn dry_run(
    cx: &Cx,
    if_match: Option<String>,
    checks: Gate,
    edit: impl FnOnce(&mut State) -> Result<Outcome, EditError> + Send + 'static,
) -> Result<PlanResult, ApiError> {
    let world = cx.open()?.world();
    blocking(move || {
        check_revision(&world.state, if_match.as_deref())?;
        let mut draft = world.state.begin(world.now);
        let edited = edit(&mut draft).and_then(|mut outcome| {
            checks.check(&draft, &world.network, &world.facts, &mut outcome.warnings)?;
            Ok(outcome)
        });
        let outcome = match edited {
            Ok(outcome) => Ok(outcome),
            Err(EditError::Invalid(problems)) => Err(problems),
            Err(error) => {
                let mut problems = Problems::new();
                problems.add(code::CONFLICT, "", error.to_string());
                Err(problems)
            }
        };
        let plan = outcome.is_ok().then(|| {
            let input = world.input();
            plan_diff(&compile(&input), &compile(&Input { state: &draft, ..input }))
        });
        let (Outcome { changes, settings, warnings }, errors) = match outcome {
            Ok(outcome) => (outcome, Vec::new()),
            Err(problems) => {
                let (errors, warnings) = problems.into_parts();
                (Outcome { warnings, ..Outcome::default() }, errors)
            }
        };
        Ok(PlanResult {
            valid: errors.is_empty(),
            dry_run: true,
            applied: false,
            revision: world.state.revision.0,
            counts: Counts::of(&changes),
            changes,
            settings,
            warnings,
            errors,
            plan,
            snapshot: None,
            pending_confirm_until: None,
            run: None,
        })
    })
    .await?
}

/// Takes a snapshot, changes the store, reconciles the kernel and returns the result. Rolls the change back if the
/// kernel rejects the plan.
pub(super) async fn execute(
    cx: &Cx,
    if_match: Option<String>,
    safety: RollbackOptions,
    checks: Gate,
    edit: impl FnOnce(&mut State) -> Result<Outcome, EditError> + Send + 'static,
) -> Result<WithHeaders<PlanResult>, ApiError> {
    let open = cx.open()?;
    let (store, ticket) = (open.store.clone(), cx.own_ticket()?);
    let World { network, facts, .. } = open.world();
    let (outcome, before, secured) = blocking(move || {
        let committed = store.commit_safely(ticket, safety, |draft, ticket| {
            let before = store.current();
            check_revision(&before, if_match.as_deref())?;
            let mut outcome = edit(draft)?;
            let forced = checks.check(draft, &network, &facts, &mut outcome.warnings)?;
            note(ticket, &outcome, checks, &forced);
            Ok((outcome, before))
        });
        committed.map(|((outcome, before), secured)| (outcome, before, secured)).map_err(ApiError::from)
    })
    .await??;
    // The mode of key exchange is a setting that an import or a rollback may change.
    open.tls.adopt(&open.store);
    let status = open.reconcile(Reason::Apply).await?;
    if let Some(refusal) = status.as_ref().and_then(|status| status.refusal()) {
        return Err(take_back(open, secured, refusal).await?);
    }
    let world = open.world();
    let plan = blocking(move || {
        let input = world.input();
        plan_diff(&compile(&Input { state: &before, ..input }), &compile(&input))
    })
    .await?;
    let Outcome { changes, settings, mut warnings } = outcome;
    warnings.extend(failures(status.as_ref()));
    let ChangeRecords { snapshot, pending, .. } = secured;
    Ok(WithHeaders::new(PlanResult {
        valid: true,
        dry_run: false,
        applied: true,
        revision: open.store.current().revision.0,
        counts: Counts::of(&changes),
        changes,
        settings,
        warnings,
        errors: Vec::new(),
        plan: Some(plan),
        snapshot: snapshot.map(|snapshot| snapshot.name),
        pending_confirm_until: pending.map(|pending| pending.until),
        run: Some(Run::of(status.as_deref())),
    }))
}

fn note(ticket: &mut AuditTicket, outcome: &Outcome, checks: Gate, failing: &[String]) {
    ticket.details = serde_json::json!({ "counts": Counts::of(&outcome.changes) });
    if checks == Gate::Forced {
        ticket.details["force"] = true.into();
        ticket.details["failing_tests"] = failing.into();
    }
}

/// Rolls the store back after the kernel has rejected the plan and kept the previous one. Returns the error of the
/// response.
async fn take_back(open: &Open, secured: ChangeRecords, refusal: String) -> Result<ApiError, ApiError> {
    let store = open.store.clone();
    let ChangeRecords { snapshot, changes, .. } = secured;
    if let Some(snapshot) = snapshot {
        let ticket = AuditTicket::system("revert_apply", "plan");
        blocking(move || store.undo(ticket, &snapshot.name, &changes)).await??;
        open.tls.adopt(&open.store);
        open.reconcile(Reason::Apply).await?;
    }
    let mut error = ApiError::new(
        Code::ApplyFailed,
        "The plan could not be installed. The previous plan stays in force, and the change was rolled back.",
    )
    .detail("stage", "dataplane")
    .detail("kernel_message", refusal)
    .detail("kept_previous", true);
    // The commit and the rollback have audit entries.
    error.recorded = true;
    Ok(error)
}

/// Outcome of a pending change.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConfirmResult {
    /// The change was confirmed and stays in force.
    pub confirmed: bool,
    /// The change was rolled back.
    pub reverted: bool,
    /// Name of the snapshot taken before the change.
    pub snapshot: String,
    /// Revision of the store.
    pub revision: u64,
    /// Objects of the change that later writes changed too or depend on; empty for a confirmation.
    pub overlaps: Vec<Overlap>,
    /// Result of the reconcile run; null for a confirmation.
    pub run: Option<Run>,
}

async fn confirm(cx: Cx, _: Req<()>) -> Result<ConfirmResult, ApiError> {
    let open = cx.open()?;
    let (store, ticket) = (open.store.clone(), cx.own_ticket()?);
    let pending = blocking(move || store.confirm_pending(ticket)).await??.ok_or_else(nothing_waits)?;
    let revision = open.store.current().revision.0;
    Ok(ConfirmResult {
        confirmed: true,
        reverted: false,
        snapshot: pending.snapshot,
        revision,
        overlaps: Vec::new(),
        run: None,
    })
}

async fn revert(cx: Cx, _: Req<()>) -> Result<WithHeaders<ConfirmResult>, ApiError> {
    let open = cx.open()?;
    let (store, ticket) = (open.store.clone(), cx.own_ticket()?);
    let reverted = blocking(move || store.revert_pending(ticket)).await??.ok_or_else(nothing_waits)?;
    let RolledBackChange { pending, overlaps } = reverted;
    let status: Option<Arc<Status>> = open.reconcile(Reason::Apply).await?;
    let mut answer = WithHeaders::new(ConfirmResult {
        confirmed: false,
        reverted: true,
        snapshot: pending.snapshot,
        revision: open.store.current().revision.0,
        overlaps,
        run: Some(Run::of(status.as_deref())),
    });
    answer.warnings = failures(status.as_ref());
    Ok(answer)
}

fn nothing_waits() -> ApiError {
    ApiError::new(Code::InvalidState, "There is no pending change.")
        .detail("state", "none")
        .detail("allowed", ["pending"])
}
