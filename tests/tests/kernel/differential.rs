//! Differential test: generated packets under generated plans, decided by `verdict` in userspace over the plan and by
//! the loaded program over the maps. Both must agree in every case.

pub(crate) mod packets;
pub(crate) mod plans;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use gateway_common::classify::{Classified, IpPacket, Malformed, classify, is_vlan};
use gateway_common::decide::{decide, decide_ip, has_own_interface};
use gateway_common::guard::{self, Departure, LocalAddresses};
use gateway_common::inspect::decide_inspected;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::recorded_verdict::flow_key;
use gateway_common::tagged_frame::{self, outer_tag};
use gateway_common::verdict::{Action, Verdict};
use gateway_common::wire::{
    ActionValue, Address, Choice, ClientKey, EgressAllowKey, FlowKey, FlowValue, FqdnIpKey, FqdnIpValue,
    HelloProgress, LocalValue, Mac, PlanValue, Prefix4, Prefix6, SharedAddressKey, budget_index, flow_flags,
    plan_flags,
};
use gateway_core::dns::Name;
use gateway_core::fqdn_match::fqdn_rank;
use gateway_core::indexes::Rank;
use gateway_core::plan::{Dataplane, DomainRule};
use gateway_core::plan_maps::PlanMaps;
use gateway_ctl::os::bpf::{Entries, Programs};
use gateway_model::domain::DomainName;
use gateway_model::kinds::policy_source::DomainPattern;
use gateway_tests::bpf_run::{Arrival, Run, run};
use gateway_tests::netns::{self, Prefix};
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::kernel::flow_budget::{self, INTERFACE, set_budget};

/// Plans times packets: more than 100 000 cases.
const PLANS: usize = 700;
const PACKETS: usize = 150;
/// Number of plans between two flushes of the flow tables on both sides, long before the kernel would evict entries.
const FLUSH: usize = 50;

const DROPPED: i32 = 2;
const GOES_ON: i32 = -1;

/// Flows and round-robin counters that persist from plan to plan.
#[derive(Default)]
struct Memory {
    flows: BTreeMap<FlowKey, FlowValue>,
    hellos: BTreeMap<FlowKey, HelloProgress>,
    turns: BTreeMap<u32, u64>,
    resolved: BTreeMap<(ClientKey, Address), Vec<Name>>,
}

pub(crate) struct Pins(pub std::path::PathBuf);

impl Drop for Pins {
    fn drop(&mut self) {
        netns::remove_pins(&self.0);
    }
}

