//! Anomalies in the traffic of devices.

use gateway_core::anomalies::{Anomaly, AnomalyFilter, AnomalyStats};
use gateway_ctl::services::anomalies::Anomalies;
use gateway_model::Id;
use gateway_model::kinds::anomaly::{AnomalyKind, AnomalyStatus};
use gateway_model::settings::groups::Severity;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::{Before, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/anomalies", "list_anomalies", list)
        .summary("Anomalies of the last 30 days, newest first")
        .doc("What a device does is compared with what it did at the same hour of the weeks before. `GET /anomalies/stats` says which kinds are observed.")
        .query::<AnomalyQuery>();
    t.view("/anomalies/stats", "get_anomaly_stats", stats)
        .summary("State of the detection of anomalies, and their numbers")
        .doc("A kind that cannot be observed says why.");
}

/// Query of the anomalies.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AnomalyQuery {
    /// Maximum number of anomalies: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only anomalies before this anomaly id or this time of the first observation (RFC 3339).
    before: Option<Before<u64>>,
    /// Only this kind.
    kind: Option<AnomalyKind>,
    /// Only anomalies of this severity.
    severity: Option<Severity>,
    /// Only anomalies in this state.
    status: Option<AnomalyStatus>,
    /// Only anomalies of this device.
    device_id: Option<Id>,
}

async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<Anomaly>>, ApiError> {
    let AnomalyQuery { limit, before, kind, severity, status, device_id } = request.query.read()?;
    let filter = AnomalyFilter { kind, severity, status, device_id };
    let anomalies = cx.open()?.handles.get::<Anomalies>();
    let read = blocking(move || {
        let is_before = |anomaly: &Anomaly| match &before {
            None => true,
            Some(Before::Id(id)) => anomaly.id < *id,
            Some(Before::Time(time)) => anomaly.first_seen < *time,
        };
        anomalies.list(&filter, is_before, limit.get())
    });
    let (page, total) = read.await?;
    let mut answer = WithHeaders::new(page);
    answer.total = Some(total);
    Ok(answer)
}

async fn stats(cx: Cx, _: Req<()>) -> Result<AnomalyStats, ApiError> {
    let open = cx.open()?;
    let (anomalies, now) = (open.handles.get::<Anomalies>(), open.now());
    blocking(move || anomalies.stats(now)).await
}
