//! Links, addresses, routes, rules and settings, written to and read back from the kernel.

use std::collections::BTreeMap;

use gateway_core::plan::{
    AddressKey, Family, LinkSettings, RouteKey, RouteValue, RuleAction, RuleKey, RuleValue, names,
};
use gateway_ctl::os::address::Addresses;
use gateway_ctl::os::link::Links;
use gateway_ctl::os::route::Routes;
use gateway_ctl::os::rule::Rules;
use gateway_ctl::os::sysctl::Sysctls;
use gateway_ctl::os::{LastApplied, Outcome, sync};

use super::{ip, namespace, netlink, within};

#[test]
fn links_are_brought_up_and_sized_and_others_are_left_alone() {
    let ns = namespace("links");
    ns.ip("link add ours type bridge\nlink add theirs type bridge").expect("links");
    within(&ns, async || {
        let want = BTreeMap::from([
            ("ours".to_owned(), LinkSettings { up: true, mtu: 1380 }),
            ("missing".to_owned(), LinkSettings { up: true, mtu: 1500 }),
        ]);
        let links = Links::new(netlink(), want.keys().cloned());
        let mut memory = LastApplied::default();
        let outcome = sync(&links, &want, &mut memory).await;
        assert_eq!(outcome.put, 1);
        assert_eq!(outcome.failed.len(), 1, "a missing link fails alone");
        assert!(outcome.failed[0].error.contains("no interface missing"), "{outcome:?}");
        assert!(ip(&ns, "-o link show ours").contains("mtu 1380"));
        assert!(ip(&ns, "-o link show ours").contains(",UP"));
        assert!(!ip(&ns, "-o link show theirs").contains(",UP"));

        ns.ip("link set ours mtu 1280").expect("outsider");
        let outcome = sync(&links, &want, &mut memory).await;
        let drift = &outcome.drift[0];
        assert_eq!(
            (drift.field.as_str(), drift.expected.as_str(), drift.actual.as_str()),
            ("mtu", "1380", "1280")
        );
        assert!(ip(&ns, "-o link show ours").contains("mtu 1380"));
    });
}

#[test]
fn addresses_are_exact_on_our_links_and_untouched_on_others() {
    let ns = namespace("addr");
    ns.ip("link add ours type bridge\nlink set ours up\nlink add theirs type bridge\n\
           addr add 198.51.100.1/24 dev theirs\naddr add 10.99.0.1/24 dev ours")
        .expect("set-up");
    within(&ns, async || {
        let want: BTreeMap<AddressKey, ()> = ["10.9.0.2/24", "fd00:9::2/64", "fe80::9/64"]
            .map(|address| (AddressKey { interface: "ours".into(), address: address.parse().unwrap() }, ()))
            .into();
        let addresses = Addresses::new(netlink(), ["ours".to_owned()]);
        let mut memory = LastApplied::default();
        let outcome = sync(&addresses, &want, &mut memory).await;
        assert_eq!((outcome.put, outcome.removed, outcome.failed.len()), (3, 1, 0), "{outcome:?}");
        let shown = ip(&ns, "-o addr show dev ours");
        for address in ["10.9.0.2/24", "fd00:9::2/64", "fe80::9/64"] {
            assert!(shown.contains(address), "{shown}");
        }
        assert!(!shown.contains("10.99.0.1"), "an address that nobody planned goes: {shown}");
        assert!(ip(&ns, "addr show dev theirs").contains("198.51.100.1"));
        assert!(
            !ip(&ns, "route show table main").contains("10.9.0.0/24"),
            "a tunnel's network gets no route"
        );
        assert_eq!(sync(&addresses, &want, &mut memory).await, Outcome::default());

        ns.ip("addr del 10.9.0.2/24 dev ours").expect("outsider");
        let outcome = sync(&addresses, &want, &mut memory).await;
        assert_eq!(outcome.drift[0].resource, "10.9.0.2/24 on ours");
        assert!(ip(&ns, "addr show dev ours").contains("10.9.0.2/24"));
    });
}

fn route(table: u32, destination: &str, metric: u32) -> RouteKey {
    RouteKey { table, destination: destination.parse().expect("a network"), metric }
}

fn unicast(interface: &str, gateway: Option<&str>) -> RouteValue {
    RouteValue::Unicast {
        interface: interface.into(),
        gateway: gateway.map(|ip| ip.parse().expect("an address")),
    }
}

