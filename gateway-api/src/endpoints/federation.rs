//! Federation: peers of this gateway, their roles, the exchange of keys, and the synchronisation.

mod bus;
mod exchange;
mod observed;
mod rotation;
mod sync;
mod views;

use gateway_model::kinds::{FederationRole, Node};

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::{Collection, Live, Ops, Table};
use observed::observe;

pub(super) fn rows(t: &mut Table) {
    t.collection::<Node>(Collection {
        path: "/nodes",
        item: "/nodes/{id}",
        actions: ["create_node", "replace_node", "delete_node"],
        ops: Ops::ALL,
        live: Some(Live::within(observe)),
    });
    t.collection::<FederationRole>(Collection {
        path: "/federation-roles",
        item: "/federation-roles/{id}",
        actions: ["create_federation_role", "replace_federation_role", "delete_federation_role"],
        ops: Ops::ALL,
        live: None,
    });
    t.alias(Get, "/gateway-nodes", "/nodes", "list_gateway_nodes");
    t.alias(Post, "/gateway-nodes", "/nodes", "create_gateway_node");
    t.alias(Get, "/gateway-nodes/{id}", "/nodes/{id}", "get_gateway_node");
    t.alias(Put, "/gateway-nodes/{id}", "/nodes/{id}", "replace_gateway_node");
    t.alias(Delete, "/gateway-nodes/{id}", "/nodes/{id}", "delete_gateway_node");
    bus::rows(t);
    exchange::rows(t);
    rotation::rows(t);
    sync::rows(t);
    views::rows(t);
}