#[test]
fn the_program_decides_as_the_function_does() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    let seed: [u8; 32] = match std::env::var("DIFFERENTIAL_SEED") {
        Ok(text) => std::array::from_fn(|i| text.as_bytes().get(i).copied().unwrap_or(0)),
        Err(_) => *b"every packet gets one verdict...",
    };
    println!("seed {:?} (DIFFERENTIAL_SEED overrides it)", String::from_utf8_lossy(&seed));
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let mut memory = Memory::default();
    let mut seen = BTreeMap::<&'static str, usize>::new();
    let (mut cases, mut exceeded, mut completed, mut tagged) = (0, 0, 0, [0; 2]);
    for round in 0..PLANS {
        let plan = plans::plan().new_tree(&mut runner).expect("a plan").current();
        let swap = programs.apply(&plan).expect("the plan goes live");
        if round % FLUSH == 0 {
            programs.delete_flows().expect("flows are forgotten");
            memory.flows.clear();
            memory.hellos.clear();
        }
        for number in plan.actions.iter().map(|action| action.policy) {
            memory.turns.insert(number, programs.round_robin_counter(number).expect("turns"));
        }
        let environment = PlanMaps::new(Some(&plan));
        environment.generation.set(swap.generation);
        environment.since_boot.set(1 << 40);
        *environment.flows.borrow_mut() = std::mem::take(&mut memory.flows);
        *environment.hellos.borrow_mut() = std::mem::take(&mut memory.hellos);
        *environment.turns.borrow_mut() = std::mem::take(&mut memory.turns);
        if round % 3 == 0 {
            for _ in 0..40 {
                let (client, address, name) =
                    plans::resolved().new_tree(&mut runner).expect("news").current();
                let name = Name::from(&DomainName::parse(name).expect("a name"));
                let resolved = [(address, Duration::from_secs(60))];
                programs.install_learned(client, name.as_ref(), &resolved).expect("learned");
                memory.resolved.entry((client, address.into())).or_default().push(name);
            }
        }
        let value = |(key, names): (&(ClientKey, Address), &Vec<Name>)| {
            let rank = fqdn_rank(&plan.domains, names, key.0.device());
            (*key, FqdnIpValue { rank: Rank::raw(rank), until: u32::MAX })
        };
        *environment.domains.borrow_mut() = memory.resolved.iter().map(value).collect();
        for index in (0..9).chain([budget_index(0, INTERFACE)]) {
            let counted = flow_budget::new_flows().new_tree(&mut runner).expect("a budget").current();
            set_budget(&mut programs, index, counted);
            environment.new_flows.borrow_mut().insert(index, counted);
        }
        for _ in 0..PACKETS {
            let packet = packets::packet().new_tree(&mut runner).expect("a packet").current();
            let (verdict, ip) = compare(&mut programs, &environment, &packet, round);
            *seen.entry(verdict.reason.as_str()).or_default() += 1;
            cases += 1;
            // A ClientHello goes on with the first name of the vocabulary, whatever the first part was.
            if let Some(ip) = ip.filter(|ip| ip.payload == flow_flags::HELLO_OPEN) {
                let rest = packets::rest(&packet, &ip, plans::RESOLVERS[0]);
                let (verdict, ip) = compare(&mut programs, &environment, &rest, round);
                *seen.entry(verdict.reason.as_str()).or_default() += 1;
                completed += usize::from(ip.is_some_and(|ip| ip.payload == flow_flags::HELLO));
                cases += 1;
            }
        }
        for action in &plan.actions {
            let want = environment.turns.borrow().get(&action.policy).copied().unwrap_or_default();
            assert_eq!(
                programs.round_robin_counter(action.policy).expect("turns"),
                want,
                "turns in round {round}"
            );
        }
        for (index, want) in environment.new_flows.borrow().iter() {
            let have = programs.maps.new_flows.get(*index).expect("a budget");
            assert_eq!(have, *want, "new flows of budget {index} in round {round}");
            exceeded += usize::from(have.is_exceeded());
        }
        compare_guard(&mut programs, &plan, &mut runner, &mut tagged);
        memory.flows = RefCell::into_inner(environment.flows);
        memory.hellos = RefCell::into_inner(environment.hellos);
        memory.turns = RefCell::into_inner(environment.turns);
    }
    println!("{cases} cases agree: {seen:?}");
    assert!(cases >= 100_000);
    assert!(tagged.iter().all(|n| *n >= 20), "of tags: left alone and dropped too rarely: {tagged:?}");
    assert!(completed >= 100, "a ClientHello of two segments was completed too rarely: {completed}");
    assert!(exceeded >= 100, "budgets were exceeded too rarely: {exceeded}");
    // A generator that never produces a verdict proves nothing about it.
    for reason in [
        "not_ip",
        "malformed",
        "to_gateway",
        "to_lan",
        "link_local",
        "to_gateway_denied",
        "spoofed",
        "device_blocked",
        "trust_lan_denied",
        "trust_internet_denied",
        "policy_egress",
        "policy_proxy",
        "policy_direct",
        "policy_reject",
        "policy_drop",
        "no_policy",
        "no_policy_reject",
        "forced_dns",
        "doh_blocked",
        "stun_blocked",
    ] {
        assert!(seen.get(reason).is_some_and(|n| *n >= 20), "{reason} was reached too rarely: {seen:?}");
    }
}

