//! Generated packets, and captures of real traffic where they are beside the repository: the loaded program, the decision
//! function and `/policy/evaluate` agree on each flow, whatever is blocked for its host.

mod read;

pub(super) use read::files;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use gateway_common::classify::{IpPacket, TCP, UDP};
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{Fragment, NewFlows, budget_index};
use gateway_core::compile::{Compiled, Input, compile};
use gateway_core::evaluate::{Decision, Family, FamilyVerdict, Protocol, Request, evaluate};
use gateway_core::facts::{Facts, Link};
use gateway_core::network::{Network, UplinkSettings};
use gateway_core::plan_maps::PlanMaps;
use gateway_ctl::os::bpf::Programs;
use gateway_model::registry::kind;
use gateway_model::{Id, State};
use gateway_tests::netns::{self, Prefix};
use jiff::Timestamp;
use pcap_file::DataLink;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::kernel::differential::{Pins, compare, packets};
use crate::kernel::flow_budget;

/// Number of generated frames.
const GENERATED: usize = 5000;

/// Privacy classes: two that are built in, and one for each block.
fn classes() -> [(&'static str, Option<Value>); 7] {
    [
        ("open", None),
        ("isolated", None),
        ("no resolvers", Some(json!({"block_doh": true}))),
        ("no quic", Some(json!({"block_quic": true}))),
        ("no dot", Some(json!({"block_dot": true}))),
        ("no ipv6", Some(json!({"block_ipv6": true}))),
        ("no stun", Some(json!({"webrtc": "block"}))),
    ]
}

/// A gateway with a LAN of both families, and a device of a class.
struct Gateway {
    state: State,
    network: Network,
    facts: Facts,
    now: Timestamp,
    device: Id,
}

impl Gateway {
    fn new(class: &str) -> Gateway {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().expect("a time");
        let mut state = State::new(now).begin(now);
        let mut create =
            |noun: &str, object| kind(noun).expect("a kind").create(&mut state, object).expect(noun).id;
        for (name, blocks) in classes() {
            if let Some(mut blocks) = blocks {
                blocks["name"] = json!(name);
                create("privacy-class", blocks);
            }
        }
        let device = json!({"name": "client", "mac": "02:00:00:00:00:01", "privacy_class": class});
        let device = create("device", device);
        state.freeze_applied();
        let mut facts = Facts::default();
        // The programs run on the loopback interface, 1.
        for (name, index, nets) in [
            ("lan0", 1, ["192.168.1.1/24", "fd00:1::1/64"]),
            ("wan0", 3, ["203.0.113.2/24", "2001:db8:113::2/64"]),
        ] {
            facts.links.insert(name.to_owned(), Link { index, up: true, mtu: 1500, ..Link::default() });
            let nets = nets.map(|net| net.parse().expect("a network"));
            facts.addresses.insert(name.to_owned(), nets.into());
        }
        let uplink = UplinkSettings { interface: "wan0".into(), ..UplinkSettings::default() };
        let network = Network { lan: vec!["lan0".into()], uplinks: vec![uplink], ..Network::default() };
        Gateway { state, network, facts, now, device }
    }

    fn input(&self) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now: self.now }
    }

    /// Returns the explanation of a flow to a destination, and its trace.
    fn explain(&self, compiled: &Compiled, destination: String, ip: &IpPacket) -> (FamilyVerdict, String) {
        let request = Request {
            device_id: Some(self.device),
            destination: Some(destination),
            port: Some(ip.destination_port),
            protocol: Some(if ip.protocol == TCP { Protocol::Tcp } else { Protocol::Udp }),
            family: Some(if ip.ipv6 { Family::Ipv6 } else { Family::Ipv4 }),
            source: Some(if ip.ipv6 { read::CLIENT_V6.into() } else { read::CLIENT_V4.into() }),
            ..Request::default()
        };
        let found = evaluate(&self.input(), compiled, &request).expect("an explanation");
        let families = found.families;
        let family = if ip.ipv6 { families.ipv6 } else { families.ipv4 };
        (family.expect("a family"), found.trace.join("\n"))
    }
}

