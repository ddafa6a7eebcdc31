//! `GET /dns/log`.

use std::net::IpAddr;
use std::time::Duration;

use gateway_core::dns::{Cause, rtype};
use gateway_dns::query_log::{ClientFilter, DisplayRecord, DomainFilter, Filter, PageStart, SearchEnd};
use gateway_dns::serve::Transport;
use gateway_dns::serve::query_trace::QueryStatus;
use gateway_dns::wire::code;
use gateway_model::domain::DomainName;
use gateway_model::query_type::QueryType;
use gateway_model::{Id, State, Warning, text_enum};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::{Before, Instant, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

mod left_by;

use left_by::LeftBy;

/// Response header: time of the oldest record that was searched, if not all were.
const SEARCHED_BACK_TO: &str = "x-searched-back-to";
/// Response header: value of `before` with which the search goes on.
const NEXT_BEFORE: &str = "x-next-before";

pub(super) fn rows(t: &mut Table) {
    t.view("/dns/log", "list_dns_log", log)
        .summary("DNS queries and their results, newest first")
        .doc(
            "The response has no X-Total-Count, because counting would read all records. A search that would read very \
             many records ends early, with a warning and the headers X-Searched-Back-To and X-Next-Before.",
        )
        .query::<LogQuery>()
        .header("X-Searched-Back-To", "Time of the oldest record that was searched, if the search ended early.")
        .header("X-Next-Before", "Value of before with which the search goes on, if it ended early.")
        .access(Access::Private);
}

/// Query of the log.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct LogQuery {
    /// Maximum number of entries: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only entries before this entry id or this time (RFC 3339).
    before: Option<Before<u64>>,
    /// Only this client: its address, or the id or MAC address of its device.
    client: Option<String>,
    /// Only names with this text in them; =example.com for that name and all below it.
    domain: Option<String>,
    /// Only this status.
    status: Option<QueryStatus>,
    /// Only queries that this rule, list or feed decided, by id.
    list: Option<Id>,
    /// Only queries of this record type, such as AAAA.
    #[serde(rename = "type")]
    qtype: Option<String>,
    /// Only queries to upstreams with this text in their name.
    upstream: Option<String>,
    /// Only queries that were sent by this tunnel, uplink or auto.
    egress: Option<String>,
    /// true: only answers from the cache; false: only others.
    cached: Option<bool>,
    /// Only answers that took longer, in milliseconds.
    slower_than: Option<u64>,
    /// Not before this time (RFC 3339).
    since: Option<Instant>,
    /// Before this time (RFC 3339).
    until: Option<Instant>,
    /// Not this client, in the forms of client. Queries of unknown clients stay.
    not_client: Option<String>,
    /// Not such names, in the forms of domain.
    not_domain: Option<String>,
    /// Not this status.
    not_status: Option<QueryStatus>,
    /// Not queries of this record type.
    not_type: Option<String>,
}

