//! Text of the gateway's nftables table.
//!
//! Hook priorities are the standard ones (`filter`, `srcnat`). A drop in another program's table still drops. Packets
//! that such a table accepts are still evaluated here.

mod mesh;
mod text;

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_common::wire::Mark;
use gateway_core::plan::{NftRuleset, names};
use gateway_core::wan_access::WanAccess;
use ipnet::IpNet;

use super::error::Error;
use mesh::MeshRules;
use text::{Text, is_plain, names, set};

/// Number of comparisons that cost about as much as one set lookup.
const MAX_COMPARISONS: usize = 4;
/// Destinations in LANs that are new, for each interface.
const NEW_LAN_HOSTS: u32 = 50;
const NEW_LAN_HOSTS_BURST: u32 = 500;

/// Returns the rule set of a running gateway.
///
/// The forward chain trusts the fwmark no more than the egress guard does. A packet leaves by an uplink or a tunnel
/// only if its mark belongs to that interface, even if conntrack knows its flow. An established flow meets one rule
/// per kind of interface, replies first. All other packets need the state `new`, because packets that conntrack calls
/// invalid would leave without masquerading. Uplink traffic is compared first, as it is the majority of packets. LAN
/// to LAN is accepted in any state, because the other direction of such a flow may take another path.
pub fn render(ruleset: &NftRuleset) -> Result<String, Error> {
    let NftRuleset { lan, tunnels, uplinks, open_udp, proxied, egress, sources, .. } = ruleset;
    let to_tunnels = marks(egress, tunnels);
    let to_uplinks = marks(egress, uplinks);
    let sets = InterfaceSets { lan: names(lan)?, tunnels: names(tunnels)?, uplinks: names(uplinks)? };
    let InterfaceSets { lan, tunnels, uplinks } = &sets;
    let ports = [("udp", open_udp), ("tcp", &ruleset.open_tcp)]
        .map(|(protocol, ports)| Some((protocol, set(ports.iter().map(u16::to_string))?)));
    let access = ruleset.wan_access.as_ref().map(access_rules).transpose()?.unwrap_or_default();

    let mesh = ruleset.mesh.as_ref().map(MeshRules::new).transpose()?.flatten();

    let mut text = Text::open();
    if lan.is_some() {
        lan_to_lan(&mut text);
    }
    if let Some(mesh) = &mesh {
        mesh.marks(&mut text);
    }
    if *proxied {
        hand_over(&mut text);
    }
    redirect_queries(&mut text, ruleset);
    if let Some(lan) = lan {
        lan_sources(&mut text, lan, true);
    }
    text.chain("forward", "type filter hook forward priority filter; policy drop;");
    if let Some(from) = lan {
        // The majority of packets, so it comes first. The rules below repeat it, for more uplinks.
        for pair in comparisons(egress, &ruleset.uplinks) {
            text.rule(&format!("{pair} iifname {from} ct state new,established,related accept"));
        }
    }
    if let Some((shared, pairs)) = same_address(egress, sources) {
        // Their address does not tell which of them a reply belongs to. The server of one must not answer for another.
        text.rule(&format!("iifname {shared} ct direction reply iifname . ct mark != {pairs} drop"));
    }
    if let Some(lan) = lan {
        text.rule(&format!("oifname {lan} ct state established,related accept"));
    }
    if let Some(pairs) = &to_tunnels {
        // A flow that began over an uplink without NAT has no translated source. Conntrack would let it into the
        // tunnel as it is.
        text.rule(&format!("meta mark . oifname {pairs} ct state established,related ct status snat accept"));
    }
    if let Some(pairs) = &to_uplinks {
        text.rule(&format!("meta mark . oifname {pairs} ct state established,related accept"));
    }
    if let (Some(lan), Some(pairs)) = (lan, &to_tunnels) {
        text.rule(&format!(
            "iifname {lan} meta mark . oifname {pairs} ct state established meta l4proto tcp reject with tcp reset"
        ));
    }
    if let Some(lan) = lan {
        if let Some(tunnels) = tunnels {
            // Segments from the remote end must fit the tunnel, whose MTU it does not know.
            text.rule(&format!(
                "tcp flags & (syn | rst) == syn iifname {lan} oifname {tunnels} tcp option maxseg size set rt mtu"
            ));
        }
        for pairs in [&to_tunnels, &to_uplinks].into_iter().flatten() {
            text.rule(&format!("iifname {lan} meta mark . oifname {pairs} ct state new accept"));
        }
        text.rule(&format!("iifname {lan} oifname {lan} jump lan_to_lan"));
    }
    if let Some(mesh) = &mesh {
        mesh.forward(&mut text, lan.as_deref(), uplinks.as_deref());
    }
    text.end();

    text.chain("postrouting", "type nat hook postrouting priority srcnat; policy accept;");
    if let Some(tunnels) = tunnels {
        // Only the first packet of a flow comes here.
        text.rule(&format!("oifname {tunnels} ct mark set meta mark & {:#010x}", Mark::LEG_MASK));
        text.rule(&format!("oifname {tunnels} masquerade"));
    }
    if let (Some(lan), Some(uplinks)) = (lan, uplinks) {
        text.rule(&format!("iifname {lan} oifname {uplinks} meta nfproto ipv4 masquerade"));
        text.rule(&format!("iifname {lan} oifname {uplinks} ip6 saddr fc00::/7 masquerade"));
        for (uplink, net) in &ruleset.delegated {
            // Other providers drop its packets (RFC 2827), or have no route for the replies.
            let own = names(std::slice::from_ref(uplink))?.unwrap_or_default();
            text.rule(&format!(
                "iifname {lan} oifname {uplinks} oifname != {own} ip6 saddr {net} masquerade"
            ));
        }
    }
    if let Some(mesh) = &mesh {
        mesh.masquerade(&mut text, lan.as_deref(), uplinks.as_deref());
    }
    text.end();
    if let Some(tunnels) = tunnels {
        tunnel_source(&mut text, tunnels, sources);
    }
    sets.render(&mut text, ports.iter().flatten(), &access);

    text.chain("input", INPUT);
    // A TCP connection that has lost its tunnel.
    text.rule(&format!("meta mark {:#010x} meta l4proto tcp reject with tcp reset", Mark::RESET.0));
    text.rule(&format!("meta mark {:#010x} drop", Mark::RESET.0));
    if let Some(lan) = lan {
        text.rule(&format!("iifname {lan} {SPOOFED} drop"));
        refuse_foreign_sources(&mut text, lan);
    }
    sets.input(&mut text);
    text.end();
    Ok(text.close())
}

