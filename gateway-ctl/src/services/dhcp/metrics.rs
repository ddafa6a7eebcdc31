//! Metrics of the DHCP server.

use gateway_core::state_machines::dhcp::{PoolUsage, RequestKind};
use jiff::Timestamp;
use prometheus_client::registry::Registry;

use super::handle::DhcpServer;
use crate::metrics::{counter, counters, gauges};

/// Adds leases, messages and pools of the server.
pub(super) fn register(registry: &mut Registry, server: &DhcpServer, now: Timestamp) {
    let leases = server.lease_counts(now).map(|(status, count)| {
        (vec![("state", status.as_str().to_owned())], i64::try_from(count).unwrap_or(i64::MAX))
    });
    gauges(registry, "dhcp_leases", "Leases by state", leases);
    let counted = server.counters();
    let requests = counted.requests.iter().map(|(kind, count)| (kind_name(*kind), *count));
    let replies = [("offer", counted.offers), ("ack", counted.acks), ("nak", counted.naks)];
    let messages = requests.chain(replies).map(|(kind, count)| (vec![("type", kind.to_owned())], count));
    counters(registry, "dhcp_messages", "Messages of clients and replies to them, by type", messages);
    let dropped = [
        ("invalid", counted.rejected),
        ("not_for_this_server", counted.ignored),
        ("leases_wait_for_storage", counted.withheld),
    ];
    let dropped = dropped.map(|(reason, count)| (vec![("reason", reason.to_owned())], count));
    counters(registry, "dhcp_unanswered_messages", "Messages that got no reply, by reason", dropped);
    counter(
        registry,
        "dhcp_refused_clients",
        "Requests for an address while none was free",
        counted.without_address,
    );
    counter(
        registry,
        "dhcp_conflicts",
        "Addresses that were found in use by another host",
        counted.conflicts,
    );
    let pools = server.pools();
    let each = |value: fn(&PoolUsage) -> u32| {
        pools.iter().map(move |pool| (vec![("scope", pool.name.clone())], i64::from(value(pool))))
    };
    gauges(
        registry,
        "dhcp_pool_addresses",
        "Addresses that any client can get, by scope",
        each(|pool| pool.size),
    );
    gauges(
        registry,
        "dhcp_pool_free_addresses",
        "Addresses that are not in use, by scope",
        each(|pool| pool.free),
    );
}

fn kind_name(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Discover => "discover",
        RequestKind::Request => "request",
        RequestKind::Decline => "decline",
        RequestKind::Release => "release",
        RequestKind::Inform => "inform",
    }
}
