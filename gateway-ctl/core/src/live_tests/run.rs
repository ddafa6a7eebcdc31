//! Packets of live tests: which are sent, and what is known of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gateway_model::kinds::Device;
use gateway_model::kinds::device_group::DeviceGroup;
use gateway_model::kinds::test_definition::{TestDefinition, TestMode, TestProtocol};
use gateway_model::validated::{Endpoint, Host as Destination};
use ipnet::IpNet;

use super::fate::{Fate, is_blocked};
use crate::compile::{Compiled, Input};
use crate::evaluate::public_address;
use crate::leak_check::{Host, Outcome, Plan, Run, Trial, Wanted, plan_trials};

/// Packets of a run. The tap has room for as many.
const BATCH: usize = 256;
/// Packets of all runs.
const MAX_PACKETS: usize = 2048;
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;

/// Host as which the packets of a definition are sent.
pub(super) struct Source {
    pub(super) definition: usize,
    pub(super) label: String,
    host: Host,
    device: Option<Arc<Device>>,
    /// Set for a source that is a network of one address family.
    ipv6: Option<bool>,
}

pub(super) type Task = (usize, Wanted);

/// Definitions, and what is known of their packets so far.
pub struct LiveTests {
    pub(super) definitions: Vec<Arc<TestDefinition>>,
    pub(super) sources: Vec<Source>,
    queue: VecDeque<Task>,
    sent: Vec<(Task, Result<usize, String>)>,
    pub(super) fates: BTreeMap<Task, Fate>,
    /// Packets that may still be sent.
    left: usize,
    are_names_asked: bool,
    random: u64,
}

impl LiveTests {
    /// Takes the definitions of the mode live.
    pub fn new(input: &Input<'_>, definitions: &[Arc<TestDefinition>], random: u64) -> LiveTests {
        let is_live = |test: &&Arc<TestDefinition>| test.mode == TestMode::Live;
        let definitions: Vec<_> = definitions.iter().filter(is_live).cloned().collect();
        let sources: Vec<Source> = definitions
            .iter()
            .enumerate()
            .flat_map(|(index, definition)| sources(input, index, definition, random))
            .collect();
        let mut queue = VecDeque::new();
        for (index, source) in sources.iter().enumerate() {
            queue.extend(
                names(&definitions[source.definition]).into_iter().map(|name| (index, Wanted::Name(name))),
            );
        }
        let (sent, fates) = (Vec::new(), BTreeMap::new());
        LiveTests {
            definitions,
            sources,
            queue,
            sent,
            fates,
            left: MAX_PACKETS,
            are_names_asked: false,
            random,
        }
    }

