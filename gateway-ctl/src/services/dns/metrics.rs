//! Metrics of the resolver and its upstreams.

use std::sync::atomic::AtomicU64;

use gateway_dns::resolver::Status as ResolverStatus;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::DnsService;
use crate::metrics::{Labels, counter, counters, gauge, gauges};

pub(super) fn register(registry: &mut Registry, names: &DnsService) {
    resolver(registry, names);
    upstreams(registry, names);
}

fn resolver(registry: &mut Registry, names: &DnsService) {
    let status = names.resolver.status();
    let mut count = |name, help, value| counter(registry, name, help, value);
    count("dns_queries", "DNS queries answered; starts again at midnight", status.today.queries);
    count(
        "dns_blocked_queries",
        "DNS queries answered as blocked; starts again at midnight",
        status.today.blocked,
    );
    count("dns_cache_hits", "DNS queries answered from the cache of the resolver", status.cache.hits);
    count(
        "dns_cache_misses",
        "DNS queries that the cache of the resolver could not answer",
        status.cache.misses,
    );
    count(
        "dns_cache_evictions",
        "Entries removed from the cache of the resolver for want of memory",
        status.cache.evicted,
    );
    count("dns_kernel_cache_hits", "DNS queries answered by the kernel programs", status.repeated);
    count(
        "dns_kernel_filter_hits",
        "DNS queries for blocked names answered by the filter in the kernel",
        status.filtered,
    );
    count(
        "dns_kernel_filter_unexplained",
        "Answers of the filter in the kernel that the resolver could not explain, because its inputs had changed",
        status.unexplained,
    );
    count(
        "dns_rebinding_answers",
        "Answers withheld because a public name had a local address (DNS rebinding)",
        status.rebinding,
    );
    count("dns_dropped_log_records", "Records that the query log had no room for", status.unlogged);
    let dropped = [
        ("overload", status.overloaded),
        ("rate_limit", status.limited),
        ("unidentified", status.unidentified),
        ("too_many_connections", status.crowded),
    ];
    let dropped = dropped.map(|(reason, value)| (vec![("reason", reason.to_owned())], value));
    counters(
        registry,
        "dns_dropped_queries",
        "DNS queries and connections dropped unanswered, by reason",
        dropped,
    );
    sizes(registry, &status);
}

fn sizes(registry: &mut Registry, status: &ResolverStatus) {
    gauge(registry, "dns_cache_entries", "Entries in the cache of the resolver", size(status.cache.entries));
    gauge(
        registry,
        "dns_cache_size_bytes",
        "Memory of the entries in the cache of the resolver",
        size(status.cache.bytes),
    );
    gauge(registry, "dns_pending_queries", "Queries that wait for an upstream", size(status.asking));
    gauge(
        registry,
        "dns_connections",
        "Open TCP, TLS and HTTPS connections of clients",
        size(status.connections),
    );
}

fn upstreams(registry: &mut Registry, names: &DnsService) {
    let upstreams = names.upstreams();
    let each = || {
        upstreams.iter().map(|upstream| {
            let labels: Labels = vec![
                ("upstream", upstream.address.clone()),
                ("protocol", upstream.protocol.clone()),
                ("egress", upstream.egress.clone()),
            ];
            (labels, upstream)
        })
    };
    let up = each().map(|(labels, upstream)| (labels, i64::from(upstream.ok)));
    gauges(registry, "dns_upstream_up", "1 if the upstream answers, 0 if it is left out", up);
    let queries = each().map(|(labels, upstream)| (labels, upstream.queries));
    counters(registry, "dns_upstream_queries", "Queries sent to the upstream", queries);
    let failures = each().map(|(labels, upstream)| (labels, upstream.failures));
    counters(registry, "dns_upstream_failures", "Queries that the upstream failed to answer", failures);
    let rtt = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    for (labels, upstream) in each() {
        if let Some(ms) = upstream.rtt_ms {
            rtt.get_or_create(&labels).set(ms / 1_000.0);
        }
    }
    registry.register_with_unit(
        "dns_upstream_rtt",
        "Smoothed round-trip time of the upstream",
        Unit::Seconds,
        rtt,
    );
}

fn size(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
