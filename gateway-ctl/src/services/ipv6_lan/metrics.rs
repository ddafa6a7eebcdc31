//! Metrics of router advertisements and related packets.

use prometheus_client::registry::Registry;

use super::announcements::AnnouncementCounters;
use crate::metrics::counter;

/// Adds the numbers of packets.
pub(super) fn register(registry: &mut Registry, counters: AnnouncementCounters) {
    let AnnouncementCounters { advertisements, failed, solicitations, withdrawals, information_replies } =
        counters;
    let sent = "Router advertisements sent to the LANs";
    counter(registry, "router_advertisements", sent, advertisements);
    let failures = "Router advertisements that could not be sent";
    counter(registry, "router_advertisement_failures", failures, failed);
    counter(registry, "router_solicitations", "Router solicitations of hosts", solicitations);
    let withdrawn = "Packets that took IPv6 back from hosts whose IPv6 is blocked";
    counter(registry, "ipv6_withdrawals", withdrawn, withdrawals);
    let replies = "Replies to DHCPv6 information requests of hosts";
    counter(registry, "dhcpv6_information_replies", replies, information_replies);
}
