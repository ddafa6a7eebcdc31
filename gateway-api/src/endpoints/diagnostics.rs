//! Packet capture, detection of captive portals, network tests.

use gateway_model::capability::Capability;

use crate::table::Method::{Delete, Get, Post};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    super::test_definitions::rows(t);
    super::captive::rows(t);
    t.unsupported(
        Capability::Captures,
        &[
            (Get, "/diagnostics/captures"),
            (Get, "/diagnostics/capture/presets"),
            (Post, "/diagnostics/capture"),
            (Get, "/diagnostics/capture/{id}"),
            (Delete, "/diagnostics/capture/{id}"),
            (Get, "/diagnostics/capture/{id}/stream"),
        ],
    );
}
