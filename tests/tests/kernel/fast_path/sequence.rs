//! Generated sequences of packets of two hosts with one address, swaps, NAT conflicts, neighbour changes, evictions and flushes, sent through two
//! gateways: one with the fast path, one without it. Their frames are equal, and so are their counters and samples.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use gateway_common::wire::{
    ActionValue, Choice, ChoiceKind, DeviceValue, FAST_PLACES, FastCounter, LocalKind, LocalValue, RANK_NONE,
};
use gateway_ctl::os::bpf::EpochChange;
use gateway_tests::netns;
use ipnet::IpNet;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::full_bucket::{others_in_bucket, seed as seed_of};
use super::packet::{Packet, Shown, TCP, UDP, mac};
use super::report::Report;
use super::testbed::Testbed;
use super::{assert_same, show};

const SEQUENCES: usize = 10;
const STEPS: usize = 400;
const HOSTS: u8 = 3;
const DESTINATIONS: u8 = 2;
/// Host of the flows that fill a bucket.
const OTHER_HOST: u8 = 8;
/// Number of the policy.
const POLICY: u32 = 1;

/// A flow: host, address family, destination, port, protocol. All hosts use the same ports, so that translations
/// conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    host: u8,
    network: u8,
    destination: u8,
    port: u16,
    tcp: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// So many packets alike.
    Send {
        flow: Flow,
        reply: bool,
        /// From another host, which has the address of the flow, too.
        claimed: bool,
        flags: u8,
        length: usize,
        hop_limit: u8,
        dont_fragment: bool,
        padding: usize,
        count: u16,
    },
    Swap,
    /// Allows or forbids a destination.
    Allow(u8, bool),
    /// Packets of other flows whose entries are to be in the bucket of this one.
    FillBucket(Flow),
    NextHop(u8),
    Host {
        host: u8,
        last: u8,
    },
    Flush,
    Invalidate,
    Off,
}

fn flow() -> impl Strategy<Value = Flow> {
    (2..2 + HOSTS, 0..3u8, 0..DESTINATIONS, 0..1u16, any::<bool>())
        .prop_map(|(host, network, destination, port, tcp)| Flow { host, network, destination, port, tcp })
}

fn step() -> impl Strategy<Value = Step> {
    let flags = prop_oneof![
        24 => Just(0x18u8),
        12 => Just(0x10),
        3 => Just(0x02),
        2 => Just(0x11),
        1 => Just(0x04),
        1 => Just(0x00),
        1 => Just(0x08),
    ];
    let length = prop_oneof![8 => 0..200usize, 3 => 1330..1440usize];
    let padding = prop_oneof![3 => Just(0usize), 1 => 1..40usize];
    let hop_limit = prop_oneof![20 => Just(64u8), 1 => Just(1), 1 => Just(2)];
    let claimed = prop_oneof![3 => Just(false), 1 => Just(true)];
    let direction = (any::<bool>(), claimed);
    let send = (flow(), direction, flags, length, hop_limit, any::<bool>(), padding, 1..5u16).prop_map(
        |(flow, (reply, claimed), flags, length, hop_limit, dont_fragment, padding, count)| Step::Send {
            flow,
            reply,
            claimed,
            flags,
            length,
            hop_limit,
            dont_fragment,
            padding,
            count,
        },
    );
    prop_oneof![
        150 => send,
        1 => Just(Step::Swap),
        1 => (0..DESTINATIONS).prop_map(|number| Step::Allow(number, false)),
        2 => (0..DESTINATIONS).prop_map(|number| Step::Allow(number, true)),
        2 => flow().prop_map(Step::FillBucket),
        1 => (9..12u8).prop_map(Step::NextHop),
        1 => (2..2 + HOSTS, any::<bool>()).prop_map(|(host, is_moved)| {
            Step::Host { host, last: if is_moved { moved(host) } else { host } }
        }),
        1 => Just(Step::Flush),
        1 => Just(Step::Invalidate),
        1 => Just(Step::Off),
    ]
}

impl Flow {
    fn source(self) -> SocketAddr {
        let address = match self.network {
            0 => format!("192.168.77.{}", self.host),
            1 => format!("fd77::{}", self.host),
            _ => format!("2001:db8:77::{}", self.host),
        };
        SocketAddr::new(address.parse().expect("an address"), 40_000 + self.port)
    }

