//! Devices, their groups and their classes of trust.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the model, which is being wired",
        &[
            (Get, "/devices"),
            (Post, "/devices"),
            (Get, "/devices/{id}"),
            (Put, "/devices/{id}"),
            (Delete, "/devices/{id}"),
            (Get, "/device-groups"),
            (Post, "/device-groups"),
            (Get, "/device-groups/{id}"),
            (Put, "/device-groups/{id}"),
            (Delete, "/device-groups/{id}"),
            (Get, "/trust-classes"),
            (Post, "/trust-classes"),
            (Get, "/trust-classes/{id}"),
            (Put, "/trust-classes/{id}"),
            (Delete, "/trust-classes/{id}"),
        ],
    );
}