/// Forwarding between LANs. The kernel keeps a neighbour entry, and sends solicitations, for each destination of a LAN, also
/// for those that do not exist, and there is room for a limited number (RFC 6583). So each interface may send to a limited
/// number of destinations a second that no packet was sent to in the last minute. The other ones are not concerned, nor are
/// destinations in other networks.
fn lan_to_lan(text: &mut Text) {
    for (family, kind) in [("4", "ipv4_addr"), ("6", "ipv6_addr")] {
        text.set(&format!("lan_hosts{family}"), &format!("type {kind}"), 16_384);
    }
    text.set("lan_searchers", "type ifname", 1024);
    text.chain("lan_to_lan", "");
    text.rule("ip daddr @lan_hosts4 accept");
    text.rule("ip6 daddr @lan_hosts6 accept");
    let limit = format!("limit rate over {NEW_LAN_HOSTS}/second burst {NEW_LAN_HOSTS_BURST} packets");
    text.rule(&format!("add @lan_searchers {{ iifname {limit} }} drop"));
    text.rule("add @lan_hosts4 { ip daddr } accept");
    text.rule("add @lan_hosts6 { ip6 daddr } accept");
    text.end();
}

/// Redirects DNS and NTP queries to the servers of this host. Conntrack restores the original destination address as the
/// source of the reply.
fn redirect_queries(text: &mut Text, ruleset: &NftRuleset) {
    let NftRuleset { dns_port, ntp_port, redirects_own_dns, .. } = ruleset;
    if *dns_port != 0 || *ntp_port != 0 {
        text.chain("query_redirect", "type nat hook prerouting priority dstnat; policy accept;");
    }
    if *dns_port != 0 {
        let forced = Mark::FORCED_DNS.0;
        text.rule(&format!("meta mark {forced:#010x} meta l4proto {{ tcp, udp }} redirect to :{dns_port}"));
    }
    if *ntp_port != 0 {
        text.rule(&format!(
            "meta mark {:#010x} meta l4proto udp redirect to :{ntp_port}",
            Mark::FORCED_NTP.0
        ));
    }
    if *dns_port != 0 || *ntp_port != 0 {
        text.end();
    }
    if *dns_port != 0 && *redirects_own_dns {
        text.chain("own_query_redirect", "type nat hook output priority -100; policy accept;");
        // What the gateway sends with a mark has its own egress.
        text.rule(&format!("meta mark & {:#010x} == {:#010x} accept", Mark::OURS_MASK, Mark::OURS));
        text.rule(&format!("meta mark {:#010x} accept", Mark::OWN_QUERY.0));
        text.rule("fib daddr type local accept");
        text.rule(&format!("meta l4proto {{ tcp, udp }} th dport 53 redirect to :{dns_port}"));
        text.end();
    }
}