    /// Returns the packets of the next run. `None` if all were sent.
    pub fn next(&mut self, input: &Input<'_>, compiled: &Compiled) -> Option<Plan> {
        while self.left > 0 {
            if self.queue.is_empty() {
                if std::mem::replace(&mut self.are_names_asked, true) {
                    return None;
                }
                self.queue =
                    (0..self.sources.len()).flat_map(|source| self.destinations(compiled, source)).collect();
            }
            let number = self.queue.len().min(BATCH).min(self.left);
            let tasks: Vec<Task> = self.queue.drain(..number).collect();
            self.left -= number;
            // Each run has tokens of its own.
            self.random = self.random.rotate_left(17).wrapping_add(GOLDEN);
            let trial = |(source, wanted): &'_ Task| {
                let source = &self.sources[*source];
                (&source.host, source.device.as_deref(), wanted.clone())
            };
            let trials: Vec<_> = tasks.iter().map(trial).collect();
            let trials: Vec<Trial<'_>> =
                trials.iter().map(|(host, device, wanted)| Trial { host, device: *device, wanted }).collect();
            let planned = plan_trials(input, compiled, &trials, self.random);
            let Some((plan, indexes)) = planned else { continue };
            self.sent = tasks.into_iter().zip(indexes).collect();
            if !plan.probes.is_empty() {
                return Some(plan);
            }
            self.note(|refusal| Fate::Unknown(refusal.err().unwrap_or_default()));
        }
        None
    }

    /// Notes what became of the packets of the last plan.
    pub fn take(&mut self, plan: &Plan, run: &Run) {
        let nothing = Outcome::default();
        self.note(|probe| match probe {
            Err(refusal) => Fate::Unknown(refusal),
            Ok(index) => Fate::of(
                &plan.probes[index],
                run.outcomes.get(index).unwrap_or(&nothing),
                run.failure.as_deref(),
            ),
        });
    }

    fn note(&mut self, fate: impl Fn(Result<usize, String>) -> Fate) {
        let sent = std::mem::take(&mut self.sent);
        self.fates.extend(sent.into_iter().map(|(task, probe)| (task, fate(probe))));
    }

    fn destinations(&self, compiled: &Compiled, source: usize) -> Vec<Task> {
        let definition = &self.definitions[self.sources[source].definition];
        let mut tasks: BTreeSet<Task> = BTreeSet::new();
        for endpoint in definition.accept.iter().chain(&definition.deny) {
            tasks.extend(self.packets(source, endpoint).into_iter().map(|wanted| (source, wanted)));
        }
        if definition.expect_egress.is_some() && definition.accept.is_empty() {
            tasks.insert((source, self.to_internet(compiled, source)));
        }
        tasks.into_iter().collect()
    }

    /// Packet to an address that stands for the internet.
    pub(super) fn to_internet(&self, compiled: &Compiled, source: usize) -> Wanted {
        let ipv6 = self.sources[source].ipv6.unwrap_or(false);
        let address = public_address(compiled, ipv6, HTTPS, &mut Vec::new());
        wanted(self.definitions[self.sources[source].definition].proto, SocketAddr::new(address, HTTPS))
    }

    /// Packets from a source to a destination: one for each address that is known of a name.
    pub(super) fn packets(&self, source: usize, endpoint: &Endpoint) -> Vec<Wanted> {
        let of = &self.sources[source];
        let proto = self.definitions[of.definition].proto;
        let addresses: Vec<IpAddr> = match &endpoint.host {
            Destination::Address(address) => vec![*address],
            Destination::Name(name) => match self.fates.get(&(source, Wanted::Name(canonical(name)))) {
                Some(Fate::Answered(answer)) if !is_blocked(answer) => answer
                    .addresses
                    .iter()
                    .take(MAX_ADDRESSES)
                    .map(|address| IpAddr::from(*address))
                    .collect(),
                _ => Vec::new(),
            },
        };
        let exists = |address: &IpAddr| of.ipv6.is_none_or(|ipv6| ipv6 == address.is_ipv6());
        let addresses = addresses.into_iter().filter(exists);
        addresses.map(|address| wanted(proto, SocketAddr::new(address, endpoint.port))).collect()
    }
}

const HTTPS: u16 = 443;
/// 2^64 divided by the golden ratio: spreads numbers that follow each other.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn wanted(protocol: TestProtocol, to: SocketAddr) -> Wanted {
    match protocol {
        TestProtocol::Tcp => Wanted::Tcp(to),
        TestProtocol::Udp => Wanted::Udp(to),
    }
}

pub(super) fn canonical(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Names for which a source of the definition asks.
fn names(definition: &TestDefinition) -> BTreeSet<String> {
    let of_endpoint = |endpoint: &Endpoint| match &endpoint.host {
        Destination::Name(name) => Some(canonical(name)),
        Destination::Address(_) => None,
    };
    let expected = definition.dns.iter().map(|dns| canonical(&dns.name));
    definition.accept.iter().chain(&definition.deny).filter_map(of_endpoint).chain(expected).collect()
}

fn sources(input: &Input<'_>, definition: usize, test: &TestDefinition, random: u64) -> Vec<Source> {
    let bytes = |salt: usize| {
        let number = random.wrapping_add((salt as u64).wrapping_mul(GOLDEN)).to_be_bytes();
        [number[0], number[1], number[2], number[3], number[4], number[5]]
    };
    let state = input.state;
    let members = state.referred::<DeviceGroup>(&test.source.group).map(|group| group.members.clone());
    let devices = test.source.device.into_iter().chain(members.unwrap_or_default());
    let mut sources: Vec<Source> = devices
        .enumerate()
        .filter_map(|(index, id)| {
            let device = state.devices.get(id)?.clone();
            let host = Host::find(input, Some(&device), bytes(definition * 4096 + index))?;
            Some(Source { definition, label: device.name.clone(), host, device: Some(device), ipv6: None })
        })
        .collect();
    if let Some(cidr) = test.source.cidr {
        let net: IpNet = cidr.net();
        let host = Host::in_network(input, net, bytes(definition * 4096));
        sources.extend(host.map(|host| Source {
            definition,
            label: net.to_string(),
            host,
            device: None,
            ipv6: Some(net.addr().is_ipv6()),
        }));
    }
    sources
}
