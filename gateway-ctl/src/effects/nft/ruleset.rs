//! The text of our table.
//!
//! Hook priorities are the standard ones (`filter`, `srcnat`): a drop in another program's table still drops, and
//! what that table accepts is still judged here.

use std::fmt::Write;

use gateway_common::wire::Mark;
use gateway_core::plan::{NftRuleset, names};

use super::Error;

/// Longest interface name of Linux.
const MAX_NAME: usize = 15;

/// The rule set of a running gateway.
///
/// A packet of a known flow meets one rule. One that has had no answer yet is new to conntrack as long as that lasts,
/// so the rules of the ways out come next, those that fail soonest first. `new` is asked for explicitly there: what
/// conntrack calls invalid would leave without being masqueraded. LAN to LAN is accepted in any state, because the
/// other direction of such a flow may go another way.
pub fn render(ruleset: &NftRuleset) -> Result<String, Error> {
    let NftRuleset { lan, tunnels, uplinks, open_udp, proxied, dns_port } = ruleset;
    let both: Vec<String> = tunnels.iter().chain(uplinks).cloned().collect();
    let (lan, outside) = (names(lan)?, names(&both)?);
    let (tunnels, uplinks) = (names(tunnels)?, names(uplinks)?);
    let ports = set(open_udp.iter().map(u16::to_string));

    let mut text = Text::open();
    if *proxied {
        hand_over(&mut text);
    }
    if *dns_port != 0 {
        // Conntrack puts the address that was asked back into the answer.
        text.chain("resolver", "type nat hook prerouting priority dstnat; policy accept;");
        let forced = Mark::FORCED_DNS.0;
        text.rule(&format!("meta mark {forced:#010x} meta l4proto {{ tcp, udp }} redirect to :{dns_port}"));
        text.end();
    }
    text.chain("forward", "type filter hook forward priority filter; policy drop;");
    text.rule("ct state established,related accept");
    if let Some(lan) = &lan {
        if let Some(tunnels) = &tunnels {
            // What the far end may send us must fit the tunnel, which it cannot know.
            text.rule(&format!(
                "tcp flags & (syn | rst) == syn iifname {lan} oifname {tunnels} tcp option maxseg size set rt mtu"
            ));
        }
        if let Some(outside) = &outside {
            text.rule(&format!("iifname {lan} oifname {outside} ct state new accept"));
        }
        text.rule(&format!("iifname {lan} oifname {lan} accept"));
    }
    text.end();

    text.chain("postrouting", "type nat hook postrouting priority srcnat; policy accept;");
    if let Some(tunnels) = &tunnels {
        text.rule(&format!("oifname {tunnels} masquerade"));
    }
    if let (Some(lan), Some(uplinks)) = (&lan, &uplinks) {
        text.rule(&format!("iifname {lan} oifname {uplinks} meta nfproto ipv4 masquerade"));
        text.rule(&format!("iifname {lan} oifname {uplinks} ip6 saddr fc00::/7 masquerade"));
    }
    text.end();

    text.chain("outside", "");
    text.rule("ct state established,related accept");
    text.rule("icmp type { destination-unreachable, echo-request, time-exceeded, parameter-problem } accept");
    text.rule(
        "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem, echo-request, \
         mld-listener-query, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept",
    );
    if let Some(uplinks) = &uplinks {
        // Answers to our own DHCP clients: the question went to a group, so conntrack does not know them.
        text.rule(&format!("iifname {uplinks} meta nfproto ipv4 udp sport 67 udp dport 68 accept"));
        text.rule(&format!("iifname {uplinks} ip6 saddr fe80::/10 udp dport 546 accept"));
        if let Some(ports) = &ports {
            text.rule(&format!("iifname {uplinks} udp dport {ports} accept"));
        }
    }
    text.rule("drop");
    text.end();

    text.chain("input", INPUT);
    // A connection that has lost its tunnel.
    text.rule(&format!("meta mark {:#010x} meta l4proto tcp reject with tcp reset", Mark::RESET.0));
    text.rule(&format!("meta mark {:#010x} drop", Mark::RESET.0));
    if let Some(lan) = &lan {
        text.rule(&format!("iifname {lan} {SPOOFED} drop"));
    }
    if let Some(outside) = &outside {
        text.rule(&format!("iifname {outside} jump outside"));
    }
    text.end();
    Ok(text.close())
}

