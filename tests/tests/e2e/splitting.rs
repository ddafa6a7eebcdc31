//! New connections are shared among exits, one after the other; a connection stays where it began.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_tests::scene::{Scene, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{PATIENCE, TcpFlow, connections};
use serde_json::json;

use crate::{FAMILIES, assert_blocked, assert_nothing_leaked, assert_the_tap_sees};

fn split_scene() -> (Scene, [String; 2]) {
    let scene = Scene::start().expect("scene");
    let network = &scene.network;
    let laptop = scene.device(&network.laptop).expect("device");
    let tunnels = [
        scene.tunnel("wg-a", &network.exit_a).expect("tunnel"),
        scene.tunnel("wg-b", &network.exit_b).expect("tunnel"),
    ];
    let mut split = policy("split", 10, ("device", &laptop), &["wg-a", "wg-b"]);
    split["splitting"] = json!(true);
    scene.policy(&split).expect("policy");
    assert_the_tap_sees(&scene, &network.tv);
    (scene, tunnels)
}

fn tally(seen: Vec<IpAddr>) -> BTreeMap<IpAddr, usize> {
    let mut tally = BTreeMap::new();
    for address in seen {
        *tally.entry(address).or_default() += 1;
    }
    tally
}

#[test]
fn twenty_connections_are_ten_and_ten() {
    let (scene, _) = split_scene();
    let network = &scene.network;
    for ipv6 in FAMILIES {
        let seen = tally(connections(&network.laptop, server(ipv6), 20).expect("connections"));
        let expected = [(network.exit_a.address(ipv6), 10), (network.exit_b.address(ipv6), 10)];
        assert_eq!(seen, BTreeMap::from(expected));
    }
    assert_nothing_leaked(&scene);
}

#[test]
fn a_connection_stays_on_its_exit_while_others_come_and_go() {
    let (scene, _) = split_scene();
    let network = &scene.network;
    for ipv6 in FAMILIES {
        let mut flows: Vec<_> = (0..4)
            .map(|_| {
                let mut flow = TcpFlow::open(&network.laptop, server(ipv6)).expect("flow");
                let first = flow.ask(PATIENCE).seen().expect("answer");
                (flow, first)
            })
            .collect();
        assert_eq!(tally(flows.iter().map(|(_, first)| *first).collect()).len(), 2);
        connections(&network.laptop, server(ipv6), 3).expect("connections");
        for (flow, first) in &mut flows {
            assert_eq!(flow.ask(PATIENCE).seen(), Some(*first));
        }
    }
    assert_nothing_leaked(&scene);
}

#[test]
fn an_exit_that_is_down_gets_no_new_connections_and_the_last_closes_the_way() {
    let (scene, [a, b]) = split_scene();
    let network = &scene.network;
    scene.bring_down(&a).expect("down");
    for ipv6 in FAMILIES {
        let seen = tally(connections(&network.laptop, server(ipv6), 6).expect("connections"));
        assert_eq!(seen, BTreeMap::from([(network.exit_b.address(ipv6), 6)]));
    }
    scene.bring_down(&b).expect("down");
    assert_blocked(&network.laptop);
    assert_nothing_leaked(&scene);
}
