//! IPv6 prefixes of the LANs in the plan.

use gateway_core::facts::DelegatedPrefix;
use gateway_core::network::{LanIpv6Settings, UplinkSettings};
use gateway_core::plan::{AddressKey, LanPrefix, Plan};
use jiff::{SignedDuration, Timestamp};

use crate::fixture::{Fixture, leg};

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.network.ipv6 = Some(with_delegation());
    fixture
}

fn with_delegation() -> LanIpv6Settings {
    LanIpv6Settings { delegation: true, ..LanIpv6Settings::default() }
}

fn delegate(fixture: &mut Fixture, uplink: &str, net: &str, seconds: i64) -> Timestamp {
    let valid_until = fixture.now + SignedDuration::from_secs(seconds);
    let preferred_until = fixture.now + SignedDuration::from_secs(seconds / 2);
    let delegated = DelegatedPrefix { net: net.parse().expect("a prefix"), preferred_until, valid_until };
    fixture.facts.delegations.insert(uplink.to_owned(), delegated);
    valid_until
}

fn prefixes<'a>(plan: &'a Plan, lan: &str) -> &'a [LanPrefix] {
    &plan.lan_ipv6.as_ref().expect("IPv6 of the LANs").prefixes[lan]
}

fn sets(plan: &Plan, interface: &str, address: &str) -> bool {
    let address = address.parse().expect("an address");
    plan.addresses.contains_key(&AddressKey { interface: interface.to_owned(), address })
}

#[test]
fn each_lan_gets_a_part_of_each_prefix_with_an_address() {
    let mut fixture = fixture();
    fixture.network.lan.push("lan1".to_owned());
    fixture.link("lan1", 7);
    fixture.network.ipv6 =
        Some(LanIpv6Settings { prefix: Some("fd77::/48".parse().expect("a prefix")), ..with_delegation() });
    let end = delegate(&mut fixture, "wan0", "2001:db8:100::/56", 1000);
    let plan = fixture.compiled().plan;
    for (lan, subnet) in [("lan0", "0"), ("lan1", "1")] {
        let nets: Vec<String> = prefixes(&plan, lan).iter().map(|prefix| prefix.net.to_string()).collect();
        let expected = [format!("fd77:0:0:{subnet}::/64"), format!("2001:db8:100:{subnet}::/64")];
        let expected = expected.map(|net| net.parse::<ipnet::Ipv6Net>().expect("a prefix").to_string());
        assert_eq!(nets, expected);
        assert!(sets(&plan, lan, &format!("2001:db8:100:{subnet}::1/64")));
        assert!(prefixes(&plan, lan).iter().all(|prefix| prefix.is_preferred));
    }
    assert_eq!(plan.valid_until, Some(end));
    assert!(plan.lan_ipv6.as_ref().expect("IPv6").is_router);
    let delegated = ("wan0".to_owned(), "2001:db8:100::/56".parse().expect("a prefix"));
    assert_eq!(plan.nft.delegated, [delegated].into());
}

#[test]
fn without_the_setting_nothing_is_announced_or_set() {
    let mut fixture = fixture();
    fixture.network.ipv6 = None;
    delegate(&mut fixture, "wan0", "2001:db8:100::/56", 1000);
    let plan = fixture.compiled().plan;
    assert_eq!((plan.lan_ipv6, plan.addresses.len(), plan.nft.delegated.len()), (None, 0, 0));
}

#[test]
fn a_prefix_is_deprecated_with_its_uplink_and_only_then() {
    let mut fixture = fixture();
    fixture.network.uplinks.push(UplinkSettings {
        number: leg(2),
        interface: "wan1".into(),
        ..UplinkSettings::default()
    });
    fixture.link("wan1", 8).default_route("wan1", "2001:db8:fffe::1");
    delegate(&mut fixture, "wan0", "2001:db8:100::/56", 1000);
    delegate(&mut fixture, "wan1", "2001:db8:200::/56", 1000);
    let preferred = |fixture: &Fixture| -> Vec<bool> {
        prefixes(&fixture.compiled().plan, "lan0").iter().map(|prefix| prefix.is_preferred).collect()
    };
    assert_eq!(preferred(&fixture), [true, true]);
    fixture.facts.links.get_mut("wan0").expect("wan0").up = false;
    assert_eq!(preferred(&fixture), [false, true]);
    assert!(sets(&fixture.compiled().plan, "lan0", "2001:db8:100::1/64"), "connections continue");
    fixture.facts.default_routes.retain(|route| !route.ipv6);
    assert_eq!(preferred(&fixture), [false, false]);
    assert!(!fixture.compiled().plan.lan_ipv6.expect("IPv6").is_router);
}

