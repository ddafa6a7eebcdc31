//! Interfaces of the host in the plan.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_common::decide::has_own_interface;
use gateway_common::guard::{Departure, LocalAddresses, arrive, guard};
use gateway_common::leg_selection::FIRST_TUNNEL;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::wire::{
    Address, InterfaceKey, LocalKind, LocalValue, Mark, Prefix4, Prefix6, SharedAddressKey,
};
use gateway_core::facts::{Link, LinkLayer};
use gateway_core::network::UplinkSettings;
use gateway_core::plan::{Attachment, Family, RuleAction, names};
use gateway_core::plan_maps::PlanMaps;
use ipnet::IpNet;
use proptest::prelude::*;

use crate::fixture::{Fixture, leg};

#[test]
fn every_lan_interface_is_prohibited_in_both_families_however_many_there_are() {
    let mut fixture = Fixture::new();
    fixture.network.lan = (0..500).map(|number| format!("lan{number}")).collect();
    let compiled = fixture.compiled();
    let rules = &compiled.plan.rules;
    for family in [Family::V4, Family::V6] {
        let prohibited: BTreeSet<_> = rules
            .iter()
            .filter(|(key, value)| key.family == family && value.action == RuleAction::Prohibit)
            .filter_map(|(_, value)| value.input_interface.clone())
            .collect();
        assert_eq!(prohibited, fixture.network.lan.iter().cloned().collect());
    }
    assert!(rules.keys().all(|key| (names::RULE_FIRST..=names::RULE_LAST).contains(&key.priority)));
}

/// VLANs of `lan0`: a LAN interface, an uplink, one that is neither, and one without an interface.
#[test]
fn the_parent_leaves_vlans_alone_that_have_a_program_of_their_own() {
    let mut fixture = Fixture::new();
    fixture.network.lan.push("lan0.20".to_owned());
    fixture.network.uplinks.push(UplinkSettings {
        number: self::leg(2),
        interface: "lan0.40".into(),
        ..UplinkSettings::default()
    });
    fixture
        .vlan_link("lan0.20", 20, "lan0", 20)
        .vlan_link("lan0.40", 40, "lan0", 40)
        .vlan_link("lan0.50", 50, "lan0", 50);
    let plan = fixture.compiled().plan;
    let parent = fixture.facts.links["lan0"].index;
    let maps = PlanMaps::new(Some(&plan.dataplane));
    let left_alone = |tag, index| has_own_interface(tag, index, &maps);
    assert_eq!(
        [20, 0x6000 | 20, 40, 50, 60, 0].map(|tag| left_alone(tag, parent)),
        [true, true, true, false, false, false]
    );
    assert!(!left_alone(20, 20));
    assert!(!has_own_interface(20, parent, &PlanMaps::default()), "without a plan nothing is left alone");
    for (name, attachment) in
        [("lan0.20", Attachment::Ingress), ("lan0.40", Attachment::Guard), ("lan0.50", Attachment::Guard)]
    {
        assert_eq!(plan.attach[name], attachment, "{name}");
    }
    for vlan in [0, 20] {
        let own = plan.dataplane.interfaces[&InterfaceKey { slot: 0, index: 20, vlan, _pad: 0 }];
        assert_eq!(own.vlan, 20, "policies of the VLAN match, whether its tag is gone or not");
    }
}

/// VLANs of the uplink `wan0`: a LAN interface, another uplink, one that is neither, ports of a LAN bridge and of one without
/// an address, the link of a PPPoE session, and one that has no guard of its own because a MACVLAN is above it.
#[test]
fn an_uplink_leaves_its_vlans_alone_if_they_have_programs() {
    let mut fixture = Fixture::new();
    fixture.network.lan.extend(["wan0.20", "br1", "macvlan0"].map(str::to_owned));
    let tagged = UplinkSettings { number: leg(2), interface: "wan0.40".into(), ..UplinkSettings::default() };
    fixture.network.uplinks.push(tagged);
    fixture
        .link("br1", 19)
        .link("ppp0", 18)
        .link("iptv", 17)
        .link("macvlan0", 16)
        .vlan_link("wan0.20", 20, "wan0", 20)
        .vlan_link("wan0.40", 40, "wan0", 40)
        .vlan_link("wan0.50", 50, "wan0", 50)
        .vlan_link("wan0.60", 60, "wan0", 60)
        .vlan_link("wan0.70", 70, "wan0", 70)
        .vlan_link("wan0.80", 80, "wan0", 80)
        .vlan_link("wan0.90", 90, "wan0", 90)
        .address("wan0.50", "192.168.50.1/24")
        .address("wan0.90", "192.168.90.1/24");
    let mut change = |name: &str, change: fn(&mut Link)| {
        change(fixture.facts.links.get_mut(name).expect("just made"));
    };
    change("wan0.60", |link| link.master = Some("br1".to_owned()));
    for bridge in ["br1", "iptv"] {
        change(bridge, |link| link.kind = "bridge".to_owned());
    }
    change("wan0.80", |link| link.master = Some("iptv".to_owned()));
    change("macvlan0", |link| link.lower = Some("wan0.90".to_owned()));
    change("ppp0", |link| (link.kind, link.link_layer) = ("ppp".to_owned(), LinkLayer::Other));
    let plan = fixture.compiled().plan;
    let parent = fixture.facts.links["wan0"].index;
    let maps = PlanMaps::new(Some(&plan.dataplane));
    assert_eq!(
        [20, 40, 50, 60, 80, 70, 90, 99, 0].map(|tag| has_own_interface(tag, parent, &maps)),
        [true, true, true, true, true, false, false, false, false]
    );
    for (name, attachment) in [
        ("wan0", Attachment::Guard),
        ("wan0.20", Attachment::Ingress),
        ("wan0.40", Attachment::Guard),
        ("wan0.50", Attachment::Guard),
        ("br1", Attachment::Ingress),
    ] {
        assert_eq!(plan.attach[name], attachment, "{name}");
    }
}

