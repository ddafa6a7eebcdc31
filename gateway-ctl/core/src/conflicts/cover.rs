//! Traffic that the policies so far match, and the rest of a source.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::id::Id;
use gateway_model::kinds::policy_source::{DomainPattern, Source};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::compile::Input;
use crate::fqdn_match;

/// Matched traffic, each part by the first policy that matches it, as its index in the order of evaluation.
#[derive(Debug)]
pub(super) struct Cover<'a> {
    input: &'a Input<'a>,
    all: Option<usize>,
    interfaces: BTreeMap<String, usize>,
    vlans: BTreeMap<u16, usize>,
    devices: BTreeMap<Id, usize>,
    groups: BTreeMap<Id, usize>,
    sources: Prefixes,
    destinations: Prefixes,
    ports: BTreeMap<u16, Prefixes>,
    domains: Vec<(DomainPattern, usize)>,
}

impl<'a> Cover<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Cover<'a> {
        Cover {
            input,
            all: None,
            interfaces: BTreeMap::new(),
            vlans: BTreeMap::new(),
            devices: BTreeMap::new(),
            groups: BTreeMap::new(),
            sources: Prefixes::default(),
            destinations: Prefixes::default(),
            ports: BTreeMap::new(),
            domains: Vec::new(),
        }
    }

    /// Adds the matches of a policy.
    pub(super) fn add(&mut self, place: usize, sources: &[Source]) {
        for source in sources {
            match source {
                Source::All => {
                    self.all.get_or_insert(place);
                }
                Source::Interface(name) => {
                    self.interfaces.entry(name.as_str().to_owned()).or_insert(place);
                }
                Source::Vlan(id) => {
                    self.vlans.entry(*id).or_insert(place);
                }
                Source::Subnet(net) => self.sources.add(*net, place),
                Source::Device(id) => {
                    self.devices.entry(*id).or_insert(place);
                }
                Source::DeviceGroup(id) => {
                    self.groups.entry(*id).or_insert(place);
                    let members = self.input.state.device_groups.get(*id).map(|group| &group.members);
                    for member in members.into_iter().flatten() {
                        self.devices.entry(*member).or_insert(place);
                    }
                }
                Source::Destination { net, port: None } => self.destinations.add(*net, place),
                Source::Destination { net, port: Some(port) } => {
                    self.ports.entry(*port).or_default().add(*net, place);
                }
                Source::Domain(pattern) => self.domains.push((pattern.clone(), place)),
            }
        }
    }

    /// The policies that take everything these sources match; none if anything is left over.
    pub(super) fn covering(&self, sources: &[Source]) -> Option<BTreeSet<usize>> {
        let mut covering = BTreeSet::new();
        if sources.is_empty() {
            return None;
        }
        if let Some(all) = self.everything() {
            return Some(all);
        }
        for source in sources {
            covering.extend(self.of(source)?);
        }
        Some(covering)
    }

    /// The policies that take all traffic, alone or one for each family.
    fn everything(&self) -> Option<BTreeSet<usize>> {
        if let Some(all) = self.all {
            return Some(BTreeSet::from([all]));
        }
        let whole = |net: IpNet| self.sources.first(&net).or_else(|| self.destinations.first(&net));
        Some(BTreeSet::from([whole(IpNet::V4(Ipv4Net::default()))?, whole(IpNet::V6(Ipv6Net::default()))?]))
    }

    fn of(&self, source: &Source) -> Option<BTreeSet<usize>> {
        let one = |place: Option<usize>| place.map(|place| BTreeSet::from([place]));
        match source {
            Source::All => None,
            Source::Domain(pattern) => {
                let covers = |(other, _): &&(DomainPattern, usize)| fqdn_match::covers(other, pattern);
                one(self.domains.iter().find(covers).map(|(_, place)| *place))
            }
            Source::Interface(name) => {
                let own = self.interfaces.get(name.as_str()).copied();
                let link = self.input.facts.links.get(name.as_str());
                let vlan = link.and_then(|link| link.vlan.as_ref()).map(|(_, id)| *id);
                one(own.or_else(|| self.vlans.get(&vlan?).copied()))
            }
            Source::Vlan(id) => one(self.vlans.get(id).copied()),
            Source::Subnet(net) => one(self.sources.first(net).or_else(|| self.family(net))),
            Source::Device(id) => one(self.devices.get(id).copied()),
            Source::DeviceGroup(id) => {
                if let Some(place) = self.groups.get(id) {
                    return one(Some(*place));
                }
                let group = self.input.state.device_groups.get(*id)?;
                if group.members.is_empty() {
                    return None;
                }
                group.members.iter().map(|member| self.devices.get(member).copied()).collect()
            }
            Source::Destination { net, port: None } => {
                one(self.destinations.first(net).or_else(|| self.family(net)))
            }
            Source::Destination { net, port: Some(port) } => {
                let to_port = || self.ports.get(port)?.first(net);
                one(self.destinations.first(net).or_else(to_port).or_else(|| self.family(net)))
            }
        }
    }

    /// Returns the policy that matches all traffic of the address family of a network.
    fn family(&self, net: &IpNet) -> Option<usize> {
        let whole = match net {
            IpNet::V4(_) => IpNet::V4(Ipv4Net::default()),
            IpNet::V6(_) => IpNet::V6(Ipv6Net::default()),
        };
        self.sources.first(&whole).or_else(|| self.destinations.first(&whole))
    }
}

/// Networks, each with the first policy that has it.
#[derive(Debug, Default)]
struct Prefixes {
    nets: BTreeMap<IpNet, usize>,
    /// Prefix lengths that occur. A lookup tries no others.
    lengths: BTreeSet<(bool, u8)>,
}

impl Prefixes {
    fn add(&mut self, net: IpNet, place: usize) {
        self.nets.entry(net).or_insert(place);
        self.lengths.insert((net.addr().is_ipv6(), net.prefix_len()));
    }

    /// The first policy with a network that contains this one.
    fn first(&self, net: &IpNet) -> Option<usize> {
        let ipv6 = net.addr().is_ipv6();
        let lengths = self.lengths.range((ipv6, 0)..=(ipv6, net.prefix_len()));
        let around = lengths.filter_map(|(_, length)| Some(IpNet::new(net.addr(), *length).ok()?.trunc()));
        around.filter_map(|around| self.nets.get(&around).copied()).min()
    }
}
