//! Policies, and what the gateway makes of them.

use gateway_model::{Kind, Resource, RoutingPolicy, State};
use serde_json::Value;

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::request::Req;
use crate::table::collection::{Live, Object, expected, shown};
use crate::table::{Audit, Collection, Effect, Ops, Table};

mod exceptions;
mod objects;
mod presets;
pub mod views;

const KIND: &Kind = &Kind::of::<RoutingPolicy>();
const LIVE: Option<Live> = Some(observe_policies);

pub fn rows(t: &mut Table) {
    t.collection::<RoutingPolicy>(Collection {
        path: "/routing/policies",
        item: "/routing/policies/{id}",
        actions: ["create_routing_policy", "replace_routing_policy", "delete_routing_policy"],
        ops: Ops::ALL,
        live: LIVE,
    });
    let stores = |action| Effect::Stores(Audit { action, resource_type: RoutingPolicy::NOUN });
    t.command(
        "/routing/policies/{id}/toggle",
        "toggle_routing_policy",
        stores("toggle_routing_policy"),
        toggle,
    )
    .summary("Enable a disabled policy, disable an enabled one")
    .doc("Like every edit of a policy it takes effect with the next apply.")
    .tagged();
    t.command(
        "/routing/policies/apply",
        "apply_routing_policies",
        stores("apply_routing_policies"),
        views::apply,
    )
    .summary("Let the stored policies steer traffic")
    .doc("Freezes the stored policies with what they take from profiles and chains, compiles them and brings the kernel there before it answers. A gating test definition that fails on them refuses it: nothing changes then.");
    views::rows(t);
    super::services::verify_rows(t);
    objects::rows(t);
    presets::rows(t);
    exceptions::rows(t);
}

/// Whether the policies steer traffic, and by which hop.
fn observe_policies(open: &Open, state: &State, shown: &mut [Value]) {
    let observed = open.observed();
    super::add_observed(shown, &state.routing_policies, |policy| observed.policy(policy));
}

async fn toggle(cx: Cx, request: Req<()>) -> Result<Object<RoutingPolicy>, ApiError> {
    let id = request.params.get("id").to_owned();
    let warnings = {
        let id = id.clone();
        cx.commit(move |draft| {
            let expected = expected(KIND, draft, &id, request.if_match.as_deref())?;
            let parsed = id.parse().map_err(|_| super::not_found::<RoutingPolicy>(&id))?;
            let (_, warnings) =
                draft.update::<RoutingPolicy>(parsed, expected, |policy| policy.enabled = !policy.enabled)?;
            Ok(warnings)
        })
        .await?
    };
    let open = cx.open()?;
    let state = open.store.current();
    let (value, revision) = KIND.get(&state, &id)?;
    let mut reply = shown(open, &state, LIVE, value, revision);
    reply.warnings = warnings;
    Ok(Object::new(reply))
}