    fn destination(self) -> SocketAddr {
        SocketAddr::new(destinations(self.destination)[usize::from(self.network > 0)], 4433)
    }

    fn packet(self) -> Packet {
        let protocol = if self.tcp { TCP } else { UDP };
        Packet::from_host(self.source(), self.destination(), protocol, self.host)
    }

    /// Returns two packets of each of more flows than fit into the bucket of this one.
    fn others(self, seed: u32) -> Vec<Packet> {
        let host = Flow { host: OTHER_HOST, ..self };
        let packets =
            others_in_bucket(&self.packet(), (host.source().ip(), OTHER_HOST), FAST_PLACES + 1, seed);
        packets.iter().flat_map(|packet| [packet.clone(), packet.clone()]).collect()
    }
}

/// Returns the last byte of the other MAC address of a host.
fn moved(host: u8) -> u8 {
    host + 20
}

/// Returns the addresses of a destination.
fn destinations(number: u8) -> [IpAddr; 2] {
    [format!("203.0.113.{}", 10 + number), format!("2001:db8:9::{}", 10 + number)]
        .map(|text| text.parse().expect("an address"))
}

/// A gateway, and the translated ports of the flows that it has let through.
struct Side {
    testbed: Testbed,
    ports: BTreeMap<Flow, u16>,
    hosts: BTreeMap<u8, u8>,
}

impl Side {
    /// Each host is a device. Each new flow is sampled. The second destination has a policy.
    fn build() -> Side {
        let mut testbed = Testbed::build();
        testbed.change_plan(|plan| {
            plan.header.sample_every = 1;
            for host in 2..2 + HOSTS {
                let (number, rank) = (host.into(), RANK_NONE);
                let device = DeviceValue { rank, number, rank_after: rank, ..DeviceValue::default() };
                plan.devices_by_mac.extend([host, moved(host)].map(|last| (mac(last), device)));
            }
            let direct = Choice { kind: ChoiceKind::Direct as u8, ..Choice::default() };
            plan.actions = vec![ActionValue { v4: direct, v6: direct, policy: POLICY, ..Default::default() }];
            plan.destinations.extend(destinations(1).map(|address| (IpNet::from(address), 0)));
        });
        Side { testbed, ports: BTreeMap::new(), hosts: BTreeMap::new() }
    }

    fn report(&mut self) -> Report {
        let devices: Vec<u32> = (2..2 + u32::from(HOSTS)).collect();
        Report::read(&mut self.testbed, &devices, &[POLICY])
    }

    /// Carries out a step and returns the frames that left. `others` are the packets of [`Step::FillBucket`].
    fn run(&mut self, number: u16, step: &Step, others: &[Packet], fast: bool) -> Vec<Shown> {
        let testbed = &mut self.testbed;
        let invalidate = |testbed: &Testbed, change| testbed.fast_path().invalidate(change).expect("invalid");
        match step {
            Step::Send { flow, reply, claimed, flags, length, hop_limit, dont_fragment, padding, count } => {
                let host = self.hosts.get(&flow.host).copied().unwrap_or(flow.host);
                let host = if !claimed {
                    host
                } else if host == flow.host {
                    moved(host)
                } else {
                    flow.host
                };
                let packet = Packet {
                    identification: number,
                    tcp_flags: *flags,
                    sequence: 1 + u32::from(number),
                    payload: vec![number as u8; *length],
                    hop_limit: *hop_limit,
                    dont_fragment: *dont_fragment,
                    // A longer frame would not fit on the link.
                    padding: if *length < 200 { *padding } else { 0 },
                    from: mac(host),
                    ..flow.packet()
                };
                for _ in 0..*count {
                    if *reply {
                        // A reply to a flow that never left goes to the port that it would have kept.
                        let port = self.ports.get(flow).copied().unwrap_or(flow.source().port());
                        let address: IpAddr = super::packet::translated(flow.source().ip());
                        testbed.send_from_wan(&packet.reply_to(SocketAddr::new(address, port)));
                    } else {
                        testbed.send_from_lan(&packet);
                    }
                }
            }
            Step::Swap => testbed.swap(),
            Step::Allow(number, allowed) => {
                let nets = destinations(*number).map(IpNet::from);
                if testbed.plan.locals.contains_key(&nets[0]) == *allowed {
                    testbed.change_plan(|plan| {
                        for net in nets {
                            match allowed {
                                true => drop(plan.locals.remove(&net)),
                                false => drop(plan.locals.insert(net, LocalValue::new(LocalKind::Forbidden))),
                            }
                        }
                    });
                }
            }
            Step::FillBucket(_) => others.iter().for_each(|packet| testbed.send_from_lan(packet)),
            Step::NextHop(last) => {
                testbed.set_next_hop(*last);
                invalidate(testbed, EpochChange::Neighbour);
            }
            Step::Host { host, last } => {
                testbed.set_host(*host, *last);
                self.hosts.insert(*host, *last);
                invalidate(testbed, EpochChange::Neighbour);
            }
            Step::Flush => testbed.programs.delete_flows().expect("no flows"),
            Step::Invalidate => invalidate(testbed, EpochChange::Route),
            Step::Off if fast => {
                testbed.fast_path().set(None).expect("off");
                testbed.turn_on();
            }
            Step::Off => {}
        }
        let (to_lan, to_wan) = testbed.received();
        let mut shown = show(&to_wan, true);
        if let (Step::Send { flow, reply: false, .. }, [sent]) = (step, &shown[..shown.len().min(1)])
            && sent.source_port != 0
        {
            self.ports.insert(*flow, sent.source_port);
        }
        shown.extend(show(&to_lan, false));
        shown
    }
}

