//! Tests of views: what nodes learn about each other, and that differences add up.

use proptest::prelude::*;

use super::*;
use crate::keys::{DiscoKey, MachineKey, NodeKey};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn node(id: u8) -> Node {
    Node {
        id: id.into(),
        machine: MachineKey([id; 32]),
        key: NodeKey([id; 32]),
        name: format!("node-{id}"),
        os: "linux".to_owned(),
        addresses: crate::addresses::free(id.into(), |_| false).unwrap(),
        tags: Vec::new(),
        ephemeral: false,
        created: at(0),
        key_expiry: Some(at(100)),
        advertised: Vec::new(),
        approved: Vec::new(),
        last_seen: at(0),
    }
}

fn router(id: u8, routes: &[&str]) -> Node {
    let routes: Vec<IpNet> = routes.iter().map(|route| route.parse().unwrap()).collect();
    Node { advertised: routes.clone(), approved: routes, ..node(id) }
}

fn profile() -> MeshProfile {
    MeshProfile { domain: "mesh".to_owned(), owner: "gateway".to_owned(), derp_map: DerpMap::default() }
}

fn view(id: u64, members: &[(Node, Presence)], second: i64) -> View {
    let members: Vec<_> = members.iter().map(|(node, presence)| (node, presence)).collect();
    View::of(id, &members, &profile(), at(second)).unwrap()
}

fn online() -> Presence {
    Presence { stream: Some(1), ..Presence::default() }
}

#[test]
fn peers_see_each_other_until_a_key_ends() {
    let mut members = [(node(1), online()), (node(2), Presence::default())];
    members[1].0.key_expiry = None;
    let before = view(2, &members, 99);
    assert_eq!(before.peers.keys().copied().collect::<Vec<_>>(), [1]);
    assert!(before.peers[&1].online && !before.node.online);
    let after = view(2, &members, 100);
    assert_eq!(after.since(&before).unwrap().peers_removed, [1]);
    let ended = view(1, &members, 100);
    assert!(ended.node.expired && ended.peers.is_empty());
}

#[test]
fn one_node_at_a_time_routes_a_prefix() {
    let [lan, exit] = ["192.168.7.0/24", "0.0.0.0/0"];
    let mut members = [(router(1, &[lan, exit]), Presence::default()), (router(2, &[lan, exit]), online())];
    members.iter_mut().for_each(|(node, _)| node.key_expiry = None);
    let routes = |members: &[(Node, Presence)], id: u64| {
        let view = view(3 - id, members, 0);
        view.peers[&id].allowed_ips.iter().skip(1).map(ToString::to_string).collect::<Vec<_>>()
    };
    let has = |members: &[(Node, Presence)], id: u64, route: &str| {
        let all = view(3 - id, members, 0).peers[&id].allowed_ips.clone();
        all.contains(&route.parse().unwrap())
    };
    assert!(!routes(&members, 2).is_empty());
    assert!(!has(&members, 1, lan) && has(&members, 2, lan));
    assert!(has(&members, 1, exit) && has(&members, 2, exit));
    members[0].1 = online();
    assert!(has(&members, 1, lan) && !has(&members, 2, lan));
}

#[test]
fn first_message_has_the_names_that_clients_read() {
    let mut members = [(node(1), online()), (node(2), Presence::default())];
    members[1].1 = Presence {
        version: 130,
        disco_key: DiscoKey([4; 32]),
        endpoints: vec!["192.0.2.1:41641".parse().unwrap()],
        home_derp: 999,
        stream: None,
    };
    let message = serde_json::to_value(view(1, &members, 0).whole(&profile(), at(0))).unwrap();
    let peer = &message["Peers"][0];
    assert_eq!(peer["Addresses"], serde_json::json!(["100.64.0.2/32", "fd7a:115c:a1e0::2/128"]));
    assert_eq!(peer["AllowedIPs"].as_array().map(Vec::len), Some(2));
    assert_eq!((&peer["DERP"], &peer["HomeDERP"]), (&"127.3.3.40:999".into(), &999.into()));
    assert_eq!(peer["Endpoints"][0], "192.0.2.1:41641");
    assert_eq!(peer["Name"], "node-2.mesh.");
    assert!(message["Node"].get("DiscoKey").is_none(), "an empty key ends the stream of some clients");
    assert_eq!(message["PacketFilter"][0]["DstPorts"][0]["Ports"]["Last"], 65535);
}

proptest! {
    /// Differences, applied one after another, lead to the view that a new stream begins with.
    #[test]
    fn differences_add_up(steps in prop::collection::vec((2..6_u8, 0..4_u8, any::<u8>()), 1..30)) {
        let mut members = vec![(Node { key_expiry: None, ..node(1) }, online())];
        let mut seen = view(1, &members, 0);
        let mut known = seen.peers.clone();
        for (id, kind, value) in steps {
            members.retain(|(node, _)| kind != 0 || node.id != u64::from(id));
            if kind > 0 && members.iter().all(|(node, _)| node.id != u64::from(id)) {
                members.push((node(id), Presence::default()));
            }
            if let Some((node, presence)) = members.iter_mut().find(|(node, _)| node.id == u64::from(id)) {
                presence.home_derp = value.into();
                presence.stream = (value % 2 == 0).then_some(1);
                if kind == 3 {
                    node.key_expiry = Some(at(-1));
                }
            }
            let next = view(1, &members, 0);
            if let Some(difference) = next.since(&seen) {
                known.retain(|id, _| !difference.peers_removed.contains(id));
                known.extend(difference.peers_changed.into_iter().map(|peer| (peer.id, peer)));
            }
            prop_assert_eq!(&known, &next.peers);
            seen = next;
        }
    }
}
