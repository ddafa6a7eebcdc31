//! Packet capture, captive portal detection, network tests.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "packet capture, portal detection and network tests, which this version does not have",
        &[
            (Get, "/diagnostics/captures"),
            (Get, "/diagnostics/capture/presets"),
            (Post, "/diagnostics/capture"),
            (Get, "/diagnostics/capture/{id}"),
            (Delete, "/diagnostics/capture/{id}"),
            (Get, "/diagnostics/capture/{id}/stream"),
            (Post, "/captive/check"),
            (Get, "/test-definitions"),
            (Post, "/test-definitions"),
            (Get, "/test-definitions/{id}"),
            (Put, "/test-definitions/{id}"),
            (Delete, "/test-definitions/{id}"),
            (Post, "/test-definitions/run"),
        ],
    );
}
