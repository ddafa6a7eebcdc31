//! Policies in bulk: entries of dataplane plans, and objects as users create them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result};
use gateway_common::wire::{ActionValue, Choice, DeviceValue, InterfaceKey, InterfaceValue, RANK_NONE};
use gateway_common::wire::{LocalKind, LocalValue, PlanValue, SourceKind};
use gateway_core::plan::Dataplane;
use gateway_model::State;
use gateway_model::registry::kind;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde_json::{Value, json};

use crate::frame::{Mac, Udp};

pub(crate) const GATEWAY_MAC: Mac = [2, 0, 0, 0x10, 0, 1];
const PORT: u16 = 443;

/// Fast deterministic generator (SplitMix64, Steele and others 2014).
#[derive(Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// Returns an address in 10.0.0.0/8, the range of the LANs.
    fn inside4(&mut self) -> Ipv4Addr {
        Ipv4Addr::from(10 << 24 | (self.next() as u32 & 0xff_ffff))
    }

    fn outside4(&mut self) -> Ipv4Addr {
        Ipv4Addr::from(0x8000_0000 | (self.next() as u32 & 0x3fff_ffff))
    }

    fn inside6(&mut self) -> Ipv6Addr {
        Ipv6Addr::from(0xfd00 << 112 | self.wide() >> 16)
    }

    fn outside6(&mut self) -> Ipv6Addr {
        Ipv6Addr::from(0x2001 << 112 | self.wide() >> 16)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    fn mac(&mut self) -> Mac {
        let [a, b, c, d, e, ..] = self.next().to_ne_bytes();
        [2, a, b, c, d, e]
    }
}

/// Match of one policy of a plan.
#[derive(Clone, Copy, Debug)]
enum Match {
    Source(IpNet),
    Destination(IpNet),
    Port(IpNet),
    Device(Mac),
}

/// A plan with policies spread evenly over source prefixes, destinations, destinations with port (each of both
/// families) and devices, with the packets that match them.
#[derive(Debug)]
pub(crate) struct Spread {
    pub plan: Dataplane,
    matches: Vec<Match>,
}

impl Spread {
    pub(crate) fn new(policies: usize) -> Result<Self> {
        let mut random = Random(0x6761_7465_7761_7900);
        let header = PlanValue { all: RANK_NONE, ..PlanValue::default() };
        let mut plan = Dataplane { header, ..Dataplane::default() };
        let interface = InterfaceKey { slot: 0, index: 1, vlan: 0, _pad: 0 };
        plan.interfaces.insert(interface, InterfaceValue { rank: RANK_NONE, ..InterfaceValue::default() });
        // As many lookups as on a LAN with one network of each family, for any source.
        for net in ["0.0.0.0/0", "::/0"] {
            plan.lan_sources.insert((0, net.parse().context("a network")?), SourceKind::Lan as u32);
        }
        locals(&mut plan)?;
        let mut matches = Vec::new();
        while matches.len() < policies {
            let rank = u32::try_from(matches.len()).context("policies")?;
            let new = draw(&mut random, matches.len())?;
            let device =
                DeviceValue { rank, number: rank + 1, rank_after: RANK_NONE, ..DeviceValue::default() };
            let had = match new {
                Match::Source(net) => plan.sources.insert(net, rank).is_some(),
                Match::Destination(net) => plan.destinations.insert(net, rank).is_some(),
                Match::Port(net) => plan.destination_ports.insert((PORT, net), rank).is_some(),
                Match::Device(mac) => plan.devices_by_mac.insert(mac, device).is_some(),
            };
            if !had {
                matches.push(new);
                let choice = Choice::legs(&[1]);
                plan.actions.push(ActionValue {
                    v4: choice,
                    v6: choice,
                    policy: rank + 1,
                    ..ActionValue::default()
                });
            }
        }
        Ok(Self { plan, matches })
    }

    /// Returns a packet that a policy of the plan matches, from this source port.
    pub(crate) fn packet(&self, random: &mut Random, policy: usize, port: u16) -> Result<Vec<u8>> {
        let matched = self.matches[policy % self.matches.len()];
        let ipv6 = match matched {
            Match::Source(net) | Match::Destination(net) | Match::Port(net) => matches!(net, IpNet::V6(_)),
            Match::Device(mac) => mac[5] % 2 == 1,
        };
        let (source, destination): (IpAddr, IpAddr) = if ipv6 {
            (random.inside6().into(), random.outside6().into())
        } else {
            (random.inside4().into(), random.outside4().into())
        };
        let mut udp = Udp {
            to: GATEWAY_MAC,
            from: random.mac(),
            source,
            destination,
            source_port: port,
            destination_port: PORT,
        };
        match matched {
            Match::Source(net) => udp.source = net.addr(),
            Match::Destination(net) | Match::Port(net) => udp.destination = net.addr(),
            Match::Device(mac) => udp.from = mac,
        }
        udp.frame().context("addresses of one family")
    }
}

fn draw(random: &mut Random, number: usize) -> Result<Match> {
    let v4 = |address, length| Ipv4Net::new(address, length).map(|net| IpNet::V4(net.trunc()));
    let v6 = |address, length| Ipv6Net::new(address, length).map(|net| IpNet::V6(net.trunc()));
    // Alternates hosts and networks.
    let network = random.next().is_multiple_of(2);
    Ok(match number % 8 {
        0 => Match::Source(v4(random.inside4(), if network { 24 } else { 32 })?),
        1 => Match::Source(v6(random.inside6(), if network { 64 } else { 128 })?),
        2 => Match::Destination(v4(random.outside4(), if network { 20 } else { 32 })?),
        3 => Match::Destination(v6(random.outside6(), if network { 48 } else { 128 })?),
        4 => Match::Port(v4(random.outside4(), if network { 20 } else { 32 })?),
        5 => Match::Port(v6(random.outside6(), if network { 48 } else { 128 })?),
        _ => Match::Device(random.mac()),
    })
}

/// Adds the networks that the compiler always adds because policies do not route them.
fn locals(plan: &mut Dataplane) -> Result<()> {
    let link = ["224.0.0.0/4", "255.255.255.255/32", "169.254.0.0/16", "ff00::/8", "fe80::/10"];
    let all = link.into_iter().map(|net| (net, LocalKind::Link));
    for (net, kind) in all.chain([("192.168.10.0/24", LocalKind::Lan), ("192.168.10.1/32", LocalKind::Own)]) {
        plan.locals.insert(net.parse().context("a network")?, LocalValue::new(kind));
    }
    Ok(())
}

/// Returns a policy for a subnet as a user sends it.
pub(crate) fn subnet_policy(name: &str, priority: usize, subnet: &str, uplink: &str) -> Value {
    json!({
        "name": name,
        "priority": priority,
        "enabled": true,
        "source_type": "subnet",
        "source_value": subnet,
        "hops": [{"type": "interface", "target": uplink}],
        "fail_policy": "fail-closed",
    })
}

/// Creates `count` policies in a state, each for its own subnet. Another `series` gives other subnets.
pub(crate) fn create_policies(state: &mut State, count: usize, series: usize, uplink: &str) -> Result<()> {
    let policies = kind("routing_policy").context("the kind of policies")?;
    for number in 0..count {
        let [_, _, high, low] = u32::try_from(number).context("number")?.to_be_bytes();
        let subnet = format!("{}.{high}.{low}.0/24", 64 + series % 32);
        let policy = subnet_policy(&format!("p{number:05}"), 100 + number, &subnet, uplink);
        policies.create(state, policy).with_context(|| format!("policy {number}"))?;
    }
    Ok(())
}