/// Gives traffic for proxies to the relay's sockets, by the mark that ingress gave it.
///
/// Only what a socket takes gets the bit by which it is routed to this host: without the relay it goes nowhere, and
/// never to some program that listens on all addresses. Conntrack is kept out: once a policy leads elsewhere, the
/// connection must not be taken for one that need not be masqueraded.
fn hand_over(text: &mut Text) {
    let (ours, mask) = (Mark::PROXY, Mark::PROXY_MASK | Mark::PROXY_TAKEN);
    let taken = Mark::PROXY_TAKEN;
    let port = names::RELAY_PORT;
    text.chain("proxied", "type filter hook prerouting priority raw; policy accept;");
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
    text.chain("relayed", "type filter hook output priority raw; policy accept;");
    text.rule(&format!("meta mark & {mask:#010x} == {:#010x} notrack", ours | taken));
    text.end();
}

const INPUT: &str = "type filter hook input priority filter; policy accept;";
/// Sources that no host of the LAN can have. A plan takes the kernel's own test of them off its LAN interfaces, and
/// without a plan the ingress program does not know them.
const SPOOFED: &str = "meta nfproto ipv4 fib saddr type { local, broadcast }";

/// The resting state: nothing is forwarded, not even what conntrack knows.
pub fn render_block() -> String {
    let mut text = Text::open();
    text.chain("forward", "type filter hook forward priority filter; policy drop;");
    text.end();
    text.chain("input", INPUT);
    text.rule(&format!("iifname != \"lo\" {SPOOFED} drop"));
    text.end();
    text.close()
}

/// nft 1.0.6 wants each brace on a line of its own.
struct Text(String);

impl Text {
    fn open() -> Self {
        Self(format!("table inet {} {{\n", names::NFT_TABLE))
    }

    fn chain(&mut self, name: &str, base: &str) {
        self.line(1, format_args!("chain {name} {{"));
        if !base.is_empty() {
            self.rule(base);
        }
    }

    fn rule(&mut self, rule: &str) {
        self.line(2, format_args!("{rule}"));
    }

    fn end(&mut self) {
        self.line(1, format_args!("}}"));
    }

    fn close(mut self) -> String {
        self.chain("seal", "");
        self.end();
        self.line(0, format_args!("}}"));
        self.0
    }

    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{}{text}", "\t".repeat(depth)).expect("writing to a string cannot fail");
    }
}

/// A set of interface names, `None` if there are none: nft knows no empty set.
fn names(names: &[String]) -> Result<Option<String>, Error> {
    // nft strings have no escapes, and a last `*` is a wildcard.
    let plain = |name: &String| {
        (1..=MAX_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'@' | b'+'))
    };
    match names.iter().find(|name| !plain(name)) {
        Some(name) => Err(Error::InterfaceName(name.clone())),
        None => Ok(set(names.iter().map(|name| format!("\"{name}\"")))),
    }
}

