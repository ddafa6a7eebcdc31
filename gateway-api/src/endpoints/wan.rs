//! Uplinks, their health, and failover.

mod advice;
mod decisions;
mod health;
mod uplinks;

use uplinks::WanUplinksRequest;

use crate::authorization::Access;
use crate::query::parameters::HistoryQuery;
use crate::table::{Audit, Effect, Input, Method, Table};

const REPLACE: Audit = Audit { action: "replace_wan_uplinks", resource_type: "wan_uplinks" };

pub(super) fn rows(t: &mut Table) {
    t.view("/system/wan-uplinks", "get_wan_uplinks", uplinks::show)
        .summary("Uplinks and how traffic is distributed over them")
        .doc("Without a list of its own, the list has the uplink `network.wan_iface`.")
        .tagged();
    let row = t.upload::<WanUplinksRequest, _, _, _>(
        "/system/wan-uplinks",
        REPLACE.action,
        Effect::Stores(REPLACE),
        // The handler needs to know which fields were sent.
        Input::json,
        uplinks::replace,
    );
    row.summary("Replace the whole list of uplinks")
        .doc("Send every uplink. `network.wan_iface` keeps its value. Warnings tell what may not have the expected effect.")
        .access(Access::Operate)
        .tagged();
    row.method = Method::Put;
    t.view("/system/wan-manager", "get_wan_manager", decisions::show)
        .summary("Active uplink, decisions with their reasons, and the legs of the uplinks");
    t.view("/system/wan-health", "get_wan_health", health::show)
        .summary("Reachability of the internet by each uplink, as its probes measure it")
        .query::<HistoryQuery>();
}
