//! The mesh layer.

use gateway_model::capability::Capability;

use crate::table::Method::{Delete, Get, Post};
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.unsupported(
        Capability::Mesh,
        &[
            (Get, "/mesh/status"),
            (Get, "/mesh/config"),
            (Get, "/mesh/derp-mode"),
            (Get, "/mesh/peers"),
            (Get, "/mesh/peers/{id}"),
            (Delete, "/mesh/peers/{id}"),
            (Post, "/mesh/up"),
            (Post, "/mesh/down"),
            (Post, "/mesh/register"),
            (Post, "/mesh/create-key"),
        ],
    );
}