fn set(items: impl Iterator<Item = String>) -> Option<String> {
    let items: std::collections::BTreeSet<String> = items.collect();
    let items: Vec<String> = items.into_iter().collect();
    (!items.is_empty()).then(|| format!("{{ {} }}", items.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruleset() -> NftRuleset {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        NftRuleset {
            lan: names(&["lan0", "lan0.20"]),
            tunnels: names(&["gw-exit-a"]),
            uplinks: names(&["wan0"]),
            open_udp: vec![51820],
            proxied: false,
            dns_port: 53,
        }
    }

    fn chain<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
        let lines = text.lines().skip_while(|line| *line != format!("\tchain {name} {{")).skip(1);
        lines.take_while(|line| *line != "\t}").map(str::trim).collect()
    }

    #[test]
    fn a_packet_of_a_known_flow_meets_one_rule() {
        let text = render(&ruleset()).unwrap();
        assert_eq!(chain(&text, "forward")[1], "ct state established,related accept");
        assert_eq!(chain(&text, "outside")[0], "ct state established,related accept");
    }

    #[test]
    fn only_the_lan_may_open_flows_through_the_gateway() {
        let text = render(&ruleset()).unwrap();
        let accepting: Vec<_> =
            chain(&text, "forward").into_iter().filter(|rule| rule.ends_with("accept")).skip(1).collect();
        assert_eq!(accepting.len(), 2);
        assert!(accepting.iter().all(|rule| rule.starts_with("iifname { \"lan0\", \"lan0.20\" } oifname ")));
    }

    #[test]
    fn the_outside_reaches_only_what_is_listed() {
        let text = render(&ruleset()).unwrap();
        assert_eq!(chain(&text, "outside").last(), Some(&"drop"));
        assert!(text.contains("iifname { \"wan0\" } udp dport { 51820 } accept"));
        assert!(chain(&text, "input").contains(&"iifname { \"gw-exit-a\", \"wan0\" } jump outside"));
    }

    #[test]
    fn the_lan_does_not_speak_for_the_gateway() {
        let drops = |text: &str| {
            chain(text, "input").iter().any(|rule| rule.ends_with("fib saddr type { local, broadcast } drop"))
        };
        assert!(drops(&render(&ruleset()).unwrap()) && drops(&render_block()));
    }

    #[test]
    fn uplinks_masquerade_only_what_cannot_be_answered_otherwise() {
        let text = render(&ruleset()).unwrap();
        let rules = chain(&text, "postrouting");
        assert!(rules.contains(&"oifname { \"gw-exit-a\" } masquerade"));
        let uplink: Vec<_> = rules.iter().filter(|rule| rule.contains("wan0")).collect();
        assert!(uplink.iter().all(|rule| rule.contains("nfproto ipv4") || rule.contains("fc00::/7")));
    }

    #[test]
    fn what_the_relay_does_not_take_is_not_delivered() {
        let text = render(&NftRuleset { proxied: true, ..ruleset() }).unwrap();
        let rules = chain(&text, "proxied");
        assert_eq!(rules[1], "meta mark & 0xfffe0000 != 0x47020000 accept", "other traffic meets one rule");
        let taking: Vec<_> = rules.iter().filter(|rule| rule.contains("meta mark set")).collect();
        assert!(taking.len() == 2 && taking.iter().all(|rule| rule.contains("tproxy")), "{text}");
        assert!(!render(&ruleset()).unwrap().contains("tproxy"));
    }

    #[test]
    fn the_text_does_not_depend_on_the_order_of_the_plan() {
        let mut other = ruleset();
        other.lan.reverse();
        assert_eq!(render(&ruleset()).unwrap(), render(&other).unwrap());
    }

    #[test]
    fn names_cannot_smuggle_rules_or_wildcards_in() {
        for name in ["wan\" accept", "eth*", "", "a b", "sixteen-letters-", "x}\n", "ü"] {
            let ruleset = NftRuleset { uplinks: vec![name.to_owned()], ..ruleset() };
            assert!(matches!(render(&ruleset), Err(Error::InterfaceName(_))), "{name:?}");
        }
    }

    #[test]
    fn the_block_accepts_nothing() {
        let text = render_block();
        assert_eq!(chain(&text, "forward"), ["type filter hook forward priority filter; policy drop;"]);
        assert!(text.lines().all(|line| !line.ends_with(" accept")), "{text}");
    }

    #[test]
    fn every_brace_ends_its_line() {
        for text in [render(&ruleset()).unwrap(), render(&NftRuleset::default()).unwrap(), render_block()] {
            for line in text.lines().filter(|line| line.contains('}') && !line.contains('{')) {
                assert_eq!(line.trim(), "}");
            }
        }
    }
}