fn routes() -> BTreeMap<RouteKey, RouteValue> {
    BTreeMap::from([
        (route(47001, "0.0.0.0/0", 10), unicast("wan", Some("192.0.2.1"))),
        (route(47001, "::/0", 10), unicast("wan", Some("fe80::1"))),
        (route(47001, "0.0.0.0/0", names::METRIC_LAST), RouteValue::Unreachable),
        (route(47001, "::/0", names::METRIC_LAST), RouteValue::Unreachable),
        (route(47002, "0.0.0.0/0", 10), unicast("tun", None)),
        (route(47002, "::/0", 10), unicast("tun", None)),
        (route(47998, "0.0.0.0/0", 0), RouteValue::Local),
        (route(47998, "::/0", 0), RouteValue::Local),
        (route(47999, "0.0.0.0/0", 0), RouteValue::Unreachable),
        (route(47999, "::/0", 0), RouteValue::Prohibit),
        (route(254, "203.0.113.7/32", 0), unicast("wan", Some("192.0.2.1"))),
    ])
}

const ROUTED: &str = "link add wan type bridge\nlink set wan up\nlink add tun type bridge\nlink set tun up\n\
     addr add 192.0.2.2/24 dev wan\naddr add 2001:db8::2/64 dev wan";

#[test]
fn routes_of_every_kind_are_installed_read_back_and_removed() {
    let ns = namespace("routes");
    ns.ip(ROUTED).expect("set-up");
    ns.ip("route add 203.0.113.9 via 192.0.2.1\nroute add 203.0.113.8 dev wan table 47003 proto 71")
        .expect("others");
    within(&ns, async || {
        let backend = Routes::new(netlink());
        let mut memory = LastApplied::default();
        let outcome = sync(&backend, &Routes::want(&routes()), &mut memory).await;
        assert_eq!((outcome.put, outcome.removed, outcome.failed.len()), (11, 1, 0), "{outcome:?}");
        let leg = ip(&ns, "route show table 47001");
        assert!(leg.contains("default via 192.0.2.1 dev wan proto 71 metric 10"), "{leg}");
        assert!(leg.contains("unreachable default proto 71 metric 4294967295"), "{leg}");
        let leg = ip(&ns, "-6 route show table 47001");
        assert!(leg.contains("default via fe80::1 dev wan proto 71 metric 10"), "{leg}");
        assert!(leg.contains("unreachable default dev lo proto 71 metric 4294967295"), "{leg}");
        assert!(ip(&ns, "route show table 47002").contains("default dev tun proto 71"));
        assert!(ip(&ns, "-6 route show table 47999").contains("prohibit default"));
        for family in ["-4", "-6"] {
            let relay = ip(&ns, &format!("{family} route show table 47998"));
            assert!(relay.contains("local default dev lo proto 71"), "{relay}");
        }
        assert!(ip(&ns, "route show table main").contains("203.0.113.9"), "routes of others stay");
        assert_eq!(sync(&backend, &Routes::want(&routes()), &mut memory).await, Outcome::default());

        let outcome = sync(&backend, &BTreeMap::new(), &mut memory).await;
        assert_eq!((outcome.removed, outcome.failed.len()), (11, 0), "{outcome:?}");
        assert!(!ip(&ns, "route show table all").contains("proto 71"));
        assert!(!ip(&ns, "-6 route show table all").contains("proto 71"));
    });
}

