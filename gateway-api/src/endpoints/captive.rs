//! Detection of captive portals.

use gateway_core::captive::{CaptiveState, overall};
use gateway_ctl::services::captive::{UplinkCheck, check};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::{Effect, Table};

pub(super) fn rows(t: &mut Table) {
    t.command("/captive/check", "check_captive_portal", Effect::Reads, run)
        .summary("Check each uplink for a captive portal")
        .doc(
            "Requests over HTTP, to addresses, leave by each uplink. The internet answers with 204; anything else is a portal. The targets are the settings group `captive`.",
        );
}

/// Result of the check.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CaptiveReport {
    checked_at: Timestamp,
    /// State of the best uplink.
    state: CaptiveState,
    uplinks: Vec<UplinkCheck>,
}

async fn run(cx: Cx, _: Req<()>) -> Result<CaptiveReport, ApiError> {
    let open = cx.open()?;
    let uplinks = check(&open.world()).await;
    Ok(CaptiveReport {
        checked_at: open.now(),
        state: overall(uplinks.iter().map(|uplink| uplink.state)),
        uplinks,
    })
}
