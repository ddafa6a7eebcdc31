//! The local language-model assistant.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the assistant, which this version does not have",
        &[
            (Get, "/ai/status"),
            (Get, "/ai/config"),
            (Put, "/ai/config"),
            (Post, "/ai/validate"),
            (Post, "/ai/policy"),
            (Post, "/ai/service"),
            (Get, "/ai/models/running"),
            (Post, "/ai/models/load"),
            (Post, "/ai/models/unload"),
            (Post, "/ai/models/pull"),
            (Delete, "/ai/models/{name}"),
            (Post, "/ai/query"),
        ],
    );
}
