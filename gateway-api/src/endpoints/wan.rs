//! Uplinks, their health, and failover.

use gateway_model::capability::Capability;

use crate::table::Method::{Get, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        Capability::Uplinks,
        &[
            (Get, "/system/wan-uplinks"),
            (Put, "/system/wan-uplinks"),
            (Get, "/system/wan-manager"),
            (Get, "/system/wan-health"),
        ],
    );
}