/// VLANs of a VLAN without an address: nothing is routed to the one between, whose parent has the guard.
#[test]
fn a_guarded_parent_leaves_vlans_alone_that_have_only_vlans_above() {
    let mut fixture = Fixture::new();
    fixture.network.lan.extend(["eth9.1.2", "eth9.3"].map(str::to_owned));
    fixture
        .link("eth9", 9)
        .address("eth9", "192.168.100.2/24")
        .vlan_link("eth9.1", 11, "eth9", 1)
        .vlan_link("eth9.1.2", 12, "eth9.1", 2)
        .vlan_link("eth9.3", 13, "eth9", 3);
    let of_tags = |fixture: &Fixture| {
        let plan = fixture.compiled().plan;
        let maps = PlanMaps::new(Some(&plan.dataplane));
        let own = [(1, 9), (3, 9), (2, 11)].map(|(tag, parent)| has_own_interface(tag, parent, &maps));
        (plan.attach.get("eth9").copied(), own)
    };
    assert_eq!(of_tags(&fixture), (Some(Attachment::Guard), [true; 3]));
    // The guard of eth9 does not tell the packets of a MACVLAN of a VLAN from those of the VLAN.
    fixture.link("macvlan0", 16);
    fixture.facts.links.get_mut("macvlan0").expect("just made").lower = Some("eth9.1".to_owned());
    fixture.network.lan.push("macvlan0".to_owned());
    assert_eq!(of_tags(&fixture), (None, [false, true, true]));
}

/// The port of a LAN bridge may be a VLAN of another LAN interface.
#[test]
fn a_lan_interface_leaves_ports_of_lan_bridges_alone() {
    let mut fixture = Fixture::new();
    fixture.network.lan.push("br1".to_owned());
    fixture.link("br1", 19).vlan_link("lan0.60", 60, "lan0", 60);
    fixture.facts.links.get_mut("lan0.60").expect("just made").master = Some("br1".to_owned());
    let plan = fixture.compiled().plan;
    let parent = fixture.facts.links["lan0"].index;
    assert!(has_own_interface(60, parent, &PlanMaps::new(Some(&plan.dataplane))));
}

#[test]
fn nftables_gets_the_marks_of_each_egress_and_the_addresses_of_each_tunnel() {
    let mut fixture = Fixture::new();
    fixture.tunnel_with("a", &["10.66.1.2/32", "fd66:1::2/128"]);
    let nft = fixture.compiled().plan.nft;
    let marks: BTreeSet<_> = nft.egress.iter().map(|(mark, interface)| (*mark, interface.as_str())).collect();
    assert!(
        marks.contains(&(Mark::DIRECT.0, "wan0")) && marks.contains(&(Mark::leg(1).0, "wan0")),
        "{marks:?}"
    );
    let tunnel = nft.tunnels[0].as_str();
    let of_the_tunnel: Vec<_> = marks.iter().filter(|(_, interface)| *interface == tunnel).collect();
    assert_eq!(of_the_tunnel, [&(Mark::leg(16).0, tunnel)]);
    let sources: BTreeSet<_> = nft.sources.iter().map(|(_, address)| address.to_string()).collect();
    assert_eq!(sources, ["10.66.1.2".to_owned(), "fd66:1::2".to_owned()].into());
}

/// A tunnel that comes up gets its address by the plan, before it is observed; one that was deleted still has it.
#[test]
fn addresses_of_tunnels_are_known_before_and_after_their_leg() {
    let mut fixture = Fixture::new();
    fixture.tunnel_with("a", &["10.9.0.2/32", "fd09::2/128"]);
    let addresses: [IpNet; 2] = ["10.9.0.2/32", "fd09::2/128"].map(|net| net.parse().expect("a network"));
    fixture.facts.links.remove("wg-a");
    fixture.facts.addresses.remove("wg-a");
    let of_leg = LocalValue::of_leg(LocalKind::Forbidden, 16);
    for address in addresses {
        assert_eq!(fixture.compiled().plan.dataplane.locals.get(&address), Some(&of_leg), "{address}");
    }
    let mut fixture = Fixture::new();
    fixture.link("wg-a", 9).address("wg-a", "10.9.0.2/32").address("wg-a", "fd09::2/128");
    fixture.facts.links.get_mut("wg-a").expect("just made").kind = "tun".to_owned();
    let left_behind = LocalValue::new(LocalKind::Forbidden);
    for address in addresses {
        assert_eq!(fixture.compiled().plan.dataplane.locals.get(&address), Some(&left_behind), "{address}");
    }
}