/// Drops packets to a tunnel whose source is not an address of the tunnel. Source translation happens earlier, so
/// conntrack exempts such a packet from translation.
fn tunnel_source(text: &mut Text, tunnels: &str, sources: &BTreeSet<(String, IpAddr)>) {
    text.chain("tunnel_source", "type filter hook postrouting priority srcnat + 10; policy accept;");
    text.rule(&format!("oifname != {tunnels} accept"));
    for (family, header, ipv6) in [("ipv4", "ip", false), ("ipv6", "ip6", true)] {
        let own = sources.iter().filter(|(_, address)| address.is_ipv6() == ipv6);
        if ipv6 {
            // Neighbour and listener discovery, which is not forwarded.
            text.rule("ip6 saddr { ::, fe80::/10 } accept");
        }
        match set(own.map(|(interface, address)| format!("\"{interface}\" . {address}"))) {
            Some(own) => text.rule(&format!("oifname . {header} saddr != {own} drop")),
            None => text.rule(&format!("meta nfproto {family} drop")),
        }
    }
    text.end();
}

/// Returns the rules that let clients of uplinks reach the API.
fn access_rules(access: &WanAccess) -> Result<Vec<String>, Error> {
    let WanAccess { port, interfaces, clients } = access;
    let Some(interfaces) = names(interfaces)? else { return Ok(Vec::new()) };
    let rule = |sources: &str| format!("iifname {interfaces}{sources} tcp dport {port} accept");
    if clients.is_empty() {
        return Ok(vec![rule("")]);
    }
    let (v4, v6): (Vec<&IpNet>, Vec<&IpNet>) = clients.iter().partition(|net| matches!(net, IpNet::V4(_)));
    let sources = |family: &str, nets: Vec<&IpNet>| {
        set(IpNet::aggregate(&nets.into_iter().copied().collect()).iter().map(IpNet::to_string))
            .map(|nets| rule(&format!(" {family} saddr {nets}")))
    };
    Ok([sources("ip", v4), sources("ip6", v6)].into_iter().flatten().collect())
}

/// Input access to this host by interface. LAN and loopback have access. Every other interface, listed or not, leads
/// to the chain `outside`.
#[derive(Default)]
struct InterfaceSets {
    lan: Option<String>,
    tunnels: Option<String>,
    uplinks: Option<String>,
}

impl InterfaceSets {
    /// Renders the chain for all interfaces that are neither LAN nor loopback.
    fn render<'p>(
        &self,
        text: &mut Text,
        ports: impl IntoIterator<Item = &'p (&'static str, String)>,
        access: &[String],
    ) {
        text.chain("wan_input", "");
        text.rule("ct state established,related accept");
        text.rule(
            "icmp type { destination-unreachable, echo-request, time-exceeded, parameter-problem } accept",
        );
        text.rule(
            "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem, echo-request, \
             mld-listener-query, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept",
        );
        if let Some(tunnels) = &self.tunnels {
            text.rule(&format!("iifname {tunnels} drop"));
        }
        // Replies to the gateway's DHCP clients. The requests are multicast or broadcast, so conntrack does not know
        // the replies.
        text.rule("meta nfproto ipv4 udp sport 67 udp dport 68 accept");
        text.rule("ip6 saddr fe80::/10 udp dport 546 accept");
        for (protocol, ports) in ports {
            if let Some(uplinks) = &self.uplinks {
                text.rule(&format!("iifname {uplinks} {protocol} dport {ports} accept"));
            }
        }
        access.iter().for_each(|rule| text.rule(rule));
        text.rule("drop");
        text.end();
    }

    /// Renders the end of the input chain.
    fn input(&self, text: &mut Text) {
        text.rule("iifname \"lo\" accept");
        if let Some(lan) = &self.lan {
            text.rule(&format!("iifname {lan} accept"));
        }
        text.rule("jump wan_input");
    }
}

/// Redirects traffic for proxies to the relay's sockets, by the fwmark that ingress set.
///
/// Only traffic that a socket accepts gets the bit that routes it to this host. Without the relay it is dropped, and
/// it never reaches a program that listens on all addresses. Conntrack does not track it: after a policy change, the
/// connection must not count as one that needs no masquerading.
fn hand_over(text: &mut Text) {
    let (ours, mask) = (Mark::PROXY, Mark::PROXY_MASK | Mark::PROXY_TAKEN);
    let taken = Mark::PROXY_TAKEN;
    let port = names::RELAY_PORT;
    text.chain("tproxy_prerouting", "type filter hook prerouting priority raw; policy accept;");
    text.rule(&format!("meta mark & {mask:#010x} != {ours:#010x} accept"));
    text.rule("notrack");
    for (family, to) in [("ipv4", "ip to 127.0.0.1"), ("ipv6", "ip6 to [::1]")] {
        text.rule(&format!(
            "meta nfproto {family} meta l4proto {{ tcp, udp }} tproxy {to}:{port} meta mark set meta mark | {taken:#010x} \
             accept"
        ));
    }
    text.rule(&format!("meta mark & {0:#010x} == {0:#010x} drop", Mark::PROXY_SILENT));
    text.end();
    text.chain("tproxy_output", "type filter hook output priority raw; policy accept;");
    text.rule(&format!("meta mark & {mask:#010x} == {:#010x} notrack", ours | taken));
    text.end();
}

