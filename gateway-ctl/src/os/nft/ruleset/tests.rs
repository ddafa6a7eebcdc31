//! Rules of the table, by chain.

use super::*;
use gateway_core::plan::MeshForwarding;

fn ruleset() -> NftRuleset {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    NftRuleset {
        lan: names(&["lan0", "lan0.20"]),
        tunnels: names(&["gw-exit-a"]),
        uplinks: names(&["wan0"]),
        open_udp: vec![51820],
        open_tcp: vec![],
        proxied: false,
        dns_port: 53,
        redirects_own_dns: true,
        ntp_port: 4704,
        egress: BTreeSet::from([
            (0x4700_0001, "wan0".to_owned()),
            (0x4700_8000, "wan0".to_owned()),
            (0x4700_0010, "gw-exit-a".to_owned()),
        ]),
        delegated: BTreeSet::new(),
        sources: BTreeSet::from([("gw-exit-a".to_owned(), "10.66.1.2".parse().unwrap())]),
        wan_access: None,
        mesh: None,
    }
}

fn chain<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| *line != format!("\tchain {name} {{")).skip(1);
    lines.take_while(|line| *line != "\t}").map(str::trim).collect()
}

#[test]
fn a_delegated_prefix_is_masqueraded_by_other_uplinks() {
    let mut ruleset = ruleset();
    ruleset.uplinks.push("wan1".to_owned());
    ruleset.delegated.insert(("wan0".to_owned(), "2001:db8:100::/56".parse().unwrap()));
    let text = render(&ruleset).unwrap();
    let rules = chain(&text, "postrouting");
    let rule = rules.iter().find(|rule| rule.contains("2001:db8:100::/56")).expect("a rule");
    assert!(rule.contains("oifname != { \"wan0\" }") && rule.ends_with("masquerade"), "{rule}");
}

#[test]
fn established_packets_are_checked_first() {
    let text = render(&ruleset()).unwrap();
    let rules = chain(&text, "forward");
    let of_the_lan = "iifname { \"lan0\", \"lan0.20\" } ct state new,established,related accept";
    assert_eq!(rules[1], format!("meta mark 0x47008000 oifname \"wan0\" {of_the_lan}"));
    assert_eq!(rules[2], format!("meta mark 0x47000001 oifname \"wan0\" {of_the_lan}"));
    assert!(rules[3..6].iter().all(|rule| rule.contains("ct state established,related")), "{text}");
    assert_eq!(rules[3], "oifname { \"lan0\", \"lan0.20\" } ct state established,related accept");
    assert_eq!(chain(&text, "wan_input")[0], "ct state established,related accept");
}

#[test]
fn nothing_leaves_the_lan_without_a_mark_of_the_interface() {
    let text = render(&ruleset()).unwrap();
    let accepting: Vec<_> =
        chain(&text, "forward").into_iter().filter(|rule| rule.ends_with("accept")).collect();
    let to_the_lan =
        |rule: &&&str| rule.contains("oifname { \"lan0\", \"lan0.20\" }") && !rule.contains("meta mark");
    assert_eq!(accepting.iter().filter(to_the_lan).count(), 1, "{text}");
    let marked = |rule: &&&str| {
        rule.contains("meta mark . oifname { 0x47000010 . \"gw-exit-a\" } ")
            || rule.contains("meta mark . oifname { 0x47000001 . \"wan0\", 0x47008000 . \"wan0\" } ")
            || rule.starts_with("meta mark 0x47008000 oifname \"wan0\" iifname { \"lan0\", \"lan0.20\" } ")
            || rule.starts_with("meta mark 0x47000001 oifname \"wan0\" iifname { \"lan0\", \"lan0.20\" } ")
    };
    assert_eq!(accepting.iter().filter(marked).count(), accepting.len() - 1, "{text}");
    let opening = accepting.iter().filter(|rule| rule.contains("ct state new"));
    assert!(opening.into_iter().all(|rule| rule.contains("iifname { \"lan0\", \"lan0.20\" } ")));
}