#[test]
fn prefixes_that_have_ended_or_lost_their_uplink_are_gone() {
    let mut fixture = fixture();
    delegate(&mut fixture, "wan0", "2001:db8:100::/56", 0);
    delegate(&mut fixture, "wan9", "2001:db8:200::/56", 1000);
    let plan = fixture.compiled().plan;
    assert_eq!((prefixes(&plan, "lan0"), plan.addresses.len()), (&[][..], 0));
}

#[test]
fn an_address_of_an_administrator_is_announced_and_left_alone() {
    let mut fixture = fixture();
    let prefix = Some("fd77::/64".parse().expect("a prefix"));
    fixture.network.ipv6 = Some(LanIpv6Settings { prefix, ..LanIpv6Settings::default() });
    fixture.address("lan0", "fd77::5/64");
    let plan = fixture.compiled().plan;
    assert_eq!(
        prefixes(&plan, "lan0")[0].address,
        "fd77::5".parse::<std::net::Ipv6Addr>().expect("an address")
    );
    assert_eq!(plan.addresses.len(), 0);
}

/// A hostile uplink delegates what the traffic of hosts is for, so that it would count as LAN.
#[test]
fn hostile_delegation_is_refused_and_reported() {
    let prefixes = |net: &str, trusted: bool| {
        let mut fixture = fixture();
        fixture.network.ipv6.as_mut().expect("IPv6").trust_delegation = trusted;
        fixture.network.resolvers = vec!["2001:db8:53::53".parse().expect("an address")];
        fixture.network.uplinks[0].probe_targets = vec!["2001:db8:77::1".parse().expect("an address")];
        fixture.facts.endpoints.insert("vpn.example:51820".into(), "[2001:db8:99::9]:51820".parse().unwrap());
        delegate(&mut fixture, "wan0", net, 1000);
        let compiled = fixture.compiled();
        let findings = compiled.findings.iter().filter(|finding| finding.code == "delegated_prefix_refused");
        (
            compiled.plan.nft.delegated.len(),
            findings.map(|finding| finding.message.clone()).collect::<String>(),
        )
    };
    let always = [
        ("2606:4700:4700::/56", "holds a resolver"),
        ("2001:db8:53::/56", "holds a resolver, 2001:db8:53::53"),
        ("2001:db8:77::/56", "holds a target of probes"),
        ("2001:db8:99::/56", "holds the endpoint of a tunnel"),
        ("fe80::/56", "is no prefix for hosts"),
        ("ff05::/56", "is no prefix for hosts"),
        ("::ffff:0:0/64", "is no prefix for hosts"),
    ];
    for (net, why) in always {
        for trusted in [false, true] {
            let (used, message) = prefixes(net, trusted);
            assert!(used == 0 && message.contains(why), "{net}: {message}");
            assert!(!message.contains("trust_delegation"), "{message}");
        }
    }
    let unless_trusted = [
        ("2001:db8:100::/47", "is shorter than /48"),
        ("2a00:1450:4001:800::/56", "is a network of Google"),
        ("2600:1f18::/36", "is shorter than /48"),
        ("2600:1f18:1000::/48", "is a network of Amazon"),
        ("2620:0:862:100::/56", "is a network of Wikimedia"),
        ("2001:7fd::/48", "is a network of root name servers"),
        // A network with a well-known resolver, but not its address.
        ("2a07:a8c0:1::/56", "is a network of public resolvers"),
    ];
    for (net, why) in unless_trusted {
        let (used, message) = prefixes(net, false);
        assert!(used == 0 && message.contains(why), "{net}: {message}");
        assert!(message.contains("network.ipv6.trust_delegation"), "the remedy: {message}");
        assert_eq!(prefixes(net, true), (1, String::new()), "{net}");
    }
    assert_eq!(prefixes("2001:db8:100::/56", false), (1, String::new()));
    assert_eq!(prefixes("fd12:3456:789a:100::/56", false), (1, String::new()));
}

/// The rest of a delegated prefix is no LAN: its traffic goes by the policies.
#[test]
fn only_the_64s_that_lans_have_count_as_lan() {
    let mut fixture = fixture();
    delegate(&mut fixture, "wan0", "2001:db8:100::/56", 1000);
    let address = |plan: &Plan| plan.addresses.keys().map(|key| key.address.to_string()).collect::<Vec<_>>();
    assert_eq!(address(&fixture.compiled().plan), ["2001:db8:100::1/64"]);
    fixture.address("lan0", "2001:db8:100::1/64");
    let plan = fixture.compiled().plan;
    let within: ipnet::IpNet = "2001:db8:100::/56".parse().expect("a prefix");
    let local: Vec<String> =
        plan.dataplane.locals.keys().filter(|net| within.contains(*net)).map(ToString::to_string).collect();
    assert_eq!(local, ["2001:db8:100::/64", "2001:db8:100::1/128"]);
}
