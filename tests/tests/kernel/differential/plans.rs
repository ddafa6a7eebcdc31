//! Plans over a small vocabulary, so that packets match them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::guard::DISABLED_LEG;
use gateway_common::leg_selection::spread;
use gateway_common::wire::*;
use gateway_core::indexes::{LegId, Rank};
use gateway_core::plan::{Dataplane, DomainRule};
use gateway_model::kinds::policy_source::DomainPattern;
use gateway_tests::bpf_run::admit_all;
use ipnet::IpNet;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

/// Ranks of a plan.
const RANKS: u32 = 12;

/// Returns an address of the small vocabulary.
pub(crate) fn address(ipv6: bool, a: u8, b: u8) -> IpAddr {
    // Few values, with neighbours that differ in one bit.
    let (a, b) = (a & 0x3, b & 0x7);
    if ipv6 {
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, u16::from(a), 0, 0, 0, 0, u16::from(b)))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, a, 0, b))
    }
}

pub(crate) fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n & 0x7]
}

pub(crate) const PORTS: [u16; 9] = [22, 53, 80, 123, 443, 853, 0x5300, 3478, 5353];
/// Domains of resolvers.
pub(crate) const RESOLVERS: [&str; 2] = ["doh.example.com", "dns.example.org"];
pub(crate) const VLANS: [u16; 4] = [1, 7, 0x700, 4094];

fn rank() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..RANKS, 1 => Just(RANK_NONE)]
}

fn net() -> impl Strategy<Value = IpNet> {
    (any::<bool>(), any::<u8>(), any::<u8>(), 0u8..=128).prop_map(|(ipv6, a, b, length)| {
        let longest = if ipv6 { 128 } else { 32 };
        // Half of the prefixes are long enough to distinguish the addresses of the vocabulary.
        let length = if length > longest { longest - length % 8 } else { length };
        IpNet::new(address(ipv6, a, b), length).expect("a length that fits").trunc()
    })
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::DROP),
        Just(Choice::REJECT),
        Just(Choice::DIRECT),
        vec((1u8..=20, 1u32..=20), 1..5).prop_map(|legs| spread(&legs)),
        (vec((0u8..=20, 1u32..=20), 1..5), 0u8..4).prop_map(|(legs, proxy)| spread(&legs).to_proxy(proxy)),
        // Values that no compiler writes: the program must decide on them like the function does.
        (any::<u8>(), any::<u8>(), any::<u8>(), any::<[u8; 16]>())
            .prop_map(|(kind, count, kept, legs)| Choice { kind, count, kept, proxy: kept ^ count, legs }),
        // Few legs, so that flows arrive with one that is only kept.
        (vec(1u8..=20, 1..4), vec(1u8..=20, 0..12))
            .prop_map(|(new, kept)| Choice::legs(&new).with_draining_legs(&kept)),
    ]
}

fn actions() -> impl Strategy<Value = Vec<ActionValue>> {
    let rest = (0u8..6, any::<bool>());
    let rest = rest.prop_map(|(kind, udp)| if udp { kind | PROXY_TAKES_UDP } else { kind });
    let action = (choice(), choice(), 0u8..4, rest, any::<[u8; 3]>());
    let deadlines = vec((deadline(), deadline()), 5);
    (vec(action, RANKS as usize), deadlines).prop_map(|(actions, deadlines)| {
        let numbered = (1u32..).zip(actions);
        numbered
            .map(|(policy, (v4, v6, sticky, rest, fallback))| ActionValue {
                v4,
                v6,
                policy,
                sticky,
                rest,
                lasting4: sticky,
                lasting6: rest & 3,
                until: deadlines[policy as usize % deadlines.len()].0,
                kept_until: deadlines[policy as usize % deadlines.len()].1,
                fallback4: fallback[0] % 4,
                fallback6: fallback[1] % 4,
                fallback_rest: fallback[2] % 4,
                _pad: 0,
            })
            .collect()
    })
}

/// Returns no end, one in the past, or one far in the future.
fn deadline() -> impl Strategy<Value = u32> {
    prop_oneof![8 => Just(0u32), 1 => Just(1u32), 1 => Just(u32::MAX)]
}

/// Returns list indexes, including the largest one.
fn list() -> impl Strategy<Value = u16> {
    prop_oneof![8 => 1u16..4, 1 => Just(LISTS as u16)]
}

fn devices() -> impl Strategy<Value = (BTreeMap<[u8; 6], DeviceValue>, BTreeMap<IpAddr, DeviceValue>)> {
    let flags = || {
        prop_oneof![5 => Just(0u32), 1 => Just(device_flags::NO_LAN), 4 => 0u32..4096, 2 => 0u32..1 << 16,
            1 => Just(device_flags::OWN_CLASS)]
    };
    let list = || prop_oneof![1 => Just(0u32), 1 => list().prop_map(u32::from)];
    let value = || {
        (rank(), 1u32..9, flags(), list(), deadline(), rank()).prop_map(
            |(rank, number, flags, list, until, rank_after)| DeviceValue {
                rank,
                number,
                flags: flags | list << LIST_SHIFT,
                until,
                rank_after,
            },
        )
    };
    let macs = btree_map(any::<u8>().prop_map(mac), value(), 0..6);
    let addresses = (any::<bool>(), any::<u8>(), any::<u8>()).prop_map(|(six, a, b)| address(six, a, b));
    (macs, btree_map(addresses, value(), 0..4))
}