text_enum! {
    /// Transport of a query.
    pub enum QueryTransport {
        /// UDP or TCP.
        Plain = "plain",
        Dot = "dot",
        Doh = "doh",
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    id: u64,
    time: Timestamp,
    client: Option<Client>,
    question: Question,
    status: QueryStatus,
    /// Kind of the entry that decided; null if none did.
    reason: Option<Cause>,
    rule: Option<String>,
    /// Id of the rule, list or feed.
    list_id: Option<Id>,
    /// The rule, list, feed or rewrite that decided; null if none did, or if it is deleted.
    list: Option<ListSource>,
    /// Name that matched, if it differs from the name in the query.
    through: Option<String>,
    upstream: Option<String>,
    /// Egress by which the upstream was asked: the name of a tunnel or uplink, `auto` for the default route, or the proxy.
    /// Null if no query was sent, and in records of earlier versions.
    egress: Option<String>,
    /// Way by which the query left, or the cause that kept it from leaving. Null if the answer was known here, or there is no upstream.
    left_by: Option<LeftBy>,
    rcode: String,
    answers: Vec<Answer>,
    /// Time to answer in milliseconds.
    elapsed_ms: f64,
    /// Transport of the query.
    proto: QueryTransport,
    /// The answer was DNSSEC-validated; null if nothing validates.
    dnssec: Option<bool>,
    ede: Option<Ede>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Client {
    pub ip: IpAddr,
    pub device_id: Option<Id>,
    pub name: Option<String>,
}

/// Object whose entry decided.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ListSource {
    id: Id,
    /// Its name; of a rule the pattern, of a single entry the domain.
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Question {
    name: String,
    r#type: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    r#type: String,
    value: String,
}

/// Extended DNS error (RFC 8914).
#[derive(Debug, Serialize, JsonSchema)]
struct Ede {
    code: u16,
    text: &'static str,
    /// Cause of a failure, such as the policy whose hops are down. Null for an anonymous client.
    detail: Option<String>,
}

async fn log(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<Entry>>, ApiError> {
    let query: LogQuery = request.query.read()?;
    let (limit, before) = (query.limit.get(), query.before);
    let before = before.map(|before| match before {
        Before::Id(id) => PageStart::Id(id),
        Before::Time(time) => PageStart::Time(time),
    });
    let open = cx.open()?;
    let state = open.store.current();
    let filter = query.filter(&state)?;
    let Some(names) = open.names.clone() else { return Ok(WithHeaders::new(Vec::new())) };
    let network = open.world().network.clone();
    let is_uplink = |name: &str| network.uplinks.iter().any(|uplink| uplink.interface == name);
    let page = blocking(move || names.resolver.log().read(&filter, before, limit)).await?;
    let rows = page.rows.into_iter();
    let mut answer = WithHeaders::new(rows.map(|row| Entry::of(row, &state, is_uplink)).collect());
    if let Some(SearchEnd { id, time }) = page.ended_at {
        answer.headers.push((SEARCHED_BACK_TO, time.to_string()));
        answer.headers.push((NEXT_BEFORE, id.to_string()));
        let message = format!("searched back to {time}; before={id} searches on");
        answer.warnings.push(Warning::new("before", message));
    }
    Ok(answer)
}

fn client(name: &str, text: &str, state: &State) -> Result<ClientFilter, ApiError> {
    match (text.parse(), text.parse()) {
        (Ok(address), _) => Ok(ClientFilter::Address(address)),
        (_, Ok(id)) => Ok(ClientFilter::Device(id)),
        _ => {
            let device = text.parse().ok().and_then(|mac| state.device_by_mac(mac));
            let device = device.map(|device| ClientFilter::Device(device.meta.id));
            let message = format!("{name} is an address, or the id or MAC address of a device.");
            device.ok_or_else(|| ApiError::invalid_parameter(name, message))
        }
    }
}

fn domain(name: &str, text: &str) -> Result<DomainFilter, ApiError> {
    match text.strip_prefix('=') {
        None => Ok(DomainFilter::Contains(text.to_ascii_lowercase())),
        Some(domain) => match DomainName::parse(domain) {
            Ok(domain) => Ok(DomainFilter::Within((&domain).into())),
            Err(error) => Err(ApiError::invalid_parameter(name, error.to_string())),
        },
    }
}

fn qtype(name: &str, text: &str) -> Result<u16, ApiError> {
    let number = text.parse().ok().and_then(|qtype: QueryType| rtype::of_query(&qtype));
    number.ok_or_else(|| ApiError::invalid_parameter(name, format!("{name} is a record type, such as AAAA.")))
}

impl LogQuery {
    fn filter(self, state: &State) -> Result<Filter, ApiError> {
        let except = self.exceptions(state)?;
        let client = self.client.as_deref().map(|text| client("client", text, state));
        let domain = self.domain.as_deref().map(|text| domain("domain", text));
        let qtype = self.qtype.as_deref().map(|text| qtype("type", text));
        Ok(Filter {
            client: client.transpose()?,
            domain: domain.transpose()?,
            status: self.status,
            cached: self.cached,
            list: self.list,
            qtype: qtype.transpose()?,
            upstream: self.upstream,
            egress: self.egress,
            slower_than: self.slower_than.map(Duration::from_millis),
            since: self.since.map(|since| since.0),
            until: self.until.map(|until| until.0),
            except,
        })
    }

    /// Returns the conditions by which entries are left out.
    fn exceptions(&self, state: &State) -> Result<Vec<Filter>, ApiError> {
        let client = self.not_client.as_deref().map(|text| client("not_client", text, state)).transpose()?;
        let domain = self.not_domain.as_deref().map(|text| domain("not_domain", text)).transpose()?;
        let qtype = self.not_type.as_deref().map(|text| qtype("not_type", text)).transpose()?;
        let except = [
            client.map(|client| Filter { client: Some(client), ..Filter::default() }),
            domain.map(|domain| Filter { domain: Some(domain), ..Filter::default() }),
            self.not_status.map(|status| Filter { status: Some(status), ..Filter::default() }),
            qtype.map(|qtype| Filter { qtype: Some(qtype), ..Filter::default() }),
        ];
        Ok(except.into_iter().flatten().collect())
    }
}

impl Entry {
    fn of(row: DisplayRecord, state: &State, is_uplink: impl Fn(&str) -> bool) -> Entry {
        let left_by = LeftBy::of(&row, is_uplink);
        let answers = row.answers.into_iter();
        Entry {
            id: row.id,
            time: row.time,
            client: row.client.map(|who| Client { ip: who.address, device_id: who.device, name: who.name }),
            question: Question {
                name: row.name.to_string(),
                r#type: gateway_dns::wire::rtype::text(row.qtype).into_owned(),
            },
            status: row.status,
            reason: row.reason,
            rule: row.rule,
            list_id: row.list,
            list: row.list.and_then(|id| list_source(state, id)),
            through: row.through,
            upstream: row.upstream,
            egress: row.egress,
            left_by,
            rcode: code::rcode::text(row.rcode).to_owned(),
            answers: answers
                .map(|(kind, value)| Answer {
                    r#type: gateway_dns::wire::rtype::text(kind).into_owned(),
                    value,
                })
                .collect(),
            elapsed_ms: (row.elapsed.as_secs_f64() * 1e6).round() / 1e3,
            proto: match row.transport {
                Transport::Udp | Transport::Tcp => QueryTransport::Plain,
                Transport::Tls => QueryTransport::Dot,
                Transport::Https => QueryTransport::Doh,
            },
            dnssec: row.secure,
            ede: row.ede.map(|code| Ede { code, text: code::ede::text(code), detail: row.detail }),
        }
    }
}

/// Returns the object with this id that can decide on a query.
fn list_source(state: &State, id: Id) -> Option<ListSource> {
    let rule = || state.dns_filter_rules.get(id).map(|rule| rule.pattern.clone());
    let allowed = || {
        let entry = state.dns_allowlist.get(id)?;
        entry.name.clone().or_else(|| entry.domain.as_ref().map(ToString::to_string))
    };
    let blocked = || {
        let entry = state.dns_blocklist.get(id)?;
        entry.name.clone().or_else(|| entry.domain.as_ref().map(ToString::to_string))
    };
    let feed = || state.threat_feeds.get(id).map(|feed| feed.name.clone());
    let rewrite = || state.dns_rewrites.get(id).map(|rewrite| rewrite.domain.to_string());
    let name = rule().or_else(allowed).or_else(blocked).or_else(feed).or_else(rewrite)?;
    Some(ListSource { id, name })
}
