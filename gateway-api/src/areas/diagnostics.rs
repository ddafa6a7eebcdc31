//! Packet capture, captive portal detection, network tests.

use crate::table::Method::{Delete, Get, Post};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    super::test_definitions::rows(t);
    t.unsupported(
        "packet capture and portal detection, which this version does not have",
        &[
            (Get, "/diagnostics/captures"),
            (Get, "/diagnostics/capture/presets"),
            (Post, "/diagnostics/capture"),
            (Get, "/diagnostics/capture/{id}"),
            (Delete, "/diagnostics/capture/{id}"),
            (Get, "/diagnostics/capture/{id}/stream"),
            (Post, "/captive/check"),
        ],
    );
}
