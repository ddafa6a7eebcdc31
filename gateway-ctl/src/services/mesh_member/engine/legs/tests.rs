//! Numbers and states of peers as legs.

use gateway_core::indexes::LegId;
use gateway_mesh::wire::MapResponse;
use gateway_model::id::Revision;
use gateway_model::registry::kind;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::os::wireguard::{Engine, PeerStatus};

const KEY: NodeKey = NodeKey([7; 32]);

fn state(hops: &[&str]) -> State {
    let now = Timestamp::UNIX_EPOCH;
    let mut state = State::new(now).begin(now);
    let hops: Vec<_> = hops.iter().map(|name| json!({"type": "mesh_peer", "target": name})).collect();
    let policy = json!({"name": "p", "source_type": "all", "hop_mode": "failover", "hops": hops});
    kind("routing_policy").expect("a kind").create(&mut state, policy).expect("a policy");
    state
}

fn map(allowed: &[&str], expired: bool) -> NetworkMap {
    let mut map = NetworkMap::default();
    let peer = json!({"ID": 2, "Name": "exit.mesh.", "Key": KEY, "Expired": expired,
        "Addresses": ["100.64.0.9/32"], "AllowedIPs": allowed});
    let response: MapResponse =
        serde_json::from_value(json!({"Domain": "mesh", "Node": {"ID": 1}, "Peers": [peer]})).expect("a map");
    assert!(map.apply(response));
    map
}

fn status(rx_bytes: u64) -> DeviceStatus {
    let peer = PeerStatus { public_key: KEY.0, endpoint: None, last_handshake: None, rx_bytes, tx_bytes: 0 };
    DeviceStatus { engine: Engine::Userspace, public_key: [0; 32], listen_port: 1, peers: vec![peer] }
}

const EXIT: &[&str] = &["100.64.0.9/32", "0.0.0.0/0", "::/0"];

#[tokio::test(start_paused = true)]
async fn peer_is_up_from_its_first_packet_until_it_is_silent() {
    let mut legs = PeerLegs::default();
    legs.set_state(&state(&["exit"]), true);
    let leg = |legs: &PeerLegs| legs.facts(Instant::now()).0["exit"].clone();
    assert_eq!(legs.facts(Instant::now()).1["exit"], "the mesh has no peer of this name");
    assert!(legs.tuns(1280).is_empty());
    legs.set_map(&map(EXIT, false));
    assert_eq!(leg(&legs).reason, "it has not answered yet");
    assert_eq!(leg(&legs).routes.len(), 2, "the address of the peer is no route");
    assert_eq!(legs.tuns(1280).len(), 1);
    legs.observe(&status(0), Instant::now());
    assert!(!leg(&legs).usable);
    legs.observe(&status(100), Instant::now());
    assert!(leg(&legs).usable && leg(&legs).reason.is_empty());
    tokio::time::advance(SILENCE).await;
    legs.observe(&status(100), Instant::now());
    assert_eq!(leg(&legs).reason, "no answer for 15 s");
    legs.observe(&status(132), Instant::now());
    assert!(leg(&legs).usable);
}

#[test]
fn reasons_say_what_the_map_has() {
    let mut legs = PeerLegs::default();
    legs.set_state(&state(&["exit"]), true);
    legs.set_map(&map(EXIT, true));
    assert_eq!(legs.facts(Instant::now()).1["exit"], "the key of the peer has ended");
    assert!(legs.tuns(1280).is_empty(), "nothing is sent by an old key");
    legs.set_map(&map(&["100.64.0.9/32", "100.64.7.0/24", "fd7a:115c:a1e0:7::/64"], false));
    let reason = legs.facts(Instant::now()).0["exit"].reason.clone();
    assert!(reason.starts_with("it offers no routes"), "prefixes inside the mesh are no routes: {reason}");
}

#[test]
fn only_peers_that_hops_name_are_probed() {
    let mut legs = PeerLegs::default();
    legs.set_map(&map(EXIT, false));
    let own: BTreeSet<IpAddr> = ["100.64.0.1".parse().unwrap()].into();
    let probed = |legs: &mut PeerLegs| (0..PROBE_INTERVAL).map(|_| legs.probes(&own).len()).sum::<usize>();
    assert_eq!(probed(&mut legs), 0);
    legs.set_state(&state(&["exit"]), true);
    assert_eq!(probed(&mut legs), 1);
}

proptest! {
    #[test]
    fn numbers_stay_and_differ(steps in proptest::collection::vec(
        proptest::collection::btree_set("[a-z]{1,3}", 0..16), 1..8)) {
        let mut legs = PeerLegs::default();
        let mut before: BTreeMap<String, LegId> = BTreeMap::new();
        for (revision, names) in (1..).zip(&steps) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut state = state(&names);
            state.revision = Revision(revision);
            legs.set_state(&state, true);
            let different: BTreeSet<LegId> = legs.numbers.values().copied().collect();
            prop_assert_eq!((different.len(), legs.numbers.len()), (names.len(), names.len()));
            prop_assert!(legs.numbers.values().all(|leg| leg.get() > u8::MAX - MAX_LEGS));
            for (name, number) in &legs.numbers {
                prop_assert!(before.get(name).is_none_or(|kept| kept == number));
            }
            before.clone_from(&legs.numbers);
        }
    }
}

#[test]
fn no_number_is_given_twice_or_beyond_the_last() {
    let mut used = BTreeSet::new();
    for name in 0..MAX_LEGS {
        let number = free_number(&name.to_string(), |leg| used.contains(&leg)).expect("a number");
        assert!(used.insert(number));
    }
    assert_eq!(free_number("one more", |leg| used.contains(&leg)), None);
}

#[test]
fn prefixes_of_peers_need_no_hop_where_they_are_accepted() {
    let mut legs = PeerLegs::default();
    legs.set_state(&state(&[]), true);
    legs.set_map(&map(EXIT, false));
    assert!(legs.tuns(1280).is_empty(), "an exit needs a hop");
    legs.set_map(&map(&["100.64.0.9/32", "0.0.0.0/0", "10.50.0.0/16"], false));
    assert!(legs.facts(Instant::now()).0["exit"].accepts_routes);
    assert_eq!(legs.tuns(1280).len(), 1);
    legs.set_state(&state(&[]), false);
    assert!(legs.tuns(1280).is_empty() && legs.facts(Instant::now()).0.is_empty());
}
