//! Policies and their evaluation.

use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_model::kinds::policy_source::SourceType;
use gateway_model::{Kind, Resource, RoutingPolicy, State, Warning};
use serde_json::Value;

use super::interfaces::presence::missing_hops;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::request::Req;
use crate::table::Method::{Post, Put};
use crate::table::collection::{Live, Object, expected, shown};
use crate::table::{Audit, Collection, Effect, Ops, Table};

mod evaluate;
mod exceptions;
mod objects;
mod paths;
mod pending;
mod presets;
pub(crate) mod views;

const KIND: &Kind = &Kind::of::<RoutingPolicy>();
const LIVE: Option<Live> = Some(Live::beside(observe_policies));

pub(super) fn rows(t: &mut Table) {
    t.collection::<RoutingPolicy>(Collection {
        path: "/routing/policies",
        item: "/routing/policies/{id}",
        actions: ["create_routing_policy", "replace_routing_policy", "delete_routing_policy"],
        ops: Ops::ALL,
        live: LIVE,
    });
    t.warned(Post, "/routing/policies", doubtful_interfaces);
    t.warned(Put, "/routing/policies/{id}", doubtful_interfaces);
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
    evaluate::rows(t);
    views::rows(t);
    pending::rows(t);
    paths::rows(t);
    super::services::verify_rows(t);
    objects::rows(t);
    presets::rows(t);
    exceptions::rows(t);
}

/// Warns about interfaces that the host does not have or that are no source. Without observed links there is no warning.
fn doubtful_interfaces(open: &Open, policy: &Value) -> Vec<Warning> {
    let world = open.worlds.last();
    let mut warnings = missing_hops(&world.config, &world.facts, policy);
    warnings.extend(doubtful_sources(&world.network, &world.facts, policy));
    warnings
}

fn doubtful_sources(network: &Network, facts: &Facts, policy: &Value) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if facts.links.is_empty() || policy["source_type"] != SourceType::Interface.as_str() {
        return warnings;
    }
    let names = policy["source_value"].as_str().unwrap_or_default().split(',').map(str::trim);
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let of = |is: &dyn Fn(&str) -> bool| {
        names.iter().copied().filter(|name| is(name)).collect::<Vec<_>>().join(", ")
    };
    let absent = of(&|name| !facts.links.contains_key(name));
    if !absent.is_empty() {
        let message = format!("This host has no interface {absent}, so no packet matches.");
        warnings.push(Warning::new("source_value", message));
    }
    let uplinks = of(&|name| network.uplinks.iter().any(|uplink| uplink.interface == name));
    if !uplinks.is_empty() {
        let message = format!(
            "{uplinks}: an uplink, not an interface of the LAN, so nothing that policies route comes in by it."
        );
        warnings.push(Warning::new("source_value", message));
    }
    warnings
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
    use gateway_core::network::UplinkSettings;
    use serde_json::json;

    use super::*;

    #[test]
    fn interfaces_that_the_host_lacks_and_uplinks_are_warned_of() {
        let uplink = UplinkSettings { interface: "wan0".to_owned(), ..UplinkSettings::default() };
        let network = Network { uplinks: vec![uplink], ..Network::default() };
        let mut facts = Facts::default();
        let messages = |facts: &Facts, policy: &Value| -> Vec<String> {
            let warnings = doubtful_sources(&network, facts, policy);
            assert!(warnings.iter().all(|warning| warning.path == "source_value"), "{warnings:?}");
            warnings.into_iter().map(|warning| warning.message).collect()
        };
        let policy = json!({"source_type": "interface", "source_value": "eth1, eth7,eth9"});
        assert!(messages(&facts, &policy).is_empty(), "nothing was observed");
        for name in ["eth1", "wan0"] {
            facts.links.insert(name.to_owned(), Link::default());
        }
        let found = messages(&facts, &policy);
        assert!(
            found.len() == 1 && found[0].contains("eth7, eth9") && !found[0].contains("eth1,"),
            "{found:?}"
        );
        let found = messages(&facts, &json!({"source_type": "interface", "source_value": "wan0"}));
        assert!(found.len() == 1 && found[0].starts_with("wan0: an uplink"), "{found:?}");
        assert!(messages(&facts, &json!({"source_type": "subnet", "source_value": "10.0.0.0/8"})).is_empty());
    }
}
