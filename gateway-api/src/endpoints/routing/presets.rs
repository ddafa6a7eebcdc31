//! Traffic presets: templates of policies or profiles, and creating an object from one.

use gateway_model::kinds::{Preset, Profile};
use gateway_model::registry::Kind;
use gateway_model::{EditError, Resource, RoutingPolicy, State, Warning};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Collection, Effect, Ops, Table};

const KIND: &Kind = &Kind::of::<Preset>();

pub(super) fn rows(t: &mut Table) {
    t.collection::<Preset>(Collection {
        path: "/presets",
        item: "/presets/{id}",
        actions: ["create_preset", "replace_preset", "delete_preset"],
        ops: Ops::ALL,
        live: None,
    });
    let effect = Effect::Stores(Audit { action: "apply_preset", resource_type: Preset::NOUN });
    t.action("/presets/{id}/apply", "apply_preset", effect, apply)
        .summary("Create the policy or the profile of a preset")
        .doc(
            "The body contains the fields that the preset leaves open, such as source_value and hops, and overrides of its fields. A created policy takes effect with the next apply.",
        )
        .answers(&[Code::NotFound])
        .status(201);
}

/// Fields of the policy or the profile that override those of the template.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Fields(Map<String, Value>);

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AppliedPreset {
    /// Name of the preset.
    pub preset: String,
    pub created: Vec<CreatedObject>,
}

/// A created object.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CreatedObject {
    /// Type of the object: `routing_policy` or `profile`.
    pub r#type: &'static str,
    pub id: String,
    pub name: String,
    /// The object, as its collection returns it.
    pub object: Map<String, Value>,
}

async fn apply(cx: Cx, request: Req<Fields>) -> Result<WithHeaders<AppliedPreset>, ApiError> {
    let id = request.params.get("id").to_owned();
    let fields = request.input.0;
    let (preset, made, warnings) = cx.commit(move |draft| make(draft, &id, fields)).await?;
    let front = if made.r#type == RoutingPolicy::NOUN { "/routing/policies" } else { "/profiles" };
    let location = Some(format!("{front}/{}", made.id));
    let mut answer = WithHeaders::new(AppliedPreset { preset, created: vec![made] });
    (answer.status, answer.location, answer.warnings) = (StatusCode::CREATED, location, warnings);
    Ok(answer)
}

/// Creates the object of the preset with this id or name.
fn make(
    draft: &mut State,
    id: &str,
    fields: Map<String, Value>,
) -> Result<(String, CreatedObject, Vec<Warning>), EditError> {
    let found = KIND.find(draft, id).and_then(|id| draft.presets.get(id).cloned());
    let preset = found.ok_or_else(|| super::super::by_id::not_found::<Preset>(id))?;
    let template = &preset.template;
    let (kind, body) = match (&template.policy, &template.profile) {
        (Some(policy), _) => (const { &Kind::of::<RoutingPolicy>() }, policy),
        (None, Some(profile)) => (const { &Kind::of::<Profile>() }, profile),
        // A preset without a template cannot be stored.
        (None, None) => return Err(super::super::by_id::not_found::<Preset>(id)),
    };
    let mut body = body.clone();
    body.extend(fields);
    let leads_nowhere =
        |name: &str| body.get(name).is_none_or(|value| value.is_null() || *value == Value::Array(vec![]));
    let blocks = ["hops", "chain", "profile"].into_iter().all(leads_nowhere)
        && body.get("fail_policy").is_none_or(|policy| policy != "fail-open");
    let written = kind.create(draft, Value::Object(body))?;
    let mut warnings = written.warnings;
    if blocks {
        warnings.push(Warning::new("hops", "There are no hops, so matching traffic is blocked."));
    }
    let object = written.value.as_object().cloned().unwrap_or_default();
    let name = object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let made = CreatedObject { r#type: kind.noun, id: written.id.to_string(), name, object };
    Ok((preset.name.clone(), made, warnings))
}