fn locals() -> impl Strategy<Value = BTreeMap<IpNet, LocalValue>> {
    let long = (any::<bool>(), any::<u8>(), any::<u8>(), 0u8..3).prop_map(|(ipv6, a, b, cut)| {
        let longest = if ipv6 { 128 } else { 32 };
        IpNet::new(address(ipv6, a, b), longest - cut).expect("a length that fits").trunc()
    });
    btree_map(long, (0u16..5, 0u16..20).prop_map(|(kind, leg)| LocalValue { kind, leg }), 0..5)
}

/// Returns legs that have an address of another leg, too.
fn shared_addresses() -> impl Strategy<Value = BTreeSet<(LegId, IpAddr)>> {
    let shared = (1u8..20, any::<bool>(), any::<u8>(), any::<u8>());
    btree_set(
        shared.prop_map(|(leg, ipv6, a, b)| (LegId::new(leg).expect("a leg"), address(ipv6, a, b))),
        0..8,
    )
}

/// Returns flags of an interface: mostly none.
fn interface_flags() -> impl Strategy<Value = u16> {
    let one =
        [device_flags::NO_LAN, device_flags::NO_INTERNET, device_flags::POLICY_ONLY, device_flags::NO_ADMIN];
    let flags = prop::sample::subsequence(one.to_vec(), 0..=4).prop_map(|all| all.iter().sum::<u32>());
    prop_oneof![3 => Just(0), 1 => flags.prop_map(|flags| u16::try_from(flags).expect("low bits"))]
}

fn interfaces() -> impl Strategy<Value = BTreeMap<InterfaceKey, InterfaceValue>> {
    let vlan = prop_oneof![Just(0u16), prop::sample::select(VLANS.to_vec())];
    let key = vlan.prop_map(|vlan| InterfaceKey { slot: 0, index: 1, vlan, _pad: 0 });
    let value = || {
        (
            rank(),
            prop_oneof![3 => Just(0u16), 1 => Just(7u16)],
            prop_oneof![9 => 0u16..3, 1 => Just(OWN_INTERFACE)],
            interface_flags(),
            interface_flags(),
        )
            .prop_map(|(rank, vlan, scope, flags, default_flags)| InterfaceValue {
                rank,
                vlan,
                scope,
                flags,
                default_flags,
            })
    };
    let plain = prop_oneof![9 => value().prop_map(Some), 1 => Just(None)];
    (btree_map(key, value(), 0..4), plain).prop_map(|(mut interfaces, plain)| {
        let untagged = InterfaceKey { slot: 0, index: 1, vlan: 0, _pad: 0 };
        if let Some(value) = plain {
            interfaces.insert(untagged, value);
        }
        interfaces
    })
}

/// Returns sources of each scope: mostly everything, with exceptions of all kinds.
fn lan_sources() -> impl Strategy<Value = BTreeMap<(u16, IpNet), u32>> {
    let all = prop::bool::weighted(0.9);
    (vec(all, 6), btree_map((0u16..3, net()), 0u32..5, 0..6)).prop_map(|(all, mut sources)| {
        for (scope, with) in (0u16..3).zip(all.chunks(2)) {
            for (net, with) in ["0.0.0.0/0", "::/0"].into_iter().zip(with) {
                if *with {
                    sources.insert((scope, net.parse().expect("a network")), SourceKind::Lan as u32);
                }
            }
        }
        sources
    })
}

pub(crate) fn stamp() -> impl Strategy<Value = (u32, u32)> {
    let mark = prop_oneof![
        (0u8..22).prop_map(|leg| Mark::leg(leg).0),
        (0u8..4, 0u8..22, any::<bool>()).prop_map(|(proxy, leg, silent)| Mark::proxy(proxy, leg, silent).0),
        (0u8..22).prop_map(|leg| Mark::carried_by(leg).0),
        (0u8..22).prop_map(|leg| Mark::arrived_by(leg).0),
        Just(Mark::DIRECT.0),
        Just(Mark::LOCAL.0),
        Just(Mark::REJECT.0),
        Just(Mark::PROHIBIT.0),
        Just(Mark::BLOCK.0),
        Just(0u32),
        any::<u32>(),
    ];
    (mark, prop_oneof![Just(0u32), Just(1u32), any::<u32>()])
}

/// Returns addresses of an interface in the small vocabulary.
fn own_addresses(some: bool, a: u8, b: u8) -> EgressAllowValue {
    let (IpAddr::V4(four), IpAddr::V6(six)) = (address(false, a, b), address(true, a, b)) else {
        return EgressAllowValue::default();
    };
    if !some {
        return EgressAllowValue::default();
    }
    EgressAllowValue { v4: u32::from_ne_bytes(four.octets()), v6: Address::v6(six.octets()) }
}

