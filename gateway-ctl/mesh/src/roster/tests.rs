//! Tests of registration: who becomes a node, and who stays one.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::auth_key::AuthKeyError;
use crate::wire::{HostInfo, RegisterAuth, RegisterRequest};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn lifetimes() -> Lifetimes {
    Lifetimes { key: SignedDuration::from_secs(1000), ephemeral: SignedDuration::from_secs(60) }
}

fn terms() -> AuthKeyTerms {
    AuthKeyTerms { reusable: true, ephemeral: false, expires: at(500), tags: Vec::new(), usage_limit: 0 }
}

fn key(roster: &mut Roster, terms: AuthKeyTerms) -> String {
    roster.add_key(terms, at(0)).unwrap().expect("room for a key").1
}

fn request(node: u8, auth_key: Option<&str>) -> RegisterRequest {
    RegisterRequest {
        node_key: NodeKey([node; 32]),
        auth: auth_key.map(|text| RegisterAuth { auth_key: Some(text.to_owned()) }),
        hostinfo: HostInfo { hostname: "laptop".to_owned(), ..HostInfo::default() },
        ..RegisterRequest::default()
    }
}

fn register(
    roster: &mut Roster,
    machine: u8,
    request: &RegisterRequest,
    second: i64,
) -> Result<Registered, Refusal> {
    roster.register(MachineKey([machine; 32]), request, lifetimes(), at(second))
}

#[test]
fn nodes_have_names_and_addresses_of_their_own() {
    let mut roster = Roster::default();
    let text = key(&mut roster, terms());
    for number in 1..=3 {
        let registered = register(&mut roster, number, &request(number, Some(&text)), 1);
        assert_eq!(registered, Ok(Registered::Member(number.into())));
    }
    let names: Vec<_> = roster.nodes().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["laptop", "laptop-1", "laptop-2"]);
    assert_eq!(roster.node(3).unwrap().addresses[0].to_string(), "100.64.0.3");
}

#[test]
fn no_node_registers_without_a_valid_key() {
    let mut roster = Roster::default();
    let once = key(&mut roster, AuthKeyTerms { reusable: false, ..terms() });
    let wrong = format!("{}x", &once[..once.len() - 1]);
    for (auth_key, second, refusal) in [
        (None, 1, Refusal::NoAuthKey),
        (Some(""), 1, Refusal::NoAuthKey),
        (Some("tskey-auth-1"), 1, Refusal::AuthKey(AuthKeyError::Unknown)),
        (Some(wrong.as_str()), 1, Refusal::AuthKey(AuthKeyError::Unknown)),
        (Some(once.as_str()), 500, Refusal::AuthKey(AuthKeyError::Expired)),
    ] {
        assert_eq!(register(&mut roster, 1, &request(1, auth_key), second), Err(refusal));
    }
    register(&mut roster, 1, &request(1, Some(&once)), 1).unwrap();
    let second = register(&mut roster, 2, &request(2, Some(&once)), 1);
    assert_eq!(second, Err(Refusal::AuthKey(AuthKeyError::UsedUp)));
    assert_eq!(roster.nodes().count(), 1);
}

#[test]
fn member_comes_back_without_using_a_key() {
    let mut roster = Roster::default();
    let once = key(&mut roster, AuthKeyTerms { reusable: false, ..terms() });
    register(&mut roster, 1, &request(1, Some(&once)), 1).unwrap();
    assert_eq!(register(&mut roster, 1, &request(1, Some(&once)), 9), Ok(Registered::Member(1)));
    assert_eq!(register(&mut roster, 1, &request(1, None), 9), Ok(Registered::Member(1)));
    let rotated = RegisterRequest { old_node_key: NodeKey([1; 32]), ..request(7, None) };
    assert_eq!(register(&mut roster, 1, &rotated, 9), Ok(Registered::Member(1)));
    let node = roster.node(1).unwrap();
    assert_eq!((node.key, node.key_expiry), (NodeKey([7; 32]), Some(at(1001))));
    assert!(!roster.admits(NodeKey([1; 32]), at(9)));
}

#[test]
fn expired_node_needs_a_key() {
    let mut roster = Roster::default();
    let text = key(&mut roster, AuthKeyTerms { expires: at(5000), ..terms() });
    register(&mut roster, 1, &request(1, Some(&text)), 1).unwrap();
    assert!(roster.admits(NodeKey([1; 32]), at(1000)) && !roster.admits(NodeKey([1; 32]), at(1001)));
    assert_eq!(register(&mut roster, 1, &request(1, None), 1001), Err(Refusal::NoAuthKey));
    assert_eq!(register(&mut roster, 1, &request(1, Some(&text)), 1002), Ok(Registered::Member(1)));
    assert!(roster.admits(NodeKey([1; 32]), at(2001)));
}