#[test]
fn captured_flows_are_decided_and_explained_alike() {
    netns::require_root().expect("root");
    let mut sources = vec![("generated".to_owned(), generated())];
    sources.extend(read::files().iter().map(|file| (file.display().to_string(), read::packets(file))));
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    let mut seen = BTreeMap::<(&str, &str), usize>::new();
    let mut frames = 0;
    for (class, _) in classes() {
        let gateway = Gateway::new(class);
        let compiled = compile(&gateway.input());
        let plan = &compiled.plan.dataplane;
        let swap = programs.apply(plan).expect("the plan goes live");
        for (source, packets) in &sources {
            programs.delete_flows().expect("flows are forgotten");
            let environment = PlanMaps::new(Some(plan));
            environment.generation.set(swap.generation);
            environment.since_boot.set(1 << 40);
            // Each capture has the whole budget of new flows, of the device and of hosts that are none.
            for index in [1, budget_index(0, flow_budget::INTERFACE)] {
                let unused = NewFlows::new(flow_budget::WINDOW, 0, false);
                flow_budget::set_budget(&mut programs, index, unused);
                environment.new_flows.borrow_mut().insert(index, unused);
            }
            let mut last = BTreeMap::new();
            for frame in frames_of_clients(packets) {
                let (verdict, ip) = compare(&mut programs, &environment, &frame, 0);
                frames += 1;
                // The explanation is of packets with ports.
                if let Some(ip) =
                    ip.filter(|ip| matches!(ip.protocol, TCP | UDP) && ip.fragment == Fragment::Whole)
                {
                    last.insert(flow_key(&ip), (ip, verdict));
                }
            }
            for (ip, verdict) in last.into_values() {
                *seen.entry((class, verdict.reason.as_str())).or_default() += 1;
                check(&gateway, &compiled, &ip, &verdict)
                    .unwrap_or_else(|error| panic!("{source}, {class}: {error}\n{verdict:?}\n{ip:?}"));
            }
        }
    }
    println!("{frames} frames of {} sources agree; flows by class and verdict: {seen:?}", sources.len());
    for (class, reason) in [
        ("open", "no_policy"),
        ("isolated", "stun_blocked"),
        ("no resolvers", "quic_held"),
        ("no quic", "quic_blocked"),
    ] {
        assert!(seen.contains_key(&(class, reason)), "{class}: {reason} was not reached: {seen:?}");
    }
}

/// Returns packets of the generator that compares the program and the function.
fn generated() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let frames = (0..GENERATED).map(|_| packets::packet().new_tree(&mut runner).expect("a packet").current());
    frames.filter_map(|frame| read::ip_packet(DataLink::ETHERNET, &frame).map(<[u8]>::to_vec)).collect()
}

/// Returns the packets of the hosts that began their conversation.
fn frames_of_clients(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut conversations = BTreeSet::<(IpAddr, IpAddr)>::new();
    let is_of_client = |packet: &&Vec<u8>| match read::addresses(packet) {
        Some((source, destination)) if !conversations.contains(&(destination, source)) => {
            conversations.insert((source, destination));
            true
        }
        _ => false,
    };
    packets.iter().filter(is_of_client).map(|packet| read::frame_of_client(packet)).collect()
}

/// Compares the verdict on the last packet of a flow with the explanation of its destination.
fn check(gateway: &Gateway, compiled: &Compiled, ip: &IpPacket, verdict: &Verdict) -> Result<(), String> {
    let destination = SocketAddr::new(ip.destination.into(), ip.destination_port);
    let (explained, trace) = gateway.explain(compiled, destination.to_string(), ip);
    let is_redirected = matches!(verdict.reason, Reason::ForcedDns | Reason::ForcedNtp);
    let is_blocked = verdict.reason.is_block() && !is_redirected || verdict.reason == Reason::QuicHeld;
    let mark = (verdict.action == Action::Mark).then(|| format!("{:#010x}", verdict.mark));
    // The first packet of a connection is rejected in another way than later ones.
    let is_same = (explained.decision == Decision::Block) == is_blocked
        && (is_blocked || explained.kernel.mark == mark);
    // A block by what the flow carries is announced by the contents that would block it.
    let content = match verdict.reason {
        Reason::StunBlocked => Some("STUN"),
        Reason::QuicBlocked => Some("QUIC"),
        Reason::DohBlocked | Reason::QuicHeld => {
            Some("a connection of TLS or QUIC to the name of a public resolver")
        }
        _ => None,
    };
    let announcement =
        |content: &str| trace.lines().any(|line| line.contains("turns out to be") && line.contains(content));
    match is_same || content.is_some_and(announcement) {
        true => Ok(()),
        false => Err(format!("{destination}: {:?}, {}\n{trace}", explained.decision, explained.reason)),
    }
}