/// Names of the small vocabulary.
pub(crate) const NAMES: [&str; 3] = ["a.example", "x.a.example", "b.example"];

fn domains() -> impl Strategy<Value = Vec<DomainRule>> {
    let pattern = prop::sample::select(vec!["a.example", "b.example", "example"]);
    let device = prop_oneof![3 => Just(None), 1 => (1u32..9).prop_map(Some)];
    let rule = (pattern, 0..RANKS, device).prop_map(|(name, rank, device)| DomainRule {
        pattern: DomainPattern::Suffix(name.to_owned()),
        rank: Rank::of_wire(rank).expect("a rank"),
        device,
    });
    vec(rule, 0..4)
}

/// Returns answers of clients: client, address and name.
pub(crate) fn resolved() -> impl Strategy<Value = (ClientKey, IpAddr, &'static str)> {
    let client = (prop_oneof![Just(0u32), 1u32..9], any::<u8>());
    let to = (any::<bool>(), any::<u8>(), any::<u8>()).prop_map(|(six, a, b)| address(six, a, b));
    (client, to, prop::sample::select(NAMES.to_vec())).prop_map(|((device, n), to, name)| {
        (ClientKey::new(device, Mac::new(mac(n)), &Address::default()), to, name)
    })
}

pub(crate) fn plan() -> impl Strategy<Value = Dataplane> {
    let header = (rank(), prop::bool::weighted(0.2), 0u32..3).prop_map(|(all, strict, sample_every)| {
        (if all > 8 { RANK_NONE } else { all }, strict, sample_every)
    });
    let authorised = btree_map(
        stamp().prop_map(|(mark, index)| EgressAllowKey { mark, index: index.max(1) }),
        (any::<bool>(), any::<u8>(), any::<u8>()).prop_map(|(some, a, b)| own_addresses(some, a, b)),
        0..12,
    );
    let leg = prop_oneof![9 => 0u32..20, 1 => Just(DISABLED_LEG)];
    let legs = btree_map(1u32..4, leg, 0..3);
    // Administration, time and blocks.
    let blocks = prop_oneof![4 => Just(0u32), 1 => (0u32..256).prop_map(|bits| bits << 4)];
    let doh_servers = btree_map(net(), Just(1u32), 0..6);
    let doh_names = prop::sample::subsequence(RESOLVERS.to_vec(), 0..=RESOLVERS.len());
    let doh_names = doh_names.prop_map(|names| {
        let keys = names.iter().map(|name| (ServerNames::key(name).expect("a key"), (*name).to_owned()));
        keys.collect::<BTreeMap<u64, String>>()
    });
    let ports = btree_map((prop::sample::select(PORTS.to_vec()), net()), rank(), 0..6);
    let vlans = btree_map(prop::sample::select(VLANS.to_vec()), rank(), 0..3);
    let nets = || btree_map(net(), rank(), 0..8);
    let first = (header, interfaces(), vlans, devices(), nets(), nets());
    let port = || prop::sample::select(PORTS.to_vec());
    let lists = (btree_map((list(), net()), rank(), 0..8), btree_map((list(), port(), net()), rank(), 0..6));
    let egress = (authorised, legs, lan_sources(), blocks, (doh_servers, doh_names));
    (first, ports, lists, (locals(), shared_addresses()), domains(), actions(), egress).prop_map(
        |(first, ports, lists, (locals, shared_addresses), domains, actions, egress)| {
            let (authorised, egress_legs, lan_sources, blocks, (doh_servers, doh_names)) = egress;
            let (header, interfaces, vlans, (macs, addresses), sources, destinations) = first;
            let (all, strict, sample_every) = header;
            let strict = if strict { plan_flags::UNMATCHED_REJECT } else { 0 };
            let forced = if sample_every == 1 { plan_flags::FORCED_DNS } else { 0 };
            let flags = strict | forced | blocks | if domains.is_empty() { 0 } else { plan_flags::DOMAINS };
            Dataplane {
                // Any rank, or none.
                header: PlanValue {
                    all,
                    flags,
                    sample_every,
                    admin_port: 80,
                    direct: sample_every,
                    seed: 0,
                    generation: 0,
                },
                interfaces,
                vlans,
                devices_by_mac: macs,
                devices_by_address: addresses,
                sources,
                destinations,
                destination_ports: ports,
                list_destinations: lists.0,
                list_ports: lists.1,
                domains,
                locals,
                shared_addresses,
                actions,
                lan_sources,
                doh_servers,
                doh_names,
                authorised,
                egress_legs,
            }
        },
    )
}

/// Returns one policy for everything, over these weighted legs.
pub(crate) fn pool(legs: &[(u8, u32)]) -> Dataplane {
    let choice = spread(legs);
    let mut plan = Dataplane {
        header: PlanValue { all: 0, ..PlanValue::default() },
        actions: vec![ActionValue { v4: choice, v6: choice, policy: 1, ..ActionValue::default() }],
        ..Dataplane::default()
    };
    admit_all(&mut plan, 1);
    plan
}