/// Addresses of a plan, as the guard looks them up.
struct PlanAddresses<'a>(PlanMaps<'a>);

impl LocalAddresses for PlanAddresses<'_> {
    fn find(&self, address: &Address) -> LocalValue {
        let found = if address.is_mapped() {
            self.0.local4(&Prefix4 { slot: 1, address: address.last() })
        } else {
            self.0.local6(&Prefix6 { slot: 1, address: *address })
        };
        found.unwrap_or(LocalValue::NONE)
    }

    fn is_shared(&self, leg: u32, address: &Address) -> bool {
        self.0.is_shared(&SharedAddressKey { slot: 1, leg, address: *address })
    }
}

/// Each tunnel has some of five addresses, so several have the same: packets to an address of a tunnel pass by that tunnel,
/// and by no other interface, and so do packets of this host from it.
fn check_tunnels(tunnels: &[BTreeSet<u8>]) {
    let mut fixture = Fixture::new();
    let address = |number: u8| -> IpAddr {
        if number < 3 {
            [10, 9, 0, number + 2].into()
        } else {
            [0xfd09, 0, 0, 0, 0, 0, 0, u16::from(number)].into()
        }
    };
    for (index, numbers) in tunnels.iter().enumerate() {
        let texts: Vec<String> =
            numbers.iter().map(|number| IpNet::from(address(*number)).to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        fixture.tunnel_with(&format!("t{index}"), &texts);
    }
    let compiled = fixture.compiled();
    let plan = &compiled.plan;
    let known = PlanAddresses(PlanMaps::new(Some(&plan.dataplane)));
    for number in 0..5 {
        let at = Address::from(address(number));
        let has = |leg: u8| {
            let index = leg.checked_sub(FIRST_TUNNEL).map(usize::from);
            index.and_then(|index| tunnels.get(index)).is_some_and(|numbers| numbers.contains(&number))
        };
        let is_known = tunnels.iter().any(|numbers| numbers.contains(&number));
        for leg in (0..3).chain(FIRST_TUNNEL..FIRST_TUNNEL + 5) {
            let arrives = arrive(leg.into(), &at, &known).is_ok();
            assert_eq!(arrives, !is_known || has(leg), "to {} by leg {leg}", address(number));
            let departure = Departure {
                ingress: 0,
                mark: 0,
                ipv6: number >= 3,
                source: Some(at),
                leg: leg.into(),
                no_plan: false,
            };
            assert_eq!(
                guard(&departure, None, &known).is_ok(),
                has(leg),
                "from {} by {leg}",
                address(number)
            );
        }
        // The rules of what this host sends from it: for a bound socket that of its tunnel.
        let source = Some(IpNet::from(address(number)));
        let rules: Vec<_> = plan.rules.values().filter(|rule| rule.source == source).collect();
        let table = |leg: u8| RuleAction::Table(names::TABLE_BASE + u32::from(leg));
        let owners: Vec<u8> = (FIRST_TUNNEL..FIRST_TUNNEL + 5).filter(|leg| has(*leg)).collect();
        assert_eq!(rules.last().map(|rule| &rule.action), owners.first().map(|leg| table(*leg)).as_ref());
        for leg in owners.iter().filter(|_| owners.len() > 1) {
            let interface = compiled.legs.get(self::leg(*leg)).map(|leg| leg.interface.clone());
            let bound = rules.iter().find(|rule| rule.output_interface == interface);
            assert_eq!(bound.map(|rule| &rule.action), Some(&table(*leg)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn tunnels_share_addresses_and_keep_apart(
        tunnels in prop::collection::vec(prop::collection::btree_set(0u8..5, 1..4), 1..5),
    ) {
        check_tunnels(&tunnels);
    }
}

#[test]
fn tunnel_with_an_address_of_the_lan_or_of_this_host_is_refused() {
    let refused = |address: &str| {
        let mut fixture = Fixture::new();
        fixture.tunnel_with("a", &["10.9.0.2/32", address]);
        let compiled = fixture.compiled();
        let is_set = compiled.plan.addresses.keys().any(|key| key.interface == "wg-a");
        let leg = compiled.legs.tunnel("a").expect("a leg");
        assert_eq!(leg.usable, is_set, "{address}");
        leg.reason.clone()
    };
    let own = "198.51.100.2/32";
    for (address, why) in [
        ("192.168.1.7/32", "is of the network of lan0"),
        ("192.168.1.1/32", "is this host's own on lan0"),
        ("fd00:1::7/128", "is of the network of lan0"),
        (own, "is this host's own on wan0"),
        ("198.51.100.1/32", "is the address of a router"),
    ] {
        let reason = refused(address);
        assert!(reason.contains(why) && reason.contains(address.split('/').next().unwrap()), "{reason}");
    }
    assert_eq!(refused("10.9.0.3/32"), "");
}