const INPUT: &str = "type filter hook input priority filter; policy drop;";
/// Sources that no host of the LAN can have. A plan disables the kernel's own check on its LAN interfaces. Without a
/// plan the ingress program does not know them. A host that has no address yet uses 0.0.0.0, which is of the type
/// broadcast, too.
const SPOOFED: &str = "meta nfproto ipv4 ip saddr != 0.0.0.0 fib saddr type { local, broadcast }";

/// Returns the default-deny rule set. It forwards nothing, not even flows that conntrack knows, and its input rules
/// are those of a running gateway. It omits names that no rule can hold, so that the rest takes effect.
pub fn render_block(lan: &[String]) -> String {
    let lan: Vec<String> = lan.iter().filter(|name| is_plain(name)).cloned().collect();
    let sets = InterfaceSets { lan: names(&lan).unwrap_or_default(), ..InterfaceSets::default() };
    let mut text = Text::open();
    text.chain("forward", "type filter hook forward priority filter; policy drop;");
    text.end();
    if let Some(lan) = &sets.lan {
        lan_sources(&mut text, lan, false);
    }
    sets.render(&mut text, [], &[]);
    text.chain("input", INPUT);
    text.rule(&format!("iifname != \"lo\" {SPOOFED} drop"));
    sets.input(&mut text);
    text.end();
    text.close()
}

/// Drops LAN packets with foreign sources before routing, which replies to packets that it prohibits. With a plan, this is
/// the second line behind the ingress program: packets with its mark have passed the same check there.
fn lan_sources(text: &mut Text, lan: &str, has_plan: bool) {
    text.chain("lan_sources", "type filter hook prerouting priority raw; policy accept;");
    if has_plan {
        text.rule(&format!("meta mark & {:#010x} == {:#010x} accept", Mark::OURS_MASK, Mark::OURS));
    }
    refuse_foreign_sources(text, lan);
    text.end();
}

/// Drops LAN packets whose source has no return route through the ingress interface. A reply of this host would leave
/// by another interface. The ingress program does the same with a plan. This rule needs neither plan nor program.
fn refuse_foreign_sources(text: &mut Text, lan: &str) {
    let no_way_back = "fib saddr . iif oif missing drop";
    text.rule(&format!("iifname {lan} meta nfproto ipv4 ip saddr != 0.0.0.0 {no_way_back}"));
    // Neighbour discovery for duplicate addresses must pass (RFC 4862, section 5.4.4).
    text.rule(&format!("iifname {lan} meta nfproto ipv6 meta l4proto != ipv6-icmp {no_way_back}"));
    text.rule(&format!("iifname {lan} icmpv6 type echo-request {no_way_back}"));
}

/// Returns the set of the pairs of mark and output interface that belong to the interfaces.
fn marks(egress: &BTreeSet<(u32, String)>, interfaces: &[String]) -> Option<String> {
    let pairs = egress.iter().filter(|(_, interface)| interfaces.contains(interface));
    set(pairs.map(|(mark, interface)| format!("{mark:#010x} . \"{interface}\"")))
}

/// Returns the tunnels that have an address of another one, and the same with the numbers of their legs.
fn same_address(
    egress: &BTreeSet<(u32, String)>,
    sources: &BTreeSet<(String, IpAddr)>,
) -> Option<(String, String)> {
    let has_address = |one: &String, address: &IpAddr| {
        sources.iter().any(|(interface, other)| other == address && interface != one)
    };
    let shared = sources.iter().filter(|(interface, address)| has_address(interface, address));
    let shared: BTreeSet<&String> = shared.map(|(interface, _)| interface).collect();
    let pairs = egress.iter().filter(|(_, interface)| shared.contains(interface));
    let pairs = set(pairs.map(|(mark, interface)| format!("\"{interface}\" . {:#x}", mark & Mark::LEG_MASK)));
    set(shared.iter().map(|interface| format!("\"{interface}\""))).zip(pairs)
}

/// Returns the same pairs as plain comparisons, the default route first. A few comparisons cost less than a set
/// lookup. The result is empty if there are many.
fn comparisons(egress: &BTreeSet<(u32, String)>, interfaces: &[String]) -> Vec<String> {
    let pairs = egress.iter().filter(|(_, interface)| interfaces.contains(interface));
    let pairs: Vec<_> =
        pairs.rev().map(|(mark, name)| format!("meta mark {mark:#010x} oifname \"{name}\"")).collect();
    if pairs.len() <= MAX_COMPARISONS { pairs } else { Vec::new() }
}

#[cfg(test)]
mod tests;