#[test]
fn destinations_in_lans_that_are_new_have_a_limit_for_each_interface() {
    let text = render(&ruleset()).unwrap();
    assert_eq!(
        chain(&text, "forward").last(),
        Some(&"iifname { \"lan0\", \"lan0.20\" } oifname { \"lan0\", \"lan0.20\" } jump lan_to_lan")
    );
    let rules = chain(&text, "lan_to_lan");
    let limit = rules.iter().position(|rule| rule.ends_with("drop")).expect("a limit");
    assert!(rules[limit].contains("{ iifname limit rate over 50/second"), "{text}");
    let (known, new) = (&rules[..limit], &rules[limit + 1..]);
    assert!(known.iter().all(|rule| rule.contains("daddr @lan_hosts")), "{text}");
    assert!(new.iter().all(|rule| rule.starts_with("add @lan_hosts")), "{text}");
    assert!(!render_block(&ruleset().lan).contains("lan_to_lan"));
}

#[test]
fn tunnels_carry_no_source_but_their_own() {
    let text = render(&ruleset()).unwrap();
    let rules = chain(&text, "tunnel_source");
    assert_eq!(rules[1], "oifname != { \"gw-exit-a\" } accept");
    assert!(rules.contains(&"oifname . ip saddr != { \"gw-exit-a\" . 10.66.1.2 } drop"), "{text}");
    assert!(rules.contains(&"meta nfproto ipv6 drop"), "a tunnel without an address of the family: {text}");
}

#[test]
fn only_loopback_and_the_lan_reach_this_host() {
    let text = render(&ruleset()).unwrap();
    for text in [&text, &render_block(&ruleset().lan)] {
        let rules = chain(text, "input");
        assert!(rules[0].ends_with("policy drop;"), "{text}");
        let accepting: Vec<_> = rules.iter().filter(|rule| rule.ends_with("accept")).collect();
        assert_eq!(
            accepting,
            [&"iifname \"lo\" accept", &"iifname { \"lan0\", \"lan0.20\" } accept"],
            "{text}"
        );
        assert_eq!(rules.last(), Some(&"jump wan_input"));
        assert_eq!(chain(text, "wan_input").last(), Some(&"drop"));
    }
    assert!(text.contains("iifname { \"wan0\" } udp dport { 51820 } accept"));
}

#[test]
fn uplinks_reach_the_coordinator_of_the_mesh_only_by_its_ports() {
    let ruleset = NftRuleset { open_tcp: vec![8443], open_udp: vec![3478], ..ruleset() };
    let text = render(&ruleset).unwrap();
    let rules = chain(&text, "wan_input");
    for rule in
        ["iifname { \"wan0\" } tcp dport { 8443 } accept", "iifname { \"wan0\" } udp dport { 3478 } accept"]
    {
        assert!(rules.contains(&rule), "{text}");
    }
    assert!(!render_block(&ruleset.lan).contains("8443"));
}

#[test]
fn uplinks_reach_the_api_only_by_the_setting() {
    let access = |clients: &[&str]| WanAccess {
        port: 8443,
        interfaces: vec!["wan0".to_owned()],
        clients: clients.iter().map(|net| net.parse().unwrap()).collect(),
    };
    let rules = |clients: &[&str]| {
        let ruleset = NftRuleset { wan_access: Some(access(clients)), ..ruleset() };
        let text = render(&ruleset).unwrap();
        let chain = chain(&text, "wan_input").into_iter().map(str::to_owned);
        let rules: Vec<String> = chain.filter(|rule| rule.contains("8443")).collect();
        assert!(!render_block(&ruleset.lan).contains("8443"));
        rules
    };
    assert_eq!(rules(&[]), ["iifname { \"wan0\" } tcp dport 8443 accept"]);
    assert_eq!(
        rules(&["203.0.113.0/24", "203.0.113.8/32", "2001:db8::/32"]),
        [
            "iifname { \"wan0\" } ip saddr { 203.0.113.0/24 } tcp dport 8443 accept",
            "iifname { \"wan0\" } ip6 saddr { 2001:db8::/32 } tcp dport 8443 accept",
        ]
    );
    assert!(!render(&ruleset()).unwrap().contains("tcp dport"));
}

