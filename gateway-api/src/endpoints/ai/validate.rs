//! Validation of a policy: the gateway's own check, and the words of the model beside it.

use gateway_core::assistant::prompt;
use gateway_core::assistant::verdict::{self, ModelVerdict};
use gateway_core::plan_check::{Issue, PlanCheck, check_edit};
use gateway_ctl::services::assistant::ModelError;
use gateway_model::{Kind, Resource, RoutingPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::model_access::assistant;
use super::privacy;
use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::{Audit, Table};

const KIND: Kind = Kind::of::<RoutingPolicy>();
const ASK: Audit = Audit { action: "ask_assistant", resource_type: RoutingPolicy::NOUN };

pub(super) fn rows(t: &mut Table) {
    t.question("/ai/validate", "validate_ai_policy", validate)
        .summary("Check a policy: the gateway's own check, and the words of the model beside it")
        .doc("The gateway alone decides valid and issues. Works without a model: ai is then null, and ai_error says why. Changes nothing.")
        .access(Access::Operate)
        .requires_input();
}

/// Policy to check.
#[derive(Debug, Deserialize, JsonSchema)]
struct ValidateInput {
    /// Routing policy as /routing/policies takes it. With the id of a stored one, it replaces that one.
    policy: Map<String, Value>,
}

/// Result of the check, and the words of the model.
#[derive(Debug, Serialize, JsonSchema)]
struct Validation {
    #[serde(flatten)]
    check: PlanCheck,
    /// Words of the model, which decide nothing; null without them.
    ai: Option<ModelVerdict>,
    /// Human-readable reason for which the model said nothing; null with its words.
    ai_error: Option<String>,
}

async fn validate(cx: Cx, request: Req<ValidateInput>) -> Result<Validation, ApiError> {
    let policy = request.input.policy;
    let (world, input) = (cx.open()?.world(), policy.clone());
    let mut check = blocking(move || check_edit(&world.input(), |draft| write(draft, input))).await?;
    for issue in check.issues.iter_mut().filter(|issue| !issue.path.is_empty()) {
        issue.path = format!("policy.{}", issue.path);
    }
    let (ai, ai_error) = match words(&cx, &Value::Object(policy), &check.issues).await? {
        Ok(words) => (Some(words), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(Validation { check, ai, ai_error })
}

/// Writes a policy into a draft: in place of the stored one with its id, else as a new one.
fn write(
    draft: &mut gateway_model::State,
    policy: Map<String, Value>,
) -> Result<Vec<gateway_model::Warning>, gateway_model::EditError> {
    let id = policy.get("id").and_then(Value::as_str).map(str::to_owned);
    let written = match id {
        Some(id) => KIND.replace(draft, &id, None, Value::Object(policy))?,
        None => KIND.create(draft, Value::Object(policy))?,
    };
    Ok(written.warnings)
}

/// Asks the model. Each request to it is in the audit log.
async fn words(
    cx: &Cx,
    policy: &Value,
    issues: &[Issue],
) -> Result<Result<ModelVerdict, ModelError>, ApiError> {
    let assistant = assistant(cx)?;
    if let Err(error) = assistant.enabled() {
        return Ok(Err(error));
    }
    cx.record_reading(ASK).await?;
    let mut privacy = privacy::of(cx).await?;
    let found: Vec<String> = issues.iter().map(|issue| privacy.hide(&issue.message)).collect();
    let policy = privacy.hide(&policy.to_string());
    let answer = assistant.ask(&prompt::verdict(&policy, &found), &verdict::schema()).await;
    let verdict = answer.and_then(|text| verdict::read(&text).map_err(ModelError::from));
    Ok(verdict.map(|verdict| ModelVerdict { explanation: privacy.restore(&verdict.explanation), ..verdict }))
}
