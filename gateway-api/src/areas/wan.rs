//! Uplinks, their health and the failover manager.

use crate::table::Method::{Get, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the WAN manager, which this version does not have",
        &[
            (Get, "/system/wan-uplinks"),
            (Put, "/system/wan-uplinks"),
            (Get, "/system/wan-manager"),
            (Get, "/system/wan-health"),
        ],
    );
}
