//! `GET /flows/usage`.

use gateway_core::flow_log::{UsageGroup, UsageRow, UsageStep};
use gateway_ctl::services::flow_log::{FlowLog, UsageQuery};
use gateway_model::{Id, State};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::Instant;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

/// Time of a query without `since`.
const DEFAULT_TIME: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of rows of an answer.
const MAX_ROWS: usize = 50_000;

pub(super) fn rows(t: &mut Table) {
    t.view("/flows/usage", "list_flow_usage", list)
        .summary("Bytes of flows by device, policy or egress in each hour or day, the oldest first")
        .doc(
            "Usage is kept for 13 months. Steps without usage are missing. Bytes of anonymous clients have no device; those \
             of devices whose class has `query_log: off` count for policy and egress only.",
        )
        .query::<UsageParameters>()
        .access(Access::Private);
}

/// Query of usage.
#[derive(Deserialize, JsonSchema)]
struct UsageParameters {
    /// Property by which usage is added up, by default the device.
    #[serde(default)]
    by: Option<UsageGroup>,
    /// Length of a step, by default an hour.
    #[serde(default)]
    step: Option<UsageStep>,
    /// Only this device, by id.
    #[serde(default)]
    device: Option<Id>,
    /// From the hour of this time on (RFC 3339), by default the last 24 hours.
    #[serde(default)]
    since: Option<Instant>,
    /// Before this time (RFC 3339), by default now.
    #[serde(default)]
    until: Option<Instant>,
}

/// Usage in one step.
#[derive(Debug, Serialize, JsonSchema)]
struct UsageEntry {
    /// Begin of the hour or day (of UTC).
    at: Timestamp,
    /// Id of the device or policy; null without one, and for egresses.
    id: Option<Id>,
    /// Name of the device or policy, if it exists; egress. Null without one.
    name: Option<String>,
    /// Bytes from the clients.
    sent_bytes: u64,
    /// Bytes to the clients.
    received_bytes: u64,
    /// Flows that began.
    flows: u64,
}

async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<UsageEntry>>, ApiError> {
    let UsageParameters { by, step, device, since, until } = request.query.read()?;
    let by = by.unwrap_or(UsageGroup::Device);
    let open = cx.open()?;
    let (log, state, now) = (open.handles.get::<FlowLog>(), open.store.current(), open.world().now);
    let until = until.map_or(now, |until| until.0);
    let since = since.map_or_else(|| until.checked_sub(DEFAULT_TIME).unwrap_or(until), |since| since.0);
    let query = UsageQuery { group: by, step: step.unwrap_or(UsageStep::Hour), device, since, until };
    let _permit = cx.api.heavy.admit().await?;
    let rows = blocking(move || log.usage(&query)).await?;
    if rows.len() > MAX_ROWS {
        let message = format!("since is too long ago: there are {} rows, {MAX_ROWS} at most.", rows.len());
        return Err(ApiError::invalid_parameter("since", message));
    }
    Ok(WithHeaders::counted(rows.into_iter().map(|row| UsageEntry::of(row, by, &state)).collect()))
}

impl UsageEntry {
    fn of(row: UsageRow, by: UsageGroup, state: &State) -> UsageEntry {
        let (id, name) = match by {
            UsageGroup::Device => {
                let device = row.key.device.and_then(|id| state.devices.get(id));
                (row.key.device, device.map(|device| device.name.to_string()))
            }
            UsageGroup::Policy => {
                let policy = row.key.policy.and_then(|id| state.routing_policies.get(id));
                (row.key.policy, policy.map(|policy| policy.name.to_string()))
            }
            UsageGroup::Egress => (None, row.key.egress),
        };
        UsageEntry {
            at: Timestamp::from_second(row.hour).unwrap_or(Timestamp::UNIX_EPOCH),
            id,
            name,
            sent_bytes: row.usage.sent,
            received_bytes: row.usage.received,
            flows: row.usage.flows,
        }
    }
}
