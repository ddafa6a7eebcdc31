//! Names of the rows in documents.

const TITLES: &[(&str, &str)] = &[
    (
        "verdict_flow_flat",
        "packet of an established flow out of 100 000, with 100 000 policies (`BPF_PROG_TEST_RUN`)",
    ),
    ("verdict_new_flat", "packet of a new flow, with 100 000 policies (`BPF_PROG_TEST_RUN`)"),
    (
        "privacy_flow",
        "packet of an established flow, all blocks of a plan that stop none of it (`BPF_PROG_TEST_RUN`)",
    ),
    ("privacy_new", "packet of a new flow, the same"),
    (
        "page_load_without_ipv6",
        "page of 13 files from five names with addresses of both families, `block_ipv6`",
    ),
    ("wan_failover", "failover from a line that is cut behind a good link"),
    ("wan_failover_link", "failover from an uplink without carrier"),
    ("forward_vs_ct_masq", "forwarding, 10 000 policies"),
    ("forward_vs_nft_linear", "forwarding, 10 000 policies"),
    ("forward_vs_ip_rule", "forwarding, 10 000 policies"),
    ("fastpath_1", "fast path, small datagrams of one flow"),
    ("fastpath_1k", "fast path, small datagrams of 1 000 flows"),
    ("fastpath_100k", "fast path, small datagrams of 100 000 flows of 50 devices"),
    ("fastpath_v6_1k", "fast path, small datagrams of 1 000 flows over IPv6 with masquerade"),
    ("fastpath_xdp_1k", "fast path at XDP, small datagrams of 1 000 flows"),
    ("fastpath_xdp_100k", "fast path at XDP, small datagrams of 100 000 flows of 50 devices"),
    ("flow_log_bytes", "record of the flow log on the disk"),
    ("flow_log_page", "flow log, page of 100 flows of one device"),
    ("flow_log_rate", "flow log, new flows that are followed and stored"),
    ("flow_log_top", "flow log, ten devices with the most bytes of a week"),
    ("capture_kept", "capture of 200 000 packets/s, packets that are kept"),
    ("capture_filter", "forwarding, 10 000 policies, during a capture whose filter no packet passes"),
    ("new_flows_10k", "new flows, 10 000 policies, fast path"),
    ("flood", "1 000 established flows during a flood of 1 000 000 random flows from another host"),
    ("tcp_bulk", "TCP (iperf3)"),
    ("fastpath_tcp", "TCP (iperf3), fast path, upload"),
    ("fastpath_tcp_down", "TCP (iperf3), fast path, download"),
    ("apply_10k", "compile, compare and activate 10 000 policies"),
    ("apply_one_10k", "apply of one changed policy out of 10 000 by the API"),
    ("wireguard_vs_wireguard_go", "WireGuard in userspace, one TCP stream"),
    ("wireguard_small", "WireGuard in userspace, datagrams of 200 bytes"),
    ("wireguard_newest_tcp_1_up", "WireGuard in userspace, one TCP stream, upload"),
    ("wireguard_newest_tcp_1_down", "WireGuard in userspace, one TCP stream, download"),
    ("wireguard_newest_tcp_4_up", "WireGuard in userspace, four TCP streams, upload"),
    ("wireguard_newest_tcp_4_down", "WireGuard in userspace, four TCP streams, download"),
    ("wireguard_newest_small_up", "WireGuard in userspace, datagrams of 200 bytes, upload"),
    ("wireguard_newest_small_down", "WireGuard in userspace, datagrams of 200 bytes, download"),
    ("socks_vs_native", "download through a SOCKS5 proxy"),
    ("api_get_vs_axum", "GET of one device"),
    ("api_list_10k", "GET of 10 000 devices in one answer"),
    ("evaluate_5k", "`POST /policy/evaluate` with 5 000 policies"),
    ("leak_matrix_5k", "leak matrix with 5 000 policies, to the first byte"),
    ("start_empty", "start without secrets"),
    ("start_1000_secrets", "start with 1 000 encrypted secrets"),
    ("binary_size", "size of the installed daemon"),
    ("dns_blocked", "one of 10 000 blocked names"),
    ("dns_cached", "one of 2 000 cached names"),
    ("dns_mix", "blocked and cached names mixed, unequal popularity"),
    ("dns_once", "a blocked name that no client queried before"),
    ("dns_load", "1 000 000 blocked domains"),
    ("dns_memory", "memory of blocked domains"),
    ("dhcp_dora", "address for a new client, four messages, 128 clients at once"),
    ("dhcp_perfdhcp", "the same, the most that perfdhcp completes"),
    ("dhcp_memory", "memory of 100 000 leases"),
];

/// Returns the name of a row in documents.
pub(crate) fn title(bench: &str) -> Option<&'static str> {
    TITLES.iter().find(|(name, _)| *name == bench).map(|(_, title)| *title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BENCHES;

    /// Names among [`BENCHES`] without rows.
    const PROFILES: &[&str] = &["breakdown"];

    #[test]
    fn each_row_has_a_title_and_each_title_a_row() {
        let rows =
            || BENCHES.iter().flat_map(|(names, _)| names.iter()).filter(|name| !PROFILES.contains(name));
        for name in rows() {
            assert!(title(name).is_some(), "{name} has no title");
        }
        for (name, _) in TITLES {
            assert!(rows().any(|row| row == name), "{name} is no row");
        }
    }
}
