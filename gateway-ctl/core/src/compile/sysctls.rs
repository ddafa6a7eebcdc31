//! Settings of the kernel for forwarding by marks.

use super::Input;
use super::leg::Leg;
use crate::plan::Plan;

/// Settings of each interface, and of all, by which neighbours would change routes, choose routes themselves, or reach the
/// loopback addresses.
const REFUSED: [(&str, &str); 5] = [
    ("ipv4.conf.{}.accept_redirects", "0"),
    ("ipv4.conf.{}.accept_source_route", "0"),
    ("ipv4.conf.{}.route_localnet", "0"),
    ("ipv6.conf.{}.accept_redirects", "0"),
    ("ipv6.conf.{}.accept_source_route", "0"),
];

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let mut set = |key: String, value: &str| plan.sysctls.insert(key, value.to_owned());
    set("net.ipv4.ip_forward".into(), "1");
    set("net.ipv6.conf.all.forwarding".into(), "1");
    // Replies come in by the leg, while the main table would answer by another interface.
    set("net.ipv4.conf.all.rp_filter".into(), "0");
    set("net.ipv4.conf.all.send_redirects".into(), "0");
    for (name, value) in REFUSED {
        set(format!("net.{}", name.replace("{}", "all")), value);
    }
    // Replies of the kernel, and connections to this host, inherit the mark of the packet, so the mark routes them.
    set("net.ipv4.fwmark_reflect".into(), "1");
    set("net.ipv6.fwmark_reflect".into(), "1");
    set("net.ipv4.tcp_fwmark_accept".into(), "1");
    // RFC 5382, REQ-5: at least 2 h 4 min. The kernel's default of five days lets a host hold entries that it needs no more.
    set("net.netfilter.nf_conntrack_tcp_timeout_established".into(), "7440");
    if input.network.flow_log {
        // Of connections that begin from now on: packets and bytes, the time of the start, and a report of the end.
        for name in ["acct", "timestamp", "events"] {
            set(format!("net.netfilter.nf_conntrack_{name}"), "1");
        }
    }
    for lan in input.network.lan.iter().filter(|lan| input.facts.links.contains_key(*lan)) {
        set(format!("net.ipv4.conf.{}.send_redirects", path_name(lan)), "0");
        // Answer for an address only on its own interface: neighbours must not find tunnel addresses.
        set(format!("net.ipv4.conf.{}.arp_ignore", path_name(lan)), "1");
        // With rules present, the kernel looks up a return route for each packet only to check whether its source
        // belongs to the gateway. The ingress program does so once per flow, and the nft table on ingress.
        set(format!("net.ipv4.conf.{}.accept_local", path_name(lan)), "1");
        set(format!("net.ipv4.conf.{}.rp_filter", path_name(lan)), "0");
        for (name, value) in REFUSED {
            set(format!("net.{}", name.replace("{}", &path_name(lan))), value);
        }
    }
    for leg in legs.iter().filter(|leg| input.facts.links.contains_key(&leg.interface)) {
        let name = path_name(&leg.interface);
        // Neighbours on one egress must not find addresses of another.
        set(format!("net.ipv4.conf.{name}.arp_ignore"), "1");
        set(format!("net.ipv4.conf.{name}.rp_filter"), "0");
        set(format!("net.ipv4.conf.{name}.accept_local"), "0");
        for (setting, value) in REFUSED {
            set(format!("net.{}", setting.replace("{}", &name)), value);
        }
        if leg.is_uplink() {
            // A forwarding host ignores router advertisements otherwise.
            set(format!("net.ipv6.conf.{name}.accept_ra"), "2");
        }
    }
}

/// In a sysctl key a dot of an interface's name is written as a slash (sysctl(8)).
fn path_name(interface: &str) -> String {
    interface.replace('.', "/")
}
