//! Flows, their budget and their legs, by decisions over a plan.

use gateway_common::admission::Admission;
use gateway_common::classify::{Classified, IpPacket, TCP, UDP};
use gateway_common::decide::decide;
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::Verdict;

use proptest::prelude::*;

use super::*;

const TABLET: u8 = 1;
const PHONE: u8 = 2;
/// No known device.
const GUEST: u8 = 3;
const OTHER_GUEST: u8 = 4;

/// One policy over two legs, which flows take in turn, on two LAN interfaces.
fn pool() -> Dataplane {
    let choice = Choice::legs(&[16, 17]);
    let interface = |index| InterfaceKey { slot: 0, index, vlan: 0, _pad: 0 };
    let value = InterfaceValue { rank: RANK_NONE, ..InterfaceValue::default() };
    let all = IpNet::V4(ipnet::Ipv4Net::default());
    let device = |number: u8| DeviceValue {
        rank: RANK_NONE,
        number: number.into(),
        rank_after: RANK_NONE,
        ..DeviceValue::default()
    };
    Dataplane {
        interfaces: [1, 2].map(|index| (interface(index), value)).into(),
        devices_by_mac: [TABLET, PHONE].map(|host| (mac(host).octets(), device(host))).into(),
        lan_sources: [((0, all), SourceKind::Lan as u32)].into(),
        header: PlanValue { all: 0, ..PlanValue::default() },
        actions: vec![ActionValue { v4: choice, v6: choice, policy: 1, ..ActionValue::default() }],
        ..Dataplane::default()
    }
}

fn mac(host: u8) -> Mac {
    Mac::new([2, 0, 0, 0, 0, host])
}

/// The first packet of a flow.
fn packet(host: u8, flow: u32) -> IpPacket {
    let [a, b, c, d] = flow.to_be_bytes();
    IpPacket {
        source: Address::v4([192, 0, 2, host]),
        destination: Address::v4([200 | a, 18, b, c]),
        source_port: 40_000 + u16::from(d),
        mac: mac(host),
        interface: 1,
        protocol: UDP,
        ..IpPacket::default()
    }
}

fn verdict(environment: &PlanMaps<'_>, packet: IpPacket) -> Verdict {
    decide(&Ok(Classified::Ip(packet)), environment)
}

fn is_recorded(environment: &PlanMaps<'_>, packet: &IpPacket) -> bool {
    environment.flows.borrow().contains_key(&flow_key(packet))
}

/// Opens so many flows of a host, from a number on.
fn open(environment: &PlanMaps<'_>, host: u8, flows: std::ops::Range<u32>) {
    for flow in flows {
        verdict(environment, packet(host, flow));
    }
}

const SECOND: u64 = 1_000_000_000;
/// In nanoseconds.
const WINDOW: u64 = 1 << WINDOW_SHIFT;

#[test]
fn a_flow_keeps_its_leg_until_it_was_idle_for_too_long() {
    let plan = pool();
    let environment = PlanMaps::new(Some(&plan));
    let leg_at = |seconds: u64| {
        environment.now.set(seconds * SECOND);
        verdict(&environment, packet(TABLET, 0)).leg
    };
    assert_eq!(leg_at(10_000), 16);
    assert_eq!(leg_at(9_990), 16, "by a clock that is behind");
    assert_eq!(leg_at(10_250), 16);
    assert_eq!(leg_at(10_500), 16, "each packet counts");
    assert_eq!(leg_at(10_900), 17, "another flow with the same ports");
}

#[test]
fn an_unanswered_attempt_leaves_its_leg_to_no_later_connection() {
    let plan = pool();
    let environment = PlanMaps::new(Some(&plan));
    let leg_at = |seconds: u64, opening: bool| {
        environment.now.set(seconds * SECOND);
        verdict(&environment, IpPacket { protocol: TCP, opening, ..packet(TABLET, 0) }).leg
    };
    let attempt = [100, 101, 102, 105].map(|seconds| leg_at(seconds, true));
    assert_eq!(attempt, [16; 4], "one attempt, repeated");
    assert_eq!(leg_at(110, true), 17, "another connection with the same ports");
    assert_eq!([leg_at(110, false), leg_at(400, false)], [17; 2], "it is answered and goes on");
    assert_eq!(leg_at(401, true), 16);
}

#[test]
fn budget_of_a_device_bounds_its_records_and_no_other_device() {
    let plan = pool();
    let environment = PlanMaps::new(Some(&plan));
    open(&environment, TABLET, 0..3 * FLOW_BUDGET);
    assert_eq!(environment.flows.borrow().len(), FLOW_BUDGET as usize);
    for host in [PHONE, GUEST] {
        let phone = packet(host, 7);
        assert!(verdict(&environment, phone).admission == Admission::Admitted);
        assert!(is_recorded(&environment, &phone));
    }
    // The next window has a budget of its own.
    environment.now.set(WINDOW);
    open(&environment, TABLET, 10 * FLOW_BUDGET..13 * FLOW_BUDGET);
    assert_eq!(environment.flows.borrow().len(), 2 * FLOW_BUDGET as usize + 2);
}

#[test]
fn budget_is_shared_by_the_unknown_hosts_of_an_interface() {
    let plan = pool();
    let environment = PlanMaps::new(Some(&plan));
    open(&environment, GUEST, 0..FLOW_BUDGET);
    assert!(verdict(&environment, packet(OTHER_GUEST, 0)).admission.is_refused());
    let elsewhere = IpPacket { interface: 2, ..packet(OTHER_GUEST, 0) };
    assert_eq!(verdict(&environment, elsewhere).admission, Admission::Admitted);
}

