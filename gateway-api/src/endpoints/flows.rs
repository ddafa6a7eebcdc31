//! `GET /flows` and what is computed of the flow log.

use gateway_core::countries::Countries;
use gateway_core::flow_log::TopKey;
use gateway_ctl::services::countries::CountryDatabase;
use gateway_ctl::services::flow_log::{FlowLog, FlowPageStart, PageStart, SearchEnd};
use gateway_model::{Warning, text_enum};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::{Before, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

mod entry;
mod export;
mod protocol;
mod selection;
mod stream;
mod top;
mod usage;

use entry::FlowEntry;
use selection::FlowSelection;
use top::FlowTop;

const NDJSON: &str = "application/x-ndjson";
/// Response header: time of the oldest record that was searched, if not all were.
const SEARCHED_BACK_TO: &str = "x-searched-back-to";
/// Response header: value of `before` with which the list goes on.
const NEXT_BEFORE: &str = "x-next-before";

pub(super) fn rows(t: &mut Table) {
    export::rows(t);
    t.view("/flows", "list_flows", list)
        .summary("Flows of LAN hosts: those that go on, then those that have ended, the newest first")
        .doc(
            "A flow that lasts has a record for each part of 30 minutes; all of them have its `flow_id`. Flows of devices \
             whose privacy class has `query_log: off` are missing, and those of `anonymous` ones have no client. Permitted \
             traffic to the gateway itself, such as DNS queries, is not in it. The response has no X-Total-Count. A search \
             that would read very many records ends early, with a warning and the header X-Searched-Back-To.",
        )
        .query::<FlowSelection>()
        .query::<FlowQuery>()
        .header("X-Searched-Back-To", "Time of the oldest record that was searched, if the search ended early.")
        .header("X-Next-Before", "Value of before with which the list goes on, if there may be more.")
        .access(Access::Private);
    t.view("/flows/top", "list_top_flows", list_top)
        .summary("Totals of flows by device, domain, policy, egress or country, the largest first")
        .doc(
            "A record counts in the time of its end: flows that ended then, and parts of flows that lasted longer. Flows that go on \
             count if the time lasts until now. Totals of whole hours are ready if there is no condition but the time, or if they are of one \
             device by device. Otherwise all records of the time are added up that may match; `complete` is false, with a warning, \
             if they were so many that the search ended before.",
        )
        .query::<FlowSelection>()
        .query::<TopQuery>()
        .access(Access::Private);
    t.stream("/flows/stream", "stream_flows", NDJSON, stream::flows)
        .summary("Changes of flows as they are observed, one a line")
        .doc(
            "A line has `event` (begun, changed, ended) and `flow`, as in the list. `heartbeat` follows each silence of five \
             seconds. A reader that is too slow gets `lost` with the number of lines that it missed.",
        )
        .query::<FlowSelection>()
        .access(Access::Private);
    usage::rows(t);
}

text_enum! {
    /// Part of the flows of a list.
    pub enum FlowState {
        /// Flows that go on.
        Active = "active",
        /// Flows, and parts of flows, that have ended.
        Ended = "ended",
    }
}

/// Query of the list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FlowQuery {
    /// Maximum number of records: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only records before this one: the value of X-Next-Before, the id of a record, or a time (RFC 3339).
    before: Option<Before<Cursor>>,
    /// Only flows that go on, or only those that have ended.
    state: Option<FlowState>,
}

/// Query of the totals.
#[derive(Deserialize, JsonSchema)]
struct TopQuery {
    /// Property by which flows are added up, by default the device.
    #[serde(default)]
    by: Option<TopKey>,
    /// Maximum number of totals: 1 to 1000, default 20.
    #[serde(default)]
    limit: Limit<20, 1000>,
}

/// Record before which a page begins: a flow id of 16 digits, or the id of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor(FlowPageStart);

impl std::str::FromStr for Cursor {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Cursor, Self::Err> {
        if let Ok(flow) = text.parse() {
            return Ok(Cursor(FlowPageStart::Active(flow)));
        }
        text.parse().map(|id| Cursor(FlowPageStart::Ended(PageStart::Id(id))))
    }
}

async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<FlowEntry>>, ApiError> {
    let FlowQuery { limit, before, state } = request.query.read()?;
    let open = cx.open()?;
    let countries = open.handles.get::<CountryDatabase>();
    let filter = request.query.read::<FlowSelection>()?.filter(&countries)?;
    let is_unknown = filter.country.is_some() && !countries.is_open();
    let stored = open.store.current();
    let before = before.map(|before| match before {
        Before::Id(Cursor(start)) => start,
        Before::Time(time) => FlowPageStart::Ended(PageStart::Time(time)),
    });
    let (log, limit) = (open.handles.get::<FlowLog>(), limit.get());
    let active = state.map(|state| state == FlowState::Active);
    let page = blocking(move || log.read(&filter, active, before, limit)).await?;
    let is_full = page.rows.len() >= limit;
    let next = page.rows.last().filter(|_| is_full).map(|row| match row.id {
        Some(id) => id.to_string(),
        None => row.record.flow_id.to_string(),
    });
    let rows = page.rows.into_iter().map(|row| FlowEntry::of(row, &stored, &countries)).collect();
    let mut answer = WithHeaders::new(rows);
    if let Some(SearchEnd { id, time }) = page.ended_at {
        answer.headers.push((NEXT_BEFORE, id.to_string()));
        answer.headers.push((SEARCHED_BACK_TO, time.to_string()));
        answer.warnings.push(searched_back_to(time, &format!("; before={id} searches on")));
    } else if let Some(next) = next {
        answer.headers.push((NEXT_BEFORE, next));
    }
    if is_unknown {
        answer.warnings.push(no_country("country"));
    }
    Ok(answer)
}

async fn list_top(cx: Cx, request: Req<()>) -> Result<WithHeaders<FlowTop>, ApiError> {
    let TopQuery { by, limit } = request.query.read()?;
    let by = by.unwrap_or(TopKey::Device);
    let open = cx.open()?;
    let countries = open.handles.get::<CountryDatabase>();
    let filter = request.query.read::<FlowSelection>()?.filter(&countries)?;
    let is_unknown = (by == TopKey::Country || filter.country.is_some()) && !countries.is_open();
    let stored = open.store.current();
    let (log, limit) = (open.handles.get::<FlowLog>(), limit.get());
    let _permit = cx.api.heavy.admit().await?;
    let totals = blocking(move || {
        let known = countries.is_open().then_some(&countries as &dyn Countries);
        log.top(&filter, by, limit, known)
    })
    .await?;
    let is_unknown = is_unknown && totals.rows.iter().all(|row| row.name.is_none());
    let (ended_at, others) = (totals.ended_at, totals.others);
    let mut answer = WithHeaders::new(FlowTop::of(totals, by, &stored));
    if let Some(SearchEnd { time, .. }) = ended_at {
        answer.warnings.push(searched_back_to(time, "; ask for a shorter time"));
    }
    if is_unknown {
        answer.warnings.push(no_country(if by == TopKey::Country { "by" } else { "country" }));
    }
    if others > 0 {
        let message = format!("{others} records have further values and are in no total");
        answer.warnings.push(Warning::new("by", message));
    }
    Ok(answer)
}

fn no_country(parameter: &str) -> Warning {
    Warning::new(parameter, "no country is known: countries.database names no database")
}

fn searched_back_to(time: jiff::Timestamp, advice: &str) -> Warning {
    Warning::new("before", format!("searched back to {time}{advice}"))
}
