//! State of the access point that the gateway runs.

use gateway_ctl::services::access_point::{AccessPointHandle, AccessPointStatus};

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/access-point/status", "get_access_point_status", status)
        .summary("State of the access point and its stations, as hostapd reports them")
        .doc("The setting network.ap configures the access point. `needs` says what is missing on a host without hostapd or a radio.");
}

async fn status(cx: Cx, _: Req<()>) -> Result<AccessPointStatus, ApiError> {
    Ok(cx.open()?.handles.get::<AccessPointHandle>().status())
}