#[test]
fn a_route_changes_in_place_between_all_kinds() {
    let ns = namespace("routes2");
    ns.ip(ROUTED).expect("set-up");
    within(&ns, async || {
        let backend = Routes::new(netlink());
        let mut memory = LastApplied::default();
        for destination in ["0.0.0.0/0", "::/0"] {
            let gateway = if destination == "::/0" { "2001:db8::1" } else { "192.0.2.1" };
            let kinds = [
                unicast("tun", None),
                RouteValue::Unreachable,
                unicast("wan", Some(gateway)),
                RouteValue::Prohibit,
            ];
            for from in &kinds {
                for to in &kinds {
                    for value in [from, to] {
                        let want = BTreeMap::from([(route(47005, destination, 10), value.clone())]);
                        let outcome = sync(&backend, &Routes::want(&want), &mut memory).await;
                        assert!(
                            outcome.is_ok() && outcome.drift.is_empty(),
                            "{from:?} to {to:?}: {outcome:?}"
                        );
                        let again = sync(&backend, &Routes::want(&want), &mut memory).await;
                        assert_eq!(again, Outcome::default(), "{from:?} to {to:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn routes_that_an_outsider_took_changed_or_added_are_reported_and_repaired() {
    let ns = namespace("routes3");
    ns.ip(ROUTED).expect("set-up");
    within(&ns, async || {
        let backend = Routes::new(netlink());
        let want = Routes::want(&routes());
        let mut memory = LastApplied::default();
        for (change, count) in [
            ("route del default table 47002", 1),
            ("route replace default dev wan table 47002 metric 10 proto 71", 1),
            ("route append default dev wan table 47002 metric 10 proto 71", 1),
            ("-6 route append default via 2001:db8::1 dev wan table 47001 metric 10 proto 71", 1),
            ("route add 203.0.113.0/24 dev wan table 47001 proto 71", 1),
            ("route add default tos 0x10 dev wan table 47002 metric 10 proto 71", 1),
            ("-6 route flush table 47001 metric 10", 1),
            ("-6 route del unreachable default table 47001 metric 4294967295", 1),
        ] {
            assert!(sync(&backend, &want, &mut memory).await.is_ok());
            ip(&ns, change);
            let outcome = sync(&backend, &want, &mut memory).await;
            assert_eq!(outcome.drift.len(), count, "{change}: {outcome:?}");
            assert!(
                outcome.is_ok() && outcome.drift.iter().all(|entry| entry.repaired),
                "{change}: {outcome:?}"
            );
            assert_eq!(sync(&backend, &want, &mut memory).await, Outcome::default(), "{change}");
        }
    });
}

fn rules() -> BTreeMap<RuleKey, RuleValue> {
    let mut rules = BTreeMap::new();
    for family in [Family::V4, Family::V6] {
        let mut rule = |priority, fwmark, input: Option<&str>, action, suppress_prefix_length| {
            let input_interface = input.map(str::to_owned);
            let value = RuleValue {
                source: None,
                fwmark,
                input_interface,
                output_interface: None,
                action,
                suppress_prefix_length,
            };
            rules.insert(RuleKey { family, priority }, value);
        };
        rule(4701, Some((0x4700_0001, 0xff00_ffff)), None, RuleAction::Table(47001), None);
        rule(4702, Some((0x4700_0002, 0xff00_ffff)), Some("lan0"), RuleAction::Table(47002), None);
        rule(4710, Some((0, 0xff00_0000)), None, RuleAction::Table(254), Some(0));
        rule(4790, None, Some("lan0"), RuleAction::Unreachable, None);
        rule(4999, None, Some("not-there-yet"), RuleAction::Prohibit, None);
        let source = if family == Family::V4 { "10.66.1.2/32" } else { "fd66:1::2/128" };
        let value = RuleValue {
            source: Some(source.parse().expect("a network")),
            fwmark: None,
            input_interface: Some("lo".to_owned()),
            output_interface: Some("tun-of-two".to_owned()),
            action: RuleAction::Table(47016),
            suppress_prefix_length: None,
        };
        rules.insert(RuleKey { family, priority: 4970 }, value);
    }
    rules
}

#[test]
fn rules_of_every_kind_are_installed_read_back_and_removed() {
    let ns = namespace("rules");
    ns.ip("link add lan0 type bridge\nrule add fwmark 7 lookup 7 priority 4750\nrule add prohibit iif lo to 192.0.2.9 priority 100 protocol 71")
        .expect("rules of others");
    within(&ns, async || {
        let backend = Rules::new(netlink());
        let mut memory = LastApplied::default();
        let outcome = sync(&backend, &Rules::want(&rules()), &mut memory).await;
        assert_eq!((outcome.put, outcome.removed, outcome.failed.len()), (12, 0, 0), "{outcome:?}");
        for family in ["-4", "-6"] {
            let shown = ip(&ns, &format!("{family} rule show"));
            for line in [
                "4701:\tfrom all fwmark 0x47000001/0xff00ffff lookup 47001 proto 71",
                "4702:\tfrom all fwmark 0x47000002/0xff00ffff iif lan0 lookup 47002 proto 71",
                "4710:\tfrom all fwmark 0/0xff000000 lookup main suppress_prefixlength 0 proto 71",
                "4790:\tfrom all iif lan0 unreachable proto 71",
                "4999:\tfrom all iif not-there-yet [detached] prohibit proto 71",
            ] {
                assert!(shown.contains(line), "{line} in {shown}");
            }
            let source = if family == "-4" { "10.66.1.2" } else { "fd66:1::2" };
            let line = format!("4970:\tfrom {source} iif lo oif tun-of-two [detached] lookup 47016 proto 71");
            assert!(shown.contains(&line), "{line} in {shown}");
        }
        assert_eq!(sync(&backend, &Rules::want(&rules()), &mut memory).await, Outcome::default());

        let outcome = sync(&backend, &BTreeMap::new(), &mut memory).await;
        assert_eq!((outcome.removed, outcome.failed.len()), (12, 0), "{outcome:?}");
        let shown = ip(&ns, "rule show");
        assert!(shown.contains("4750:") && shown.contains("100:"), "rules of others stay: {shown}");
        assert!(!ip(&ns, "-6 rule show").contains("proto 71"));
    });
}

#[test]
fn rules_that_an_outsider_took_changed_or_added_are_reported_and_repaired() {
    let ns = namespace("rules2");
    ns.ip("link add lan0 type bridge").expect("link");
    within(&ns, async || {
        let backend = Rules::new(netlink());
        let want = Rules::want(&rules());
        let mut memory = LastApplied::default();
        for (change, removed) in [
            ("rule del priority 4701", 0),
            ("-6 rule del priority 4999", 0),
            ("rule add lookup main priority 4705 protocol 71", 1),
            ("rule add lookup main priority 4999 protocol 71", 1),
            ("rule add from 192.0.2.0/24 ipproto tcp lookup main priority 4701 protocol 71", 1),
            ("-6 rule add not fwmark 1 lookup main priority 4800 protocol 71", 1),
            ("rule add blackhole priority 4700 protocol 71", 1),
        ] {
            assert!(sync(&backend, &want, &mut memory).await.is_ok());
            ip(&ns, change);
            let outcome = sync(&backend, &want, &mut memory).await;
            assert_eq!((outcome.drift.len(), outcome.removed), (1, removed), "{change}: {outcome:?}");
            assert!(outcome.is_ok() && outcome.drift[0].repaired, "{change}: {outcome:?}");
            assert_eq!(sync(&backend, &want, &mut memory).await, Outcome::default(), "{change}");
        }
    });
}

#[test]
fn a_rule_outside_of_our_range_is_refused() {
    let ns = namespace("rules3");
    within(&ns, async || {
        let value = RuleValue {
            source: None,
            fwmark: None,
            input_interface: None,
            output_interface: None,
            action: RuleAction::Prohibit,
            suppress_prefix_length: None,
        };
        let want = BTreeMap::from([(RuleKey { family: Family::V4, priority: 10 }, value)]);
        let outcome = sync(&Rules::new(netlink()), &Rules::want(&want), &mut LastApplied::default()).await;
        assert_eq!(outcome.failed.len(), 1, "it could never be found again");
    });
}

#[test]
fn kernel_settings_are_written_and_what_is_missing_fails_alone() {
    let ns = namespace("sysctl");
    within(&ns, async || {
        let want: BTreeMap<String, String> = [
            ("net.ipv4.ip_forward", "1"),
            ("net/ipv4/conf/lo/rp_filter", "2"),
            ("net.ipv4.ip_local_port_range", "20000 30000"),
            ("net.ipv4.conf.missing0.rp_filter", "2"),
            ("../etc/passwd", "x"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let backend = Sysctls::new(want.keys().cloned());
        let mut memory = LastApplied::default();
        let outcome = sync(&backend, &Sysctls::want(&want), &mut memory).await;
        assert_eq!((outcome.put, outcome.failed.len()), (3, 2), "{outcome:?}");
        let value = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        assert_eq!(value("ip_forward").trim(), "1");
        assert_eq!(value("conf/lo/rp_filter").trim(), "2");

        std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").expect("outsider");
        let outcome = sync(&backend, &Sysctls::want(&want), &mut memory).await;
        assert_eq!(outcome.drift.len(), 1, "{outcome:?}");
        assert_eq!(value("ip_forward").trim(), "1");
    });
}
