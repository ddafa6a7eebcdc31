//! Dry run: the decision on the traffic of a device, now or at an earlier time.

use std::net::IpAddr;

use gateway_core::evaluate::past::evaluate_at;
use gateway_core::evaluate::{self, EvaluatedFlow, Evaluation, FastPathView, FlowComparison, recorded_flow};
use gateway_core::flow_log::{FlowFilter, FlowId};
use gateway_core::plan_history::NotKept;
use gateway_ctl::services::flow_log::FlowLog;
use gateway_ctl::services::plan_history::{PastError, PlanHistory};
use gateway_model::problem::{Problems, code};
use gateway_model::{EditError, Warning};
use jiff::Timestamp;

use super::views::explain;
use crate::authorization::{self, Access};
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

/// Parts of a flow that are read to find its first one.
const MAX_PARTS: usize = 1000;

pub(super) fn rows(t: &mut Table) {
    t.question("/policy/evaluate", "evaluate_policies", answer)
        .summary("Decision for the traffic of a device, and its reason")
        .doc("A dry run of the kernel's decision function over the applied policies, as they are in force or, with `at`, as they were. With `flow_id`, it is the decision on a flow of the log by the plan that made it, and `flow` says whether the log agrees; this needs the access to `/flows`. Sends no packet.")
        .answers(&[Code::NotFound, Code::Conflict]);
}

async fn answer(cx: Cx, request: Req<evaluate::Request>) -> Result<WithHeaders<Evaluation>, ApiError> {
    match (request.input.flow_id, request.input.at) {
        (Some(flow), _) => evaluate_flow(&cx, request.input, flow).await,
        (None, Some(at)) => evaluate_past(&cx, request.input, at).await,
        (None, None) => evaluate_present(&cx, request.input).await.map(WithHeaders::new),
    }
}

async fn evaluate_present(cx: &Cx, mut question: evaluate::Request) -> Result<Evaluation, ApiError> {
    let open = cx.open()?;
    let now = open.world();
    if let Some(key) = evaluate::fqdn_key(&now.input(), now.compiled(), &question) {
        question.known_as = open.enforcement.dataplane().names_of(&key);
    }
    let names = open.names.clone();
    let is_slow =
        now.attached.is_some() && open.enforcement.dataplane().fast_path().is_ok_and(|stats| !stats.on);
    let answer = explain(cx, move |now| {
        let mut answer = evaluate::evaluate(&now.input(), now.compiled(), &question)?;
        if is_slow {
            let families = [&mut answer.families.ipv4, &mut answer.families.ipv6];
            families
                .into_iter()
                .flatten()
                .for_each(|verdict| verdict.fast_path = FastPathView::impossible("off"));
        }
        let verdict = answer.families.ipv4.as_ref().or(answer.families.ipv6.as_ref());
        let from = verdict.and_then(|verdict| verdict.source.parse::<IpAddr>().ok());
        answer.effective.dns =
            names.zip(from).map(|(names, from)| names.explain(from, question.name().as_ref()));
        Ok(answer)
    });
    answer.await?.map_err(|refusal: evaluate::Refusal| EditError::from(refusal).into())
}

/// Decides by the plan of an earlier time.
async fn evaluate_past(
    cx: &Cx,
    question: evaluate::Request,
    at: Timestamp,
) -> Result<WithHeaders<Evaluation>, ApiError> {
    let open = cx.open()?;
    if at > open.now() {
        let mut problems = Problems::new();
        problems.add(code::RANGE, "at", "The time must not be in the future.");
        return Err(EditError::Invalid(problems).into());
    }
    let history = open.handles.get::<PlanHistory>();
    let answer = blocking(move || {
        let past = history.at(at).map_err(|error| not_kept(&error, at, history.oldest()))?;
        let plan = &past.plan;
        let evaluated =
            evaluate_at(&question, at, &plan.inputs, &plan.compiled, &past.in_force, plan.is_reproduced);
        evaluated.map_err(|refusal| ApiError::from(EditError::from(refusal)))
    });
    Ok(with_warnings(answer.await??))
}

