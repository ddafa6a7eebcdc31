//! The resolver at run time: status, cache and clients.

use std::sync::Arc;

use gateway_ctl::services::dns::DnsService;
use gateway_dns::query_log::Totals;
use gateway_dns::wire::{code, rtype};
use gateway_model::settings::bootstrap::{DnsBackend, UpstreamMode};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::log::Client;
use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::{HistoryQuery, Limit};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    t.view("/dns/status", "get_dns_status", status)
        .summary("The resolver, its upstreams and its cache")
        .query::<HistoryQuery>();
    t.view("/dns/cache", "list_dns_cache", cache)
        .summary("List the cache of the resolver, sorted by name")
        .query::<CacheQuery>();
    let flushes = Effect::Acts(Audit { action: "flush_dns_cache", resource_type: "dns_cache" });
    t.action("/dns/cache/flush", "flush_dns_cache", flushes, flush)
        .summary("Flush cache entries that match a glob, or all")
        .access(Access::Diagnose);
    t.view("/dns/clients", "list_dns_clients", clients)
        .summary("List the DNS clients by number of queries since the daemon started")
        .access(Access::Private);
}

#[derive(Debug, Serialize, JsonSchema)]
struct Status {
    running: bool,
    backend: DnsBackend,
    listen: Vec<Listen>,
    /// Protocol to the upstream servers of the configuration file.
    mode: UpstreamMode,
    upstreams: Vec<Upstream>,
    /// Upstreams that cannot be used as configured.
    problems: Vec<String>,
    cache: CacheStats,
    blocking: Blocking,
    rebinding: RebindingState,
    /// Queries since midnight, by the clock of the gateway.
    queries_today: u64,
    /// Blocked queries since midnight, by the clock of the gateway.
    blocked_today: u64,
    /// Answers of the default upstreams are DNSSEC-validated.
    dnssec: bool,
    /// Queries since the start that were dropped because too many were pending.
    overloaded: u64,
    /// Queries since the start that were dropped by the rate limit of their network.
    limited: u64,
    /// Queries since the start that the dataplane answered from its packet cache, without the resolver.
    repeated: u64,
    /// Queries for blocked names since the start that the dataplane answered from its copy of the filter, without the
    /// resolver.
    kernel_blocked: u64,
    log: LogState,
    /// Queries by minute, oldest first. Minutes before the start of the daemon are missing. Left out unless `history` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<DnsMinute>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DnsMinute {
    /// Begin of the minute.
    at: Timestamp,
    queries: u64,
    blocked: u64,
    cached: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listen {
    /// Error of the listener (UDP or TCP); null if it works.
    address: String,
    /// Reason why the listener does not serve UDP or TCP; null if it serves both.
    error: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Upstream {
    address: String,
    protocol: String,
    /// Egress through which queries are sent.
    egress: String,
    /// Smoothed round-trip time in milliseconds; null before the first answer.
    rtt_ms: Option<f64>,
    ok: bool,
    queries: u64,
    failures: u64,
    last_error: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct CacheStats {
    entries: usize,
    /// Size in bytes.
    size: usize,
    hits: u64,
    misses: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Blocking {
    enabled: bool,
    mode: &'static str,
    /// TTL of blocked answers in seconds.
    ttl: u32,
    /// End of the pause of filtering; null if it is not paused.
    paused_until: Option<Timestamp>,
}

/// Protection against DNS rebinding.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct RebindingState {
    enabled: bool,
    /// Domains that may have local addresses besides local ones: those of `dns.rebinding_allowed_domains`.
    allowed_domains: usize,
    /// Answers withheld since the start because a public name had a local address.
    withheld: u64,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct LogState {
    /// Records lost since the start because they arrived faster than they could be written.
    lost: u64,
    /// Reason why the log is not written to files; null if it is.
    error: Option<String>,
}

async fn status(cx: Cx, request: Req<()>) -> Result<Status, ApiError> {
    let minutes = request.query.read::<HistoryQuery>()?.wanted();
    let names = cx.open()?.names.clone();
    let Some(names) = names else {
        return Ok(Status { history: minutes.map(|_| Vec::new()), ..Status::absent() });
    };
    blocking(move || {
        let history = minutes.map(|minutes| names.resolver.log().history(minutes).into_iter());
        let history = history.map(|history| history.map(DnsMinute::of).collect());
        Status { history, ..Status::of(&names) }
    })
    .await
}

impl DnsMinute {
    fn of((at, totals): (Timestamp, Totals)) -> DnsMinute {
        let Totals { queries, blocked, cached } = totals;
        DnsMinute { at, queries, blocked, cached }
    }
}

impl Status {
    fn absent() -> Status {
        Status {
            running: false,
            backend: DnsBackend::default(),
            listen: Vec::new(),
            mode: UpstreamMode::default(),
            upstreams: Vec::new(),
            problems: Vec::new(),
            cache: CacheStats::default(),
            blocking: Blocking { enabled: false, mode: "null_ip", ttl: 0, paused_until: None },
            rebinding: RebindingState::default(),
            queries_today: 0,
            blocked_today: 0,
            dnssec: false,
            overloaded: 0,
            limited: 0,
            repeated: 0,
            kernel_blocked: 0,
            log: LogState::default(),
            history: None,
        }
    }

    fn of(names: &DnsService) -> Status {
        let (at_work, settings, log) =
            (names.resolver.status(), names.resolver.settings(), names.resolver.log());
        let dns = names.config();
        let listen = at_work.listening.iter().map(|place| {
            let error = place.udp.as_ref().err().or(place.tcp.as_ref().err());
            Listen { address: place.listen.address.to_string(), error: error.cloned() }
        });
        let secure = at_work.secure.iter().map(|(address, bound)| Listen {
            address: format!("tls://{address}"),
            error: bound.as_ref().err().cloned(),
        });
        let upstreams = names.upstreams().into_iter().map(|upstream| Upstream {
            address: upstream.address,
            protocol: upstream.protocol,
            egress: upstream.egress,
            rtt_ms: upstream.rtt_ms,
            ok: upstream.ok,
            queries: upstream.queries,
            failures: upstream.failures,
            last_error: upstream.last_error,
        });
        let today = log.today();
        Status {
            running: true,
            backend: dns.backend,
            listen: listen.chain(secure).collect(),
            mode: dns.upstream_mode,
            upstreams: upstreams.collect(),
            problems: names.problems(),
            cache: CacheStats {
                entries: at_work.cache.entries,
                size: at_work.cache.bytes,
                hits: at_work.cache.hits,
                misses: at_work.cache.misses,
            },
            blocking: Blocking {
                enabled: settings.blocking.enabled && dns.filtering_enabled,
                mode: settings.blocking.mode.text(),
                ttl: settings.blocking.ttl,
                paused_until: settings.blocking.paused_until,
            },
            rebinding: RebindingState {
                enabled: dns.rebinding_protection,
                allowed_domains: dns.rebinding_allowed_domains.len(),
                withheld: at_work.rebinding,
            },
            queries_today: today.queries,
            blocked_today: today.blocked,
            dnssec: names.validates(),
            overloaded: at_work.overloaded,
            limited: at_work.limited,
            repeated: at_work.repeated,
            kernel_blocked: at_work.filtered,
            log: LogState { lost: log.lost(), error: log.error() },
            history: None,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct CacheEntries {
    entries: Vec<CachedEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CachedEntry {
    name: String,
    r#type: String,
    /// Remaining TTL in seconds; 0 for an expired entry that is kept as a stale answer (RFC 8767).
    ttl: u32,
    expires_at: Timestamp,
    upstream: String,
    rcode: String,
}

/// Query of the cache.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CacheQuery {
    /// Maximum number of entries: 1 to 1000, default 100.
    limit: Limit<100, 1000>,
    /// Only names that match this glob, such as *.example.com.
    pattern: Option<String>,
}

async fn cache(cx: Cx, request: Req<()>) -> Result<CacheEntries, ApiError> {
    let CacheQuery { limit, pattern } = request.query.read()?;
    let (limit, pattern) = (limit.get(), pattern.unwrap_or_else(|| "*".to_owned()));
    let (names, now) = (cx.open()?.names.clone(), cx.open()?.now());
    let Some(names) = names else { return Ok(CacheEntries { entries: Vec::new() }) };
    blocking(move || {
        let entries = names.resolver.cached(&pattern, limit).into_iter().map(|(entry, ttl)| CachedEntry {
            name: entry.name.to_string(),
            r#type: rtype::text(entry.qtype).into_owned(),
            ttl,
            expires_at: now + jiff::SignedDuration::from_secs(i64::from(ttl)),
            upstream: entry.upstream.to_string(),
            rcode: code::rcode::text(entry.rcode).to_owned(),
        });
        CacheEntries { entries: entries.collect() }
    })
    .await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FlushInput {
    /// Glob of names, such as `*.example.com`; null: all entries.
    pattern: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FlushResult {
    flushed: usize,
}

async fn flush(cx: Cx, request: Req<FlushInput>) -> Result<FlushResult, ApiError> {
    let names = cx.open()?.names.clone();
    let pattern = request.input.pattern;
    let flushed = names.map_or(0, |names: Arc<DnsService>| names.resolver.flush(pattern.as_deref()));
    Ok(FlushResult { flushed })
}

#[derive(Debug, Serialize, JsonSchema)]
struct ClientStats {
    client: Client,
    queries: u64,
    blocked: u64,
    cached: u64,
    last_seen: Timestamp,
    /// Most frequent names; rare ones may be missing.
    top: Vec<TopName>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TopName {
    name: String,
    queries: u64,
}

async fn clients(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<ClientStats>>, ApiError> {
    let Some(names) = cx.open()?.names.clone() else { return Ok(WithHeaders::counted(Vec::new())) };
    let figures = blocking(move || names.resolver.log().clients()).await?;
    let shown = figures.into_iter().map(|figures| ClientStats {
        client: Client {
            ip: figures.client.address,
            device_id: figures.client.device,
            name: figures.client.name,
        },
        queries: figures.queries,
        blocked: figures.blocked,
        cached: figures.cached,
        last_seen: figures.last_seen,
        top: figures
            .top
            .into_iter()
            .map(|(name, queries)| TopName { name: name.to_string(), queries })
            .collect(),
    });
    Ok(WithHeaders::counted(shown.collect()))
}
