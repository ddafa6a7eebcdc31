//! Splitting of one policy's traffic over several ways.

use crate::table::Method::{Delete, Get, Post};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the splitting settings, which this version does not have (a policy with splitting: true works)",
        &[
            (Get, "/splitting/status"),
            (Get, "/splitting/cover/stats"),
            (Get, "/splitting/dns/status"),
            (Get, "/splitting/transport"),
            (Get, "/splitting/endpoints"),
            (Post, "/splitting/endpoints"),
            (Delete, "/splitting/endpoints/{id}"),
            (Post, "/splitting/activate"),
        ],
    );
}