#[test]
fn generated_sequences_leave_with_the_same_bytes() {
    compare_with(
        |testbed| testbed.turn_on(),
        |testbed| [FastCounter::Forwarded, FastCounter::Replied].map(|counter| testbed.counted(counter)),
    );
}

/// Sends sequences through a gateway that is prepared so, and through one without the fast path. `counted` returns the
/// packets there and back that took the tested path.
pub(super) fn compare_with(prepare: impl Fn(&mut Testbed), counted: impl Fn(&Testbed) -> [u64; 2]) {
    netns::require_root().expect("root");
    let seed: [u8; 32] = match std::env::var("FAST_PATH_SEED") {
        Ok(text) => std::array::from_fn(|i| text.as_bytes().get(i).copied().unwrap_or(0)),
        Err(_) => *b"the same bytes with on and off..",
    };
    println!("seed {:?} (FAST_PATH_SEED overrides it)", String::from_utf8_lossy(&seed));
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let steps = prop::collection::vec(step(), STEPS);
    let (mut packets, mut fast, mut replied, mut full) = (0, 0, 0, 0);
    let (mut samples, mut denied) = (0, 0);
    for _ in 0..SEQUENCES {
        let steps = steps.new_tree(&mut runner).expect("steps").current();
        let (mut on, mut off) = (Side::build(), Side::build());
        prepare(&mut on.testbed);
        for (number, step) in steps.iter().enumerate() {
            let number = number as u16;
            let others = match step {
                Step::FillBucket(flow) => flow.others(seed_of(&on.testbed)),
                _ => Vec::new(),
            };
            let (with, without) =
                (on.run(number, step, &others, true), off.run(number, step, &others, false));
            assert_same(&with, &without, &(number, step, &steps[..number as usize]));
            let (reported, wanted) = (on.report(), off.report());
            assert_eq!(reported, wanted, "{number} {step:?}\n{:?}", &steps[..usize::from(number)]);
            packets += with.len();
            samples += reported.samples.len();
            denied += u64::from(reported.samples.iter().any(|sample| sample.action == "drop"));
        }
        let [forwarded, back] = counted(&on.testbed);
        (fast, replied) = (fast + forwarded, replied + back);
        let report = on.report();
        let counted = report.devices.iter().chain(&report.policies);
        assert!(counted.clone().all(|counters| counters.packets > 20), "{report:?}");
        full += on.testbed.counted(FastCounter::Full);
        assert_eq!(off.testbed.counted(FastCounter::Forwarded), 0);
        // The notes of a packet are found or refused, never mistaken.
        assert_eq!(on.testbed.counted(FastCounter::Mismatched), 0);
    }
    println!(
        "{packets} packets left alike, of which {fast} and {replied} took the tested path, {full} found no place"
    );
    assert!(packets > SEQUENCES * STEPS / 2 && fast > 500 && replied > 100, "{packets} {fast} {replied}");
    assert!(full > 10 && samples > 1000 && denied > 10, "{full} {samples} {denied}");
}