/// Runs the function and the program on a packet. Returns the verdict, and the packet as it was read.
pub(crate) fn compare(
    programs: &mut Programs,
    environment: &PlanMaps<'_>,
    packet: &[u8],
    round: usize,
) -> (Verdict, Option<IpPacket>) {
    let arrival = Arrival::default();
    let mut classified: Result<Classified, Malformed> = classify(packet, arrival.interface);
    let want = match &mut classified {
        Ok(Classified::Ip(ip)) => {
            let mut verdict = Verdict::DROP;
            decide_inspected(packet, ip, environment, &mut verdict, decide_ip);
            verdict
        }
        other => decide(other, environment),
    };
    let program = programs.program("gw_ingress").expect("the program");
    let have = run(program, packet, arrival).unwrap_or_else(|e| panic!("{e:#}: {packet:02x?}"));
    let expected = match want.action {
        Action::Drop => Run { action: DROPPED, mark: 0 },
        Action::Mark => Run { action: GOES_ON, mark: want.mark },
        Action::Pass => Run { action: GOES_ON, mark: 0 },
    };
    assert_eq!(
        have, expected,
        "round {round}: the program and the function disagree on {packet:02x?}\n{classified:?}\n{want:?}\n{:?}",
        environment.plan
    );
    let Ok(Classified::Ip(ip)) = classified else { return (want, None) };
    compare_flow(programs, environment, &ip, round);
    (want, Some(ip))
}

/// Compares the flow entries, which decide later packets.
fn compare_flow(programs: &Programs, environment: &PlanMaps<'_>, ip: &IpPacket, round: usize) {
    let key = flow_key(ip);
    let want = environment.flows.borrow().get(&key).map(|flow| FlowValue { seen: 0, digest: 0, ..*flow });
    let have = programs.flow(&key).expect("flows").map(|flow| FlowValue { seen: 0, digest: 0, ..flow });
    assert_eq!(have, want, "round {round}: what is remembered of {key:?} differs");
}

/// Addresses of the plan, as the guard looks them up.
struct PlanAddresses<'a>(&'a PlanMaps<'a>);

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

/// Compares guard and WAN ingress on generated packets, IPv4 and IPv6. Counts those with a tag in the frame: left alone and
/// dropped.
fn compare_guard(
    programs: &mut Programs,
    plan: &Dataplane,
    runner: &mut TestRunner,
    tagged: &mut [usize; 2],
) {
    let environment = PlanMaps::new(Some(plan));
    let local = PlanAddresses(&environment);
    for _ in 0..10 {
        let (mark, ingress) = plans::stamp().new_tree(runner).expect("a mark").current();
        let packet = packets::packet().new_tree(runner).expect("a packet").current();
        let arrival = Arrival { interface: 1, ingress, mark };
        let (ipv6, source, destination) = addresses(&packet);
        let leg = plan.egress_legs.get(&arrival.interface).copied().unwrap_or(0);
        let authorised = plan.authorised.get(&EgressAllowKey { mark, index: arrival.interface }).copied();
        let of_host = if ingress == 0 { leg } else { 0 };
        let departure = Departure { ingress, mark, ipv6, source, leg: of_host, no_plan: false };
        let tag = if is_tagged(&packet) { outer_tag(&packet[..]) } else { None };
        let is_left_alone = tag.is_some_and(|tag| has_own_interface(tag, arrival.interface, &environment));
        let want = if is_left_alone { Ok(()) } else { guard::guard(&departure, authorised, &local) };
        tagged[0] += usize::from(is_left_alone);
        tagged[1] += usize::from(tag.is_some() && want.is_err());
        let program = programs.program("gw_guard").expect("the program");
        let have = run(program, &packet, arrival).expect("a test run");
        let action = if want.is_ok() { GOES_ON } else { DROPPED };
        assert_eq!(have, Run { action, mark }, "{departure:?} {authorised:?} {packet:02x?}");

        let want = match destination {
            Some(destination) => guard::arrive(leg, &destination, &local),
            None => Ok(None),
        };
        let program = programs.program("gw_wan_ingress").expect("the program");
        let have = run(program, &packet, arrival).expect("a test run");
        let want = match want {
            Ok(given) => Run { action: GOES_ON, mark: given.map_or(mark, |mark| mark.0) },
            Err(_) => Run { action: DROPPED, mark },
        };
        assert_eq!(have, want, "leg {leg}: {packet:02x?}");
    }
}

