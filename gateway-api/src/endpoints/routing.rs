//! Policies and their evaluation.

use std::sync::Arc;

use gateway_core::facts::Facts;
use gateway_model::kinds::policy_source::SourceType;
use gateway_model::{Kind, Resource, RoutingPolicy, State, Warning};
use serde_json::Value;

use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::Content;
use crate::request::Req;
use crate::table::Method::{Post, Put};
use crate::table::collection::{Live, Object, expected, shown};
use crate::table::{Audit, Collection, Effect, Endpoint, Ops, Table, Work};

mod exceptions;
mod objects;
mod paths;
mod pending;
mod presets;
pub mod views;

const KIND: &Kind = &Kind::of::<RoutingPolicy>();
const LIVE: Option<Live> = Some(Live::beside(observe_policies));

pub fn rows(t: &mut Table) {
    t.collection::<RoutingPolicy>(Collection {
        path: "/routing/policies",
        item: "/routing/policies/{id}",
        actions: ["create_routing_policy", "replace_routing_policy", "delete_routing_policy"],
        ops: Ops::ALL,
        live: LIVE,
    });
    add_warnings(t.declared(Post, "/routing/policies"));
    add_warnings(t.declared(Put, "/routing/policies/{id}"));
    let stores = |action| Effect::Stores(Audit { action, resource_type: RoutingPolicy::NOUN });
    t.command(
        "/routing/policies/{id}/toggle",
        "toggle_routing_policy",
        stores("toggle_routing_policy"),
        toggle,
    )
    .summary("Toggle a policy between enabled and disabled")
    .doc("Takes effect with the next apply, like every edit of a policy.")
    .tagged();
    t.command(
        "/routing/policies/apply",
        "apply_routing_policies",
        stores("apply_routing_policies"),
        views::apply,
    )
    .summary("Apply the stored policies")
    .doc("Freezes the stored policies with their profiles and chains, compiles them, and responds after the kernel has the plan. A failing gating test definition rejects the apply, and nothing changes.");
    views::rows(t);
    pending::rows(t);
    paths::rows(t);
    super::services::verify_rows(t);
    objects::rows(t);
    presets::rows(t);
    exceptions::rows(t);
}

/// Adds warnings to the response about a stored policy that depend on the state of the host.
fn add_warnings(row: &mut Endpoint) {
    let Work::Handler(inner) = row.work.clone() else { return };
    row.work = Work::Handler(Arc::new(move |cx, request| {
        let answer = inner(cx.clone(), request);
        Box::pin(async move {
            let mut reply = answer.await?;
            if let (Content::Data(policy), Ok(open)) = (&reply.content, cx.open()) {
                let advice = absent_interfaces(&open.worlds.last().facts, policy);
                reply.warnings.extend(advice);
            }
            Ok(reply)
        })
    }));
}

/// Warns about interfaces that the host does not have. Without observed links there is no warning.
fn absent_interfaces(facts: &Facts, policy: &Value) -> Option<Warning> {
    if facts.links.is_empty() || policy["source_type"] != SourceType::Interface.as_str() {
        return None;
    }
    let names = policy["source_value"].as_str()?.split(',').map(str::trim);
    let absent: Vec<&str> = names.filter(|name| !facts.links.contains_key(*name)).collect();
    let message = format!("This host has no interface {}, so no packet matches.", absent.join(", "));
    (!absent.is_empty()).then(|| Warning::new("source_value", message))
}

/// Adds the status and the active hop of policies.
fn observe_policies(open: &Open, state: &State, shown: &mut [Value]) {
    let live = open.live();
    super::observed::add_observed(shown, &state.routing_policies, |policy| live.policy(policy));
}

async fn toggle(cx: Cx, request: Req<()>) -> Result<Object<RoutingPolicy>, ApiError> {
    let id = request.params.get("id").to_owned();
    let warnings = {
        let id = id.clone();
        cx.commit(move |draft| {
            let expected = expected(KIND, draft, &id, request.if_match.as_deref())?;
            let parsed = id.parse().map_err(|_| super::by_id::not_found::<RoutingPolicy>(&id))?;
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

#[cfg(test)]
mod tests {
    use gateway_core::facts::Link;
    use serde_json::json;

    use super::*;

    #[test]
    fn interfaces_that_the_host_lacks_are_warned_of() {
        let mut facts = Facts::default();
        let policy = json!({"source_type": "interface", "source_value": "eth1, eth7,eth9"});
        assert!(absent_interfaces(&facts, &policy).is_none(), "nothing was observed");
        facts.links.insert("eth1".to_owned(), Link::default());
        let warning = absent_interfaces(&facts, &policy).expect("a warning");
        assert!(warning.message.contains("eth7, eth9") && !warning.message.contains("eth1,"), "{warning:?}");
        let subnet = json!({"source_type": "subnet", "source_value": "10.0.0.0/8"});
        assert!(absent_interfaces(&facts, &subnet).is_none());
    }
}
