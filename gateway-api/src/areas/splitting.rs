//! Splitting of one policy's traffic over several ways.

use gateway_model::State;
use gateway_model::kinds::{EndpointLive, EndpointState, SplittingEndpoint};
use serde_json::Value;

use crate::gateway::Open;
use crate::table::Method::{Get, Post};
use crate::table::{Collection, Ops, Table};

pub fn rows(t: &mut Table) {
    t.collection::<SplittingEndpoint>(Collection {
        path: "/splitting/endpoints",
        item: "/splitting/endpoints/{id}",
        actions: ["create_splitting_endpoint", "replace_splitting_endpoint", "delete_splitting_endpoint"],
        ops: Ops::LIST | Ops::CREATE | Ops::DELETE,
        live: Some(observe),
    });
    t.unsupported(
        "the splitting settings, which this version does not have (a policy with splitting: true works)",
        &[
            (Get, "/splitting/status"),
            (Get, "/splitting/cover/stats"),
            (Get, "/splitting/dns/status"),
            (Get, "/splitting/transport"),
            (Post, "/splitting/activate"),
        ],
    );
}

/// What is known of the tunnels behind the endpoints.
fn observe(open: &Open, state: &State, shown: &mut [Value]) {
    let compiled = open.enforcement.compiled();
    super::add_observed(shown, &state.splitting_endpoints, |endpoint| {
        let healthy = compiled.legs.tunnel(&endpoint.tunnel).is_some_and(|leg| leg.usable);
        let state = if endpoint.enabled && healthy { EndpointState::Active } else { EndpointState::Down };
        EndpointLive { state, healthy, ..EndpointLive::default() }
    });
}