#[test]
fn flow_with_a_record_is_never_refused() {
    let plan = pool();
    let environment = PlanMaps::new(Some(&plan));
    let first = packet(TABLET, 0);
    let leg = verdict(&environment, first).leg;
    open(&environment, TABLET, 1..2 * FLOW_BUDGET);
    assert_eq!(verdict(&environment, first).leg, leg);
    // Another plan, then a flow that was idle for too long: the record is written over.
    environment.generation.set(2);
    let continued = verdict(&environment, first);
    assert_eq!((continued.leg, continued.new, continued.admission), (leg, true, Admission::Admitted));
    let counted = environment.new_flows.borrow()[&u32::from(TABLET)];
    environment.now.set(6 * WINDOW);
    let idle = verdict(&environment, first);
    assert_eq!((idle.new, idle.admission), (true, Admission::Admitted));
    assert_eq!(environment.new_flows.borrow()[&u32::from(TABLET)], counted, "it takes nothing of the budget");
}

#[test]
fn split_flow_beyond_the_budget_keeps_one_leg() {
    let plan = pool();
    let environment = PlanMaps::new(Some(&plan));
    open(&environment, TABLET, 0..2 * FLOW_BUDGET);
    let flows: Vec<IpPacket> = (0..64).map(|flow| packet(TABLET, 3 * FLOW_BUDGET + (flow << 8))).collect();
    let legs = || -> Vec<u8> { flows.iter().map(|flow| verdict(&environment, *flow).leg).collect() };
    let (first, turns) = (legs(), environment.turns.borrow().clone());
    assert!([16, 17].iter().all(|leg| first.contains(leg)), "flows are spread over all legs: {first:?}");
    for generation in 2..6 {
        assert_eq!(legs(), first, "generation {generation}");
        environment.generation.set(generation);
    }
    assert!(flows.iter().all(|flow| !is_recorded(&environment, flow)));
    assert_eq!(*environment.turns.borrow(), turns, "a flow without a record takes no turn");
    // With a new budget they get a record, and the leg that they had.
    environment.now.set(WINDOW);
    assert_eq!(legs(), first);
    assert!(flows.iter().all(|flow| is_recorded(&environment, flow)));
    environment.now.set(2 * WINDOW);
    assert_eq!(legs(), first);
}

#[test]
fn link_scope_traffic_takes_nothing_of_the_budget() {
    let all = "224.0.0.0/4".parse().expect("a network");
    let plan = Dataplane { locals: [(all, LocalValue::new(LocalKind::Link))].into(), ..pool() };
    let environment = PlanMaps::new(Some(&plan));
    let multicast = IpPacket { destination: Address::v4([224, 0, 0, 251]), ..packet(TABLET, 0) };
    assert_eq!(verdict(&environment, multicast).admission, Admission::Pending);
    assert!(environment.new_flows.borrow().is_empty());
}

#[test]
fn flow_beyond_the_budget_goes_on_under_what_its_client_learned() {
    let choice = Choice::legs(&[18]);
    let mut plan = pool();
    plan.header = PlanValue { all: 1, flags: plan_flags::DOMAINS, ..PlanValue::default() };
    plan.actions.insert(0, ActionValue { v4: choice, v6: choice, policy: 2, ..ActionValue::default() });
    let environment = PlanMaps::new(Some(&plan));
    environment.now.set(WINDOW);
    let flow = packet(TABLET, u32::MAX >> 8);
    let client = ClientKey::new(TABLET.into(), flow.mac, &flow.source);
    let fqdn_ip = FqdnIpValue { rank: 0, until: 1 };
    environment.domains.borrow_mut().insert((client, flow.destination), fqdn_ip);
    assert_ne!(verdict(&environment, flow).leg, 18, "the answer has expired for a new flow");
    open(&environment, TABLET, 0..2 * FLOW_BUDGET);
    let beyond = IpPacket { source_port: 9, ..flow };
    assert_eq!(verdict(&environment, beyond).leg, 18);
}

/// Networks and addresses in a small space, so that they meet.
fn any_net() -> impl Strategy<Value = IpNet> {
    (any::<[u8; 2]>(), 0..=32u8, any::<bool>()).prop_map(|([low, lower], length, ipv6)| {
        let net = if ipv6 {
            let address = u128::from(low & 3) << 126 | u128::from(lower);
            IpNet::new(IpAddr::V6(address.into()), length * 4)
        } else {
            IpNet::new(Ipv4Addr::new(low & 0x81, 0, low & 3, lower).into(), length)
        };
        net.expect("a valid length").trunc()
    })
}

proptest! {
    #[test]
    fn the_longest_prefix_is_found_as_by_trying_each_length(
        nets in prop::collection::btree_map((0..3u16, any_net()), any::<u32>(), 0..60),
        probe in any_net(),
    ) {
        let address = probe.addr();
        let of = |net: IpNet| nets.get(&(1, net)).copied();
        let lengths = (0..=probe.max_prefix_len()).rev();
        let expected = lengths.filter_map(|length| IpNet::new(address, length).ok()).find_map(|net| of(net.trunc()));
        prop_assert_eq!(longest_of(&nets, 1, address), expected);
        let plain = nets.iter().filter(|((of, _), _)| *of == 1).map(|((_, net), value)| (*net, *value)).collect();
        prop_assert_eq!(longest(&plain, address), expected);
        let lists = nets.iter().map(|((list, net), value)| ((*list, 443, *net), *value)).collect();
        let plan = Dataplane { list_ports: lists, ..Dataplane::default() };
        let slot = slot_of_list(SLOT, 1) as u16;
        prop_assert_eq!(destination_port(&plan, slot, 443, address), expected);
    }
}
