//! Peers that sync with this gateway.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "federation, which this version does not have",
        &[
            (Get, "/federation/status"),
            (Get, "/federation/peers"),
            (Get, "/federation/manifest"),
            (Get, "/federation/inventory"),
            (Get, "/federation/recent-events"),
            (Post, "/federation/sync"),
            (Get, "/nodes"),
            (Post, "/nodes"),
            (Put, "/nodes/{id}"),
            (Delete, "/nodes/{id}"),
            (Post, "/nodes/exchange"),
            (Post, "/nodes/{id}/approve"),
            (Get, "/gateway-nodes"),
            (Post, "/gateway-nodes"),
            (Put, "/gateway-nodes/{id}"),
            (Delete, "/gateway-nodes/{id}"),
            (Get, "/federation-roles"),
            (Post, "/federation-roles"),
            (Put, "/federation-roles/{id}"),
            (Delete, "/federation-roles/{id}"),
        ],
    );
}