/// Explains the decision on a flow of the log by the plan that made it.
async fn evaluate_flow(
    cx: &Cx,
    question: evaluate::Request,
    flow: FlowId,
) -> Result<WithHeaders<Evaluation>, ApiError> {
    authorization::check(&cx.actor, Access::Private)?;
    let alone = evaluate::Request { flow_id: Some(flow), ..evaluate::Request::default() };
    if question != alone {
        let mut problems = Problems::new();
        problems.add(
            code::CONFLICT,
            "flow_id",
            "All other fields are those of the flow: give flow_id alone.",
        );
        return Err(EditError::Invalid(problems).into());
    }
    let open = cx.open()?;
    let (history, log) = (open.handles.get::<PlanHistory>(), open.handles.get::<FlowLog>());
    blocking(move || explain_flow(&history, &log, flow)).await?.map(with_warnings)
}

fn explain_flow(history: &PlanHistory, log: &FlowLog, flow: FlowId) -> Result<Evaluation, ApiError> {
    let filter = FlowFilter { flow_id: Some(flow), ..FlowFilter::default() };
    let rows = log.read(&filter, None, None, MAX_PARTS).rows;
    // The first part begins with the packet that began the flow.
    let record = rows.into_iter().map(|row| row.record).min_by_key(|record| record.part);
    let at_flow = |error: ApiError| error.detail("field", "flow_id");
    let record = record.ok_or_else(|| at_flow(ApiError::not_found("flow", &flow.to_string())))?;
    let (Some(request), Some(path)) = (recorded_flow::request_of(&record), record.paths.first()) else {
        let message =
            "The log does not name the client of this flow, or its protocol is none of TCP, UDP and ICMP.";
        let mut problems = Problems::new();
        problems.add(code::NOT_SUPPORTED, "flow_id", message);
        return Err(EditError::Invalid(problems).into());
    };
    let past = history
        .of_generation(path.generation, path.at)
        .map_err(|error| at_flow(not_kept(&error, path.at, history.oldest())))?;
    let plan = &past.plan;
    let (inputs, compiled) = (&plan.inputs, &plan.compiled);
    let answer = evaluate_at(&request, path.at, inputs, compiled, &past.in_force, plan.is_reproduced);
    let mut answer = answer.map_err(|refusal| ApiError::from(EditError::from(refusal)))?;
    answer.flow = Some(EvaluatedFlow {
        flow_id: flow,
        at: path.at,
        reason: path.reason_text(),
        policy: path.policy,
        egress: path.egress.clone(),
        later_paths: usize::try_from(record.path_changes).unwrap_or(usize::MAX),
        comparison: match plan.is_reproduced {
            true => recorded_flow::compare(inputs, compiled, &record, path),
            false => FlowComparison::unknown("another version of the gateway compiled the plan"),
        },
    });
    Ok(answer)
}

/// Adds the warning that this version compiles another plan.
fn with_warnings(answer: Evaluation) -> WithHeaders<Evaluation> {
    let mut answer = WithHeaders::new(answer);
    if answer.data.as_of.as_ref().is_some_and(|plan| !plan.reproduced) {
        let message =
            "Another version of the gateway compiled the plan of then. This one compiles another plan.";
        answer.warnings.push(Warning::new("as_of.reproduced", message));
    }
    answer
}

/// Returns the error for a time of which no plan can be had.
fn not_kept(error: &PastError, at: Timestamp, oldest: Option<Timestamp>) -> ApiError {
    let message = match error {
        PastError::NotKept(NotKept::Nothing) => "No plan of an earlier time is kept.".to_owned(),
        PastError::NotKept(NotKept::Before { oldest }) => {
            format!("The plan of that time is not kept. The oldest one was in force from {oldest:.0} on.")
        }
        PastError::NotKept(NotKept::Unknown { from, .. }) => {
            format!("It is not known which plan was in force then: the gateway noted none from {from:.0} on.")
        }
        PastError::NotKept(NotKept::Generation(number)) => format!("The plan {number} is not kept."),
        PastError::Damaged | PastError::Restore(_) => {
            tracing::warn!(%error, %at, "failed to read a plan of the past");
            "The plan of that time cannot be read; the log of the gateway says why.".to_owned()
        }
    };
    let error =
        ApiError::new(Code::NotFound, message).detail("resource_type", "plan").detail("id", at.to_string());
    match oldest {
        Some(oldest) => error.detail("oldest", oldest.to_string()),
        None => error,
    }
}
