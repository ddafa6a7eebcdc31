//! `GET /flows` and what is computed of the flow log.

use std::net::IpAddr;

use gateway_common::classify::{ICMP, ICMPV6, TCP, UDP};
use gateway_common::verdict::Reason;
use gateway_core::flow_log::{ClientCondition, Decision, DomainCondition, FlowFilter, FlowId, TopKey};
use gateway_ctl::services::flow_log::{FlowLog, FlowPageStart, PageStart, SearchEnd};
use gateway_model::{Id, Warning, text_enum};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::{Before, Instant, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

mod entry;
mod export;
mod stream;
mod top;
mod usage;

use entry::FlowEntry;
use top::FlowTotal;

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
        .summary("Totals of flows by device, domain, policy or egress, the largest first")
        .doc("Flows count that ended in the time, or go on. A search that would read very many records ends early, with a warning.")
        .query::<FlowSelection>()
        .query::<TopQuery>()
        .header("X-Searched-Back-To", "Time of the oldest record that was searched, if the search ended early.")
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

/// Selection of flows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FlowSelection {
    /// Only this flow, by its flow_id.
    flow_id: Option<FlowId>,
    /// Only this client: its address, its MAC address, or the id of its device.
    client: Option<String>,
    /// Only this device, by id.
    device: Option<Id>,
    /// Only flows to this address.
    destination: Option<IpAddr>,
    /// Only flows to this port.
    port: Option<u16>,
    /// Only this protocol: tcp, udp, icmp, icmpv6, or its number.
    protocol: Option<String>,
    /// Only destinations with this text in a name by which the client asked; =example.com for that name and all below it.
    domain: Option<String>,
    /// Only flows that took this policy or exception at a time, by id.
    policy: Option<Id>,
    /// Only flows that left by this tunnel, uplink or proxy at a time, or by auto.
    egress: Option<String>,
    /// Only flows with this last decision.
    verdict: Option<Decision>,
    /// Only flows with this reason of the last decision, such as no_policy.
    reason: Option<String>,
    /// Only flows with at least so many bytes in both directions.
    min_bytes: Option<u64>,
    /// Only flows that ended at this time or later (RFC 3339), or go on.
    since: Option<Instant>,
    /// Only flows that began before this time (RFC 3339).
    until: Option<Instant>,
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
    /// Property by which flows are added up.
    by: TopKey,
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
    let filter = request.query.read::<FlowSelection>()?.filter()?;
    let open = cx.open()?;
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
    let rows = page.rows.into_iter().map(|row| FlowEntry::of(row, &stored)).collect();
    let mut answer = WithHeaders::new(rows);
    if let Some(SearchEnd { id, time }) = page.ended_at {
        answer.headers.push((NEXT_BEFORE, id.to_string()));
        end_early(&mut answer, time, &format!("; before={id} searches on"));
    } else if let Some(next) = next {
        answer.headers.push((NEXT_BEFORE, next));
    }
    Ok(answer)
}

async fn list_top(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<FlowTotal>>, ApiError> {
    let TopQuery { by, limit } = request.query.read()?;
    let filter = request.query.read::<FlowSelection>()?.filter()?;
    let open = cx.open()?;
    let stored = open.store.current();
    let (log, limit) = (open.handles.get::<FlowLog>(), limit.get());
    let _permit = cx.api.heavy.admit().await?;
    let (rows, others, ended_at) = blocking(move || log.top(&filter, by, limit)).await?;
    let rows = rows.into_iter().map(|row| FlowTotal::of(row, by, &stored)).collect();
    let mut answer = WithHeaders::new(rows);
    if let Some(SearchEnd { time, .. }) = ended_at {
        end_early(&mut answer, time, "; ask for a shorter time");
    }
    if others > 0 {
        let message = format!("{others} records have further values and are in no total");
        answer.warnings.push(Warning::new("by", message));
    }
    Ok(answer)
}

fn end_early<T>(answer: &mut WithHeaders<T>, time: jiff::Timestamp, advice: &str) {
    answer.headers.push((SEARCHED_BACK_TO, time.to_string()));
    answer.warnings.push(Warning::new("before", format!("searched back to {time}{advice}")));
}

impl FlowSelection {
    fn filter(self) -> Result<FlowFilter, ApiError> {
        let client = self.client.as_deref().map(client).transpose()?;
        let device = self.device.map(ClientCondition::Device);
        if client.is_some() && device.is_some() {
            return Err(ApiError::invalid_parameter("device", "Give client or device, not both."));
        }
        Ok(FlowFilter {
            flow_id: self.flow_id,
            client: client.or(device),
            destination: self.destination,
            port: self.port,
            protocol: self.protocol.as_deref().map(protocol).transpose()?,
            domain: self.domain.as_deref().map(domain),
            policy: self.policy,
            egress: self.egress,
            decision: self.verdict,
            reason: self.reason.as_deref().map(reason).transpose()?,
            min_bytes: self.min_bytes,
            since: self.since.map(|since| since.0),
            until: self.until.map(|until| until.0),
        })
    }
}

fn client(text: &str) -> Result<ClientCondition, ApiError> {
    let address = text.parse().ok().map(ClientCondition::Address);
    let device = || text.parse().ok().map(ClientCondition::Device);
    let mac = || text.parse().ok().map(ClientCondition::Mac);
    let message = "client is an address, a MAC address, or the id of a device.";
    address.or_else(device).or_else(mac).ok_or_else(|| ApiError::invalid_parameter("client", message))
}

fn domain(text: &str) -> DomainCondition {
    let text = text.to_ascii_lowercase();
    match text.strip_prefix('=') {
        None => DomainCondition::Contains(text),
        Some(domain) => DomainCondition::Within(domain.trim_matches('.').to_owned()),
    }
}

/// Protocols with names.
const PROTOCOLS: [(&str, u8); 4] = [("tcp", TCP), ("udp", UDP), ("icmp", ICMP), ("icmpv6", ICMPV6)];

fn protocol(text: &str) -> Result<u8, ApiError> {
    let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let message = "protocol is tcp, udp, icmp, icmpv6, or a number from 0 to 255.";
    named.or_else(|| text.parse().ok()).ok_or_else(|| ApiError::invalid_parameter("protocol", message))
}

/// Returns the name of a protocol, or its number.
fn protocol_name(number: u8) -> String {
    let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
    named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

fn reason(text: &str) -> Result<u8, ApiError> {
    let all = (0..=u8::MAX).map_while(Reason::from_wire);
    let found = all.into_iter().find(|reason| reason.as_str() == text).map(|reason| reason as u8);
    found.ok_or_else(|| {
        ApiError::invalid_parameter("reason", "reason is that of a verdict, such as no_policy.")
    })
}
