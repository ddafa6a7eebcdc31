//! Two members with a network between them that this file is.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const A: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 1000);
const B: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 2000);

fn pair(number: u8) -> KeyPair {
    KeyPair::of_secret([number; 32])
}

fn node(number: u8) -> NodeKey {
    NodeKey(pair(number).public())
}

/// Two members, and the datagrams in flight.
struct Network {
    members: [Paths; 2],
    now: Duration,
    /// True if direct packets arrive.
    is_open: bool,
    in_use: [Option<SocketAddr>; 2],
}

impl Network {
    fn new(is_open: bool, endpoints: [Vec<SocketAddr>; 2]) -> Network {
        let mut members = [Paths::new(pair(11), node(1)), Paths::new(pair(12), node(2))];
        let keys = [1, 2].map(node);
        let disco = [members[0].disco_key(), members[1].disco_key()];
        let [of_a, of_b] = endpoints;
        members[0].set_peers([PathPeer { key: keys[1], disco: disco[1], endpoints: of_b }]);
        members[1].set_peers([PathPeer { key: keys[0], disco: disco[0], endpoints: of_a.clone() }]);
        members[0].set_endpoints(of_a);
        members[1].set_endpoints(vec![B]);
        Network { members, now: Duration::from_secs(100), is_open, in_use: [None, None] }
    }

    /// Delivers everything.
    fn deliver(&mut self, from: usize, actions: Vec<Action>) {
        let mut waiting: VecDeque<(usize, Action)> =
            actions.into_iter().map(|action| (from, action)).collect();
        while let Some((from, action)) = waiting.pop_front() {
            let to = 1 - from;
            let (origin, datagram) = match action {
                Action::UsePath { direct, .. } => {
                    self.in_use[from] = direct;
                    continue;
                }
                Action::Send { to: address, datagram } if self.is_open && address == [A, B][to] => {
                    (Origin::Direct([A, B][from]), datagram)
                }
                Action::Send { .. } => continue,
                Action::Relay { datagram, .. } => (Origin::Relayed([1, 2].map(node)[from]), datagram),
            };
            let answers = self.members[to].receive(self.now, origin, &datagram);
            waiting.extend(answers.into_iter().map(|action| (to, action)));
        }
    }

    fn tick(&mut self, seconds: u64, is_active: bool) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            for member in 0..2 {
                let actions = self.members[member].tick(self.now, |_| is_active);
                self.deliver(member, actions);
            }
        }
    }

    fn wake(&mut self, member: usize) {
        let peer = [2, 1].map(node)[member];
        let actions = self.members[member].wake(peer, self.now);
        self.deliver(member, actions);
    }
}

#[test]
fn both_find_the_direct_path() {
    let mut network = Network::new(true, [vec![A], vec![B]]);
    network.wake(0);
    assert_eq!(network.in_use, [Some(B), Some(A)]);
    assert_eq!(network.members[0].direct(node(2)).map(|path| path.address), Some(B));
}

#[test]
fn a_call_by_the_relay_replaces_unknown_endpoints() {
    // The second member knows no endpoint of the first one, and is the one that may be reached.
    let mut network = Network::new(true, [vec![], vec![]]);
    network.members[0].set_endpoints(vec![A]);
    network.wake(0);
    assert_eq!(network.in_use, [Some(B), Some(A)]);
}

#[test]
fn a_dead_path_is_given_up_and_comes_back() {
    let mut network = Network::new(true, [vec![A], vec![B]]);
    network.tick(2, true);
    assert_eq!(network.in_use, [Some(B), Some(A)]);
    network.tick(60, true);
    assert_eq!(network.in_use, [Some(B), Some(A)], "pings keep it");
    network.is_open = false;
    network.tick(15, true);
    assert_eq!(network.in_use, [None, None]);
    network.is_open = true;
    network.tick(6, true);
    assert_eq!(network.in_use, [Some(B), Some(A)]);
}

#[test]
fn nothing_is_sent_without_traffic() {
    let mut network = Network::new(true, [vec![A], vec![B]]);
    assert!(network.members[0].tick(network.now, |_| false).is_empty());
    network.tick(2, true);
    network.tick(15, false);
    assert_eq!(network.in_use, [None, None], "a path that is not pinged is not trusted");
}

#[test]
fn strangers_have_no_effect() {
    let mut network = Network::new(true, [vec![A], vec![B]]);
    let to = network.members[0].disco_key();
    let ping = DiscoMessage::Ping { transaction: [1; 12], node: Some(node(2)) };
    let foreign = seal(&pair(13), to, &ping).unwrap();
    assert!(network.members[0].receive(network.now, Origin::Direct(B), &foreign).is_empty());
    let own = seal(&pair(12), to, &ping).unwrap();
    assert!(
        network.members[0].receive(network.now, Origin::Relayed(node(3)), &own).is_empty(),
        "another relayed node"
    );
    let other = DiscoMessage::Ping { transaction: [1; 12], node: Some(node(3)) };
    let of_other_node = seal(&pair(12), to, &other).unwrap();
    assert!(network.members[0].receive(network.now, Origin::Direct(B), &of_other_node).is_empty());
}

#[test]
fn a_pong_that_was_not_asked_for_makes_no_path() {
    let mut network = Network::new(true, [vec![A], vec![B]]);
    let pong = DiscoMessage::Pong { transaction: [1; 12], source: A };
    let datagram = seal(&pair(12), network.members[0].disco_key(), &pong).unwrap();
    assert!(network.members[0].receive(network.now, Origin::Direct(B), &datagram).is_empty());
}

#[test]
fn endpoints_inside_the_mesh_or_of_many_hosts_are_not_pinged() {
    let refused = [
        "100.64.0.7:1",
        "224.0.0.1:1",
        "127.0.0.1:1",
        "0.0.0.0:1",
        "192.0.2.9:0",
        "[fd7a:115c:a1e0::1]:1",
        "[100::7]:1",
    ];
    let mut network = Network::new(true, [vec![A], refused.map(|text| text.parse().unwrap()).to_vec()]);
    let actions = network.members[0].wake(node(2), network.now);
    assert!(!actions.iter().any(|action| matches!(action, Action::Send { .. })), "{actions:?}");
}

proptest! {
    #[test]
    fn no_bytes_have_an_effect(bytes: Vec<u8>, relayed: bool) {
        let mut network = Network::new(true, [vec![A], vec![B]]);
        let origin = if relayed { Origin::Relayed(node(2)) } else { Origin::Direct(B) };
        prop_assert!(network.members[0].receive(network.now, origin, &bytes).is_empty());
    }

    #[test]
    fn paths_follow_the_network(steps in prop::collection::vec((any::<bool>(), 1..20_u64), 1..12)) {
        let mut network = Network::new(true, [vec![A], vec![B]]);
        for (is_open, seconds) in steps {
            network.is_open = is_open;
            network.tick(seconds, true);
        }
        network.is_open = false;
        network.tick(15, true);
        prop_assert_eq!(network.in_use, [None, None]);
        network.is_open = true;
        network.tick(6, true);
        prop_assert_eq!(network.in_use, [Some(B), Some(A)]);
    }
}
