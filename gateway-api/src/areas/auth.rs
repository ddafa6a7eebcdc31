//! Sign-in, sessions, API keys, users.

use crate::table::Method::{Delete, Get, Post};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "accounts and sign-in, which this version does not have",
        &[
            (Get, "/auth/status"),
            (Post, "/auth/setup"),
            (Post, "/auth/login"),
            (Post, "/auth/change-password"),
            (Get, "/auth/tokens"),
            (Delete, "/auth/tokens/{id}"),
            (Get, "/auth/keys"),
            (Post, "/auth/keys"),
            (Delete, "/auth/keys/{id}"),
            (Get, "/auth/users"),
            (Post, "/auth/users"),
            (Delete, "/auth/users/{id}"),
        ],
    );
}