#[test]
fn machine_cannot_take_the_key_of_another() {
    let mut roster = Roster::default();
    let text = key(&mut roster, terms());
    register(&mut roster, 1, &request(1, Some(&text)), 1).unwrap();
    assert_eq!(register(&mut roster, 2, &request(1, Some(&text)), 1), Err(Refusal::ForeignNodeKey));
    let stolen = RegisterRequest { old_node_key: NodeKey([1; 32]), ..request(2, None) };
    assert_eq!(register(&mut roster, 2, &stolen, 1), Err(Refusal::NoAuthKey));
}

#[test]
fn node_that_logs_out_is_gone_at_once() {
    let mut roster = Roster::default();
    let text = key(&mut roster, terms());
    let ephemeral = key(&mut roster, AuthKeyTerms { ephemeral: true, ..terms() });
    register(&mut roster, 1, &request(1, Some(&text)), 1).unwrap();
    register(&mut roster, 2, &request(2, Some(&ephemeral)), 1).unwrap();
    for machine in [1, 2] {
        let out = RegisterRequest { expiry: Some(at(-10)), ..request(machine, None) };
        assert_eq!(register(&mut roster, machine, &out, 5), Ok(Registered::LoggedOut(machine.into())));
        assert!(!roster.admits(NodeKey([machine; 32]), at(5)));
    }
    assert_eq!(roster.nodes().map(|node| node.id).collect::<Vec<_>>(), [1]);
}

#[test]
fn node_with_tags_does_not_expire() {
    let mut roster = Roster::default();
    let text = key(&mut roster, AuthKeyTerms { tags: vec!["tag:server".to_owned()], ..terms() });
    register(&mut roster, 1, &request(1, Some(&text)), 1).unwrap();
    let node = roster.node(1).unwrap();
    assert_eq!((node.key_expiry, node.tags.as_slice()), (None, &["tag:server".to_owned()][..]));
}

#[test]
fn numbers_and_addresses_of_removed_nodes_are_not_given_again() {
    let mut roster = Roster::default();
    let text = key(&mut roster, terms());
    register(&mut roster, 1, &request(1, Some(&text)), 1).unwrap();
    let first = roster.remove(1).unwrap();
    let mut roster: Roster = serde_json::from_str(&serde_json::to_string(&roster).unwrap()).unwrap();
    assert_eq!(register(&mut roster, 1, &request(1, Some(&text)), 1), Ok(Registered::Member(2)));
    assert_ne!(roster.node(2).unwrap().addresses, first.addresses);
}

#[test]
fn route_needs_offer_and_approval() {
    let mut roster = Roster::default();
    let text = key(&mut roster, terms());
    let mut offer = request(1, Some(&text));
    offer.hostinfo.routable_ips = vec!["192.168.7.1/24".parse().unwrap(), "0.0.0.0/0".parse().unwrap()];
    register(&mut roster, 1, &offer, 1).unwrap();
    assert_eq!(roster.node(1).unwrap().routes().count(), 0);
    let approved = vec!["192.168.7.0/24".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
    assert!(roster.approve_routes(1, approved) && !roster.approve_routes(2, Vec::new()));
    let routes: Vec<_> = roster.node(1).unwrap().routes().map(|route| route.to_string()).collect();
    assert_eq!(routes, ["192.168.7.0/24"]);
}

#[test]
fn ended_keys_make_room() {
    let mut roster = Roster::default();
    for _ in 0..MOST_KEYS {
        key(&mut roster, terms());
    }
    assert!(roster.add_key(terms(), at(1)).unwrap().is_none());
    assert!(roster.add_key(AuthKeyTerms { expires: at(900), ..terms() }, at(500)).unwrap().is_some());
    assert_eq!(roster.keys.len(), 1);
}

proptest! {
    /// Any order of registrations, logouts and removals.
    #[test]
    fn roster_keeps_its_promises(steps in prop::collection::vec((0..4_u8, 1..5_u8, 1..6_u8, 0..2000_i64), 1..40)) {
        let mut roster = Roster::default();
        let limited = key(&mut roster, AuthKeyTerms { usage_limit: 3, expires: at(1500), ..terms() });
        let mut seconds: Vec<_> = steps.iter().map(|step| step.3).collect();
        seconds.sort_unstable();
        for ((kind, machine, node, _), second) in steps.into_iter().zip(seconds) {
            let mut wanted = request(node, (kind > 0).then_some(limited.as_str()));
            if kind == 2 {
                wanted.expiry = Some(at(second));
            }
            if kind == 3 {
                roster.remove(node.into());
            }
            let known = roster.nodes().any(|node| node.machine == MachineKey([machine; 32]));
            let registered = register(&mut roster, machine, &wanted, second);
            prop_assert!(known || kind > 0 || registered.is_err(), "a stranger without a key");
            if let Ok(Registered::Member(_)) = registered {
                prop_assert!(roster.admits(wanted.node_key, at(second)));
            }
        }
        let key = roster.keys.values().next().expect("the key");
        prop_assert!(key.uses <= 3);
        let mut seen = std::collections::BTreeSet::new();
        for node in roster.nodes() {
            prop_assert!(seen.insert(node.machine.to_string()) && seen.insert(node.key.to_string()));
            prop_assert!(seen.insert(node.name.clone()) && seen.insert(node.addresses[0].to_string()));
        }
    }
}
