//! Policies, and what the gateway makes of them.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the engine, which is being wired",
        &[
            (Get, "/routing/policies"),
            (Post, "/routing/policies"),
            (Get, "/routing/policies/{id}"),
            (Put, "/routing/policies/{id}"),
            (Delete, "/routing/policies/{id}"),
            (Post, "/routing/policies/{id}/toggle"),
            (Post, "/routing/policies/apply"),
            (Post, "/policy/evaluate"),
            (Post, "/policy/conflicts"),
            (Get, "/policy/leak-matrix"),
            (Get, "/policy/fail-matrix"),
            (Get, "/render"),
            (Get, "/enforce"),
            (Post, "/enforce/reconcile"),
        ],
    );
    unbuilt(t);
}

fn unbuilt(t: &mut Table) {
    t.unsupported(
        "profiles, chains, segments and presets, which this version does not have",
        &[
            (Get, "/profiles"),
            (Post, "/profiles"),
            (Get, "/profiles/{id}"),
            (Put, "/profiles/{id}"),
            (Delete, "/profiles/{id}"),
            (Get, "/chains"),
            (Post, "/chains"),
            (Get, "/chains/{id}"),
            (Put, "/chains/{id}"),
            (Delete, "/chains/{id}"),
            (Get, "/segments"),
            (Get, "/vlans"),
            (Get, "/presets"),
        ],
    );
    t.unsupported(
        "exceptions, which this version does not have",
        &[
            (Get, "/exceptions"),
            (Post, "/exceptions"),
            (Get, "/exceptions/active"),
            (Get, "/exceptions/{id}"),
            (Delete, "/exceptions/{id}"),
        ],
    );
    t.unsupported(
        "privacy classes, which this version does not have",
        &[
            (Get, "/privacy-classes"),
            (Post, "/privacy-classes"),
            (Get, "/privacy-classes/{id}"),
            (Put, "/privacy-classes/{id}"),
            (Delete, "/privacy-classes/{id}"),
        ],
    );
    t.unsupported(
        "plans of many objects, which this version does not have",
        &[
            (Post, "/apply"),
            (Post, "/apply/confirm"),
            (Post, "/apply/revert"),
            (Post, "/validate"),
            (Get, "/verify"),
        ],
    );
}
