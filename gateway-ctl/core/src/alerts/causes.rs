//! Causes: which alert explains which. Tunnels depend on the uplink below them, policies on their hops, and DNS upstreams on
//! their egress.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gateway_model::State;
use gateway_model::id::Id;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::tunnel::Uplink;

use super::key::AlertKey;
use crate::compile::{Compiled, DefaultUplink, Input, Leg, LegKind, Legs, Underlay, named_leg};

/// Thing that others depend on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    /// Uplink, by its interface.
    Uplink(String),
    Tunnel(Id),
    /// Peer of the mesh, by its name.
    MeshPeer(String),
    Policy(Id),
    /// DNS upstream, by the subject of its alerts.
    Upstream(String),
}

/// Dependencies between the subjects of alerts, and the subjects whose state is in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    direct: BTreeMap<Node, Vec<Node>>,
    doubtful: BTreeSet<Node>,
    /// Uplinks of traffic that has none of its own.
    default: Vec<Node>,
}

/// Possible causes of an alert, the nearest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    pub keys: Vec<AlertKey>,
    /// One of them is failing, and its alert may follow.
    pub in_doubt: bool,
}

impl Dependencies {
    /// Returns the dependencies of a plan. `doubtful` are interfaces of uplinks whose probes fail, and which are not offline
    /// yet.
    pub fn of(input: &Input<'_>, compiled: &Compiled, doubtful: &BTreeSet<String>) -> Dependencies {
        let Input { state, network, .. } = input;
        let legs = &compiled.legs;
        let mut dependencies = Dependencies {
            doubtful: doubtful.iter().cloned().map(Node::Uplink).collect(),
            ..Dependencies::default()
        };
        let uplink = |leg: &Leg| Node::Uplink(leg.interface.clone());
        dependencies.default = match legs.default {
            DefaultUplink::Leg(number) => legs.get(number).map(uplink).into_iter().collect(),
            DefaultUplink::MainTable => legs.uplinks().map(uplink).collect(),
            DefaultUplink::Nowhere => Vec::new(),
        };
        if dependencies.default.is_empty() {
            let all = network.uplinks.iter().map(|uplink| Node::Uplink(uplink.interface.clone()));
            dependencies.default = all.collect();
        }
        dependencies.add_tunnels(state, legs);
        for leg in legs.by_number.values().filter(|leg| leg.mesh_peer().is_some()) {
            dependencies.direct.insert(node(leg), dependencies.default.clone());
        }
        for policy in &compiled.policies {
            let legs_of = policy.hops.iter().flat_map(|hop| hop.by.iter().chain([&hop.leg]));
            let below = legs_of.filter_map(|number| Some(node(legs.get((*number)?)?))).collect();
            dependencies.direct.insert(Node::Policy(policy.id), below);
        }
        dependencies
    }

    fn add_tunnels(&mut self, state: &State, legs: &Legs) {
        for tunnel in state.tunnels.iter() {
            let underlay = legs.of_tunnel(tunnel.meta.id).map_or(Underlay::Default, |leg| leg.underlay);
            let below = match (underlay, &tunnel.uplink) {
                (Underlay::Leg(number), _) => legs.get(number).map(|leg| vec![node(leg)]),
                (_, Uplink::Interface(name)) => Some(vec![Node::Uplink(name.to_string())]),
                (Underlay::Default | Underlay::Nowhere, Uplink::Auto) => None,
            };
            let below = below.unwrap_or_else(|| self.default.clone());
            self.direct.insert(Node::Tunnel(tunnel.meta.id), below);
        }
    }

    /// Adds the egress of a DNS upstream: the name of a tunnel or an uplink, or else the default route.
    pub fn add_upstream(&mut self, state: &State, legs: &Legs, subject: &str, egress: &str) {
        let leg = named_leg(state, legs.by_number.values(), egress);
        let below = leg.map_or_else(|| self.default.clone(), |leg| vec![node(leg)]);
        self.direct.insert(Node::Upstream(subject.to_owned()), below);
    }

    /// Returns what may cause an alert.
    pub fn causes(&self, key: &AlertKey) -> Causes {
        let mut causes = Causes::default();
        if key.kind == AlertKind::WanFailover {
            // Loss that moves traffic to another uplink explains no failure of what is above.
            causes.keys.push(AlertKey::new(AlertKind::WanDegraded, key.subject.clone()));
        }
        let mut next: VecDeque<Node> = self.below(key).into();
        let mut visited: BTreeSet<Node> = BTreeSet::new();
        while let Some(node) = next.pop_front() {
            causes.in_doubt |= self.doubtful.contains(&node);
            causes.keys.extend(alerts_of(&node).filter(|cause| cause != key));
            next.extend(
                self.direct
                    .get(&node)
                    .into_iter()
                    .flatten()
                    .filter(|below| !visited.contains(below))
                    .cloned(),
            );
            visited.insert(node);
        }
        causes
    }

    /// Returns the nodes right below the subject of an alert.
    fn below(&self, key: &AlertKey) -> Vec<Node> {
        use AlertKind::*;
        let id = || key.subject.parse::<Id>().ok();
        let direct = |node| self.direct.get(&node).cloned().unwrap_or_default();
        match key.kind {
            TunnelDown => id().map(|id| direct(Node::Tunnel(id))).unwrap_or_default(),
            // They are consequences of the tunnel itself, too.
            HandshakeStale | TunnelFlapping => id().map(|id| vec![Node::Tunnel(id)]).unwrap_or_default(),
            PolicyBlocked | PolicyFallback => id().map(|id| direct(Node::Policy(id))).unwrap_or_default(),
            WanFailover | WanFlapping => vec![Node::Uplink(key.subject.clone())],
            DnsUpstreamDown => direct(Node::Upstream(key.subject.clone())),
            BlocklistUpdateFailed => self.default.clone(),
            _ => Vec::new(),
        }
    }
}

fn node(leg: &Leg) -> Node {
    match &leg.kind {
        LegKind::Uplink => Node::Uplink(leg.interface.clone()),
        LegKind::Tunnel(id) => Node::Tunnel(*id),
        LegKind::MeshPeer(name) => Node::MeshPeer(name.clone()),
    }
}

/// Returns the alerts that explain failures of what depends on a node.
fn alerts_of(node: &Node) -> impl Iterator<Item = AlertKey> {
    let keys = match node {
        Node::Uplink(interface) => [AlertKind::WanDown, AlertKind::CaptivePortal]
            .map(|kind| AlertKey::new(kind, interface.clone()))
            .to_vec(),
        Node::Tunnel(id) => vec![AlertKey::new(AlertKind::TunnelDown, id.to_string())],
        Node::MeshPeer(_) | Node::Policy(_) | Node::Upstream(_) => Vec::new(),
    };
    keys.into_iter()
}

#[cfg(test)]
impl Dependencies {
    /// Makes a tunnel depend on an uplink.
    pub fn with_tunnel(mut self, tunnel: Id, interface: &str) -> Dependencies {
        self.direct.insert(Node::Tunnel(tunnel), vec![Node::Uplink(interface.to_owned())]);
        self
    }

    /// Puts an uplink in doubt.
    pub fn with_doubtful(mut self, interface: &str) -> Dependencies {
        self.doubtful.insert(Node::Uplink(interface.to_owned()));
        self
    }
}