#[test]
fn the_lan_does_not_speak_for_the_gateway() {
    let rule = "ip saddr != 0.0.0.0 fib saddr type { local, broadcast } drop";
    let drops = |text: &str| chain(text, "input").iter().any(|have| have.ends_with(rule));
    assert!(drops(&render(&ruleset()).unwrap()) && drops(&render_block(&[])));
}

#[test]
fn foreign_sources_of_the_lan_are_dropped_before_routing_with_and_without_a_plan() {
    let (with, without) = (render(&ruleset()).unwrap(), render_block(&ruleset().lan));
    let (with, without) = (chain(&with, "lan_sources"), chain(&without, "lan_sources"));
    assert_eq!(with[1], "meta mark & 0xff000000 == 0x47000000 accept", "the program has passed these");
    assert_eq!((&with[0], &with[2..]), (&without[0], &without[1..]));
    assert!(without.iter().filter(|rule| rule.ends_with("fib saddr . iif oif missing drop")).count() == 3);
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
fn traffic_that_the_relay_does_not_take_is_dropped() {
    let text = render(&NftRuleset { proxied: true, ..ruleset() }).unwrap();
    let rules = chain(&text, "tproxy_prerouting");
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
fn the_block_forwards_nothing() {
    let text = render_block(&ruleset().lan);
    assert_eq!(chain(&text, "forward"), ["type filter hook forward priority filter; policy drop;"]);
}

#[test]
fn the_block_is_in_force_whatever_interfaces_are_called() {
    let lan = ["lan0".to_owned(), "wan\" accept".to_owned()];
    assert_eq!(render_block(&lan), render_block(&lan[..1]));
}

#[test]
fn every_brace_ends_its_line() {
    for text in [render(&ruleset()).unwrap(), render(&NftRuleset::default()).unwrap(), render_block(&[])] {
        for line in text.lines().filter(|line| line.contains('}') && !line.contains('{')) {
            assert_eq!(line.trim(), "}");
        }
    }
}

#[test]
fn nodes_of_the_mesh_reach_what_is_offered_and_nothing_else() {
    let mesh = MeshForwarding {
        interface: "mesh0".to_owned(),
        subnets: ["192.168.7.0/24".parse().unwrap()].into(),
        exit: None,
        exit_ipv4: false,
        exit_ipv6: false,
    };
    let rules = |mesh: &MeshForwarding| {
        let text = render(&NftRuleset { mesh: Some(mesh.clone()), ..ruleset() }).unwrap();
        let of = |name: &str| -> Vec<String> {
            let rules =
                chain(&text, name).into_iter().filter(|rule| rule.contains("mesh0") || name == "mesh_marks");
            rules.map(str::to_owned).collect()
        };
        (of("mesh_marks"), of("forward"), of("postrouting"))
    };
    let (marks, forward, postrouting) = rules(&mesh);
    assert_eq!(marks.last().unwrap(), "ip daddr { 192.168.7.0/24 } meta mark set 0x47008001 accept");
    assert_eq!(forward.len(), 2, "{forward:?}");
    let to_lan = "iifname { \"mesh0\" } oifname { \"lan0\", \"lan0.20\" } meta mark 0x47008001 ip daddr { 192.168.7.0/24 }";
    assert!(forward[0].starts_with(to_lan), "{forward:?}");
    assert!(forward[1].contains("ct direction reply") && !forward[1].contains("new"), "{forward:?}");
    assert_eq!(postrouting.len(), 2);
    let exit = MeshForwarding { exit: Some(0x4700_8000), exit_ipv4: true, subnets: BTreeSet::new(), ..mesh };
    let (marks, forward, _) = rules(&exit);
    assert!(marks.last().unwrap().ends_with("meta mark set 0x47008000 accept"), "{marks:?}");
    assert!(marks.last().unwrap().contains("192.168.0.0/16"), "private networks are not the internet");
    let to_uplinks: Vec<_> = forward.iter().filter(|rule| rule.contains("new")).collect();
    assert_eq!(to_uplinks.len(), 1, "IPv6 is not offered: {forward:?}");
    assert!(to_uplinks[0].contains("oifname { \"wan0\" } meta mark 0x47008000 ip daddr != {"));
    let nothing = render(&ruleset()).unwrap();
    assert!(!nothing.contains("mesh_marks"));
}