fn is_tagged(frame: &[u8]) -> bool {
    frame.get(12..14).is_some_and(|bytes| is_vlan(u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// Returns family and addresses by the ethertype of the frame, as in the kernel. Only the guard looks behind tags.
fn addresses(frame: &[u8]) -> (bool, Option<Address>, Option<Address>) {
    let word = |at: usize| Some(u32::from_ne_bytes(frame.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(Address::v6(frame.get(at..at + 16)?.try_into().ok()?));
    match frame.get(12..14) {
        Some([0x08, 0x00]) => (false, word(26).map(Address::v4_word), word(30).map(Address::v4_word)),
        Some([0x86, 0xdd]) => (true, long(22), long(38)),
        Some(_) if is_tagged(frame) => {
            let (ipv6, source) = tagged_frame::source(frame);
            (ipv6, source, None)
        }
        _ => (false, None, None),
    }
}

#[test]
fn at_rest_everything_is_marked_as_blocked() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    assert_eq!(programs.live().expect("the slot"), None);
    let mut runner = TestRunner::deterministic();
    let environment = PlanMaps::new(None);
    for round in 0..2000 {
        let packet = packets::packet().new_tree(&mut runner).expect("a packet").current();
        compare(&mut programs, &environment, &packet, round);
    }
}

/// Port reuse: a connection that opens with the ports of an earlier one is a new connection. A repeated opening segment
/// is not.
#[test]
fn a_connection_with_the_ports_of_an_earlier_one_draws_its_own_leg() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&plans::pool(&[(16, 1), (17, 1)])).expect("the plan goes live");
    let (syn, ack) = (0x02, 0x10);
    let mut leg = |flags| {
        let packet = packets::tcp4([192, 168, 10, 2], [198, 18, 0, 1], 40_000, 443, flags);
        let program = programs.program("gw_ingress").expect("the program");
        run(program, &packet, Arrival::default()).expect("a test run").mark & 0xff
    };
    let legs: Vec<u32> = [syn, syn, syn, ack, ack, syn, syn, ack, syn].into_iter().map(&mut leg).collect();
    assert_eq!(legs, [16, 16, 16, 16, 16, 17, 17, 17, 16]);
}

/// A flow that began on the second hop stays there while it is kept, even after the first hop is back.
#[test]
fn a_flow_keeps_a_leg_that_new_flows_do_not_take() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    let mut leg = |plan: &Dataplane, port: u16| {
        programs.apply(plan).expect("the plan goes live");
        let packet = packets::udp4([192, 168, 10, 2], [198, 18, 0, 1], port, 443);
        let program = programs.program("gw_ingress").expect("the program");
        run(program, &packet, Arrival::default()).expect("a test run").mark & 0xff
    };
    let keeping = |new: u8, kept: &[u8]| {
        let choice = Choice::legs(&[new]).with_draining_legs(kept);
        let action = ActionValue { v4: choice, v6: choice, policy: 1, ..ActionValue::default() };
        Dataplane { actions: vec![action], ..plans::pool(&[]) }
    };
    assert_eq!(leg(&keeping(17, &[18]), 10_000), 17);
    assert_eq!([leg(&keeping(16, &[18, 17]), 10_000), leg(&keeping(16, &[18, 17]), 10_001)], [17, 16]);
    assert_eq!(leg(&keeping(16, &[18]), 10_000), 16);
    assert_eq!(leg(&keeping(16, &[18, 17]), 10_000), 16, "what has moved stays where it is");
}

fn films() -> Dataplane {
    let action = |leg| {
        let choice = Choice::legs(&[leg]);
        ActionValue { v4: choice, v6: choice, policy: u32::from(leg), ..ActionValue::default() }
    };
    let pattern = DomainPattern::Suffix("films.example".into());
    let mut plan = Dataplane { actions: vec![action(17), action(16)], ..plans::pool(&[]) };
    plan.header = PlanValue { all: 1, flags: plan_flags::DOMAINS, ..PlanValue::default() };
    plan.domains = vec![DomainRule { pattern, rank: Rank::default(), device: None }];
    plan
}

const FILMS: [u8; 4] = [198, 18, 0, 7];

fn leg_to_the_films(programs: &mut Programs, port: u16) -> u32 {
    let packet = packets::udp4([192, 168, 10, 2], FILMS, port, 443);
    let program = programs.program("gw_ingress").expect("the program");
    run(program, &packet, Arrival::default()).expect("a test run").mark & 0xff
}

/// Returns the client that sends the packets of the tests.
fn sender() -> ClientKey {
    ClientKey::new(0, Mac::new(plans::mac(1)), &Address::default())
}

/// Traffic of a client to a resolved address matches the policy from its first packet on, also in later plans, until
/// the answer expires. Existing flows continue.
#[test]
fn flows_to_resolved_addresses_keep_the_policy_until_they_end() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&films()).expect("the plan goes live");
    assert_eq!(leg_to_the_films(&mut programs, 10_000), 16);
    let name = Name::from(&DomainName::parse("www.films.example").expect("a name"));
    let resolved = [(FILMS.into(), Duration::from_secs(60))];
    programs.install_learned(sender(), name.as_ref(), &resolved).expect("learned");
    assert_eq!(leg_to_the_films(&mut programs, 10_001), 17);
    let mut next = films();
    next.actions.push(ActionValue::default());
    programs.apply(&next).expect("the plan goes live");
    assert_eq!(leg_to_the_films(&mut programs, 10_002), 17);
    // Another process finds the pinned state of this one.
    drop(programs);
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&films()).expect("the plan goes live");
    assert_eq!(leg_to_the_films(&mut programs, 10_003), 17);
    let slot = programs.live().expect("the slot").expect("a plan").get();
    let key = FqdnIpKey { slot, client: sender(), address: Address::v4(FILMS) };
    programs.maps.domains.put(&key, &FqdnIpValue { rank: 0, until: 1 }).expect("it has ended");
    assert_eq!(leg_to_the_films(&mut programs, 10_004), 16, "a new flow after the end");
    assert_eq!(leg_to_the_films(&mut programs, 10_003), 17, "one that began in time");
}

/// LLVM drops the result of some atomic additions, so the round robin is tested in the kernel.
#[test]
fn new_flows_take_the_legs_in_turn() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&plans::pool(&[(16, 1), (17, 1), (18, 2)])).expect("the plan goes live");
    let mut taken = BTreeMap::<u32, usize>::new();
    for port in 0..400u16 {
        let packet = packets::udp4([192, 168, 10, 2], [198, 18, 0, 1], 10_000 + port, 443);
        let program = programs.program("gw_ingress").expect("the program");
        let first = run(program, &packet, Arrival::default()).expect("a test run");
        let again = run(program, &packet, Arrival::default()).expect("a test run");
        assert_eq!(first, again, "a flow keeps its leg");
        *taken.entry(first.mark & 0xff).or_default() += 1;
    }
    assert_eq!(taken, BTreeMap::from([(16, 100), (17, 100), (18, 200)]));
}
