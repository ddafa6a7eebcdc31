//! Collectors that get the flow records.

use gateway_ctl::services::flow_export::CollectorState;
use gateway_model::settings::groups::FlowExport;

use crate::authorization::Access;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.group::<FlowExport>("/flows/export", "replace_flow_export", Access::Operate);
    t.view("/flows/export/status", "list_flow_collectors", states)
        .summary("What each collector of flow records has got")
        .doc("Records that a collector has not taken wait in the flow log, as long as it keeps them.");
}

async fn states(cx: Cx, _: Req<()>) -> Result<Vec<CollectorState>, ApiError> {
    Ok(cx.open()?.flow_exports.states())
}
