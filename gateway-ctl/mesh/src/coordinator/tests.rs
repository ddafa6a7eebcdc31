//! Tests of the coordinator: what is stored, and who learns what.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::wire::{DerpMap, HostInfo, MapResponse, RegisterAuth};

#[derive(Default)]
struct MemoryLedger {
    stored: Mutex<Vec<(Roster, Change)>>,
    broken: AtomicBool,
}

impl Ledger for MemoryLedger {
    fn store(&self, roster: &Roster, change: &Change) -> Result<(), LedgerError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(LedgerError("no space".to_owned()));
        }
        self.stored.lock().push((roster.clone(), change.clone()));
        Ok(())
    }
}

struct Mesh {
    coordinator: Arc<Coordinator>,
    ledger: Arc<MemoryLedger>,
    second: Arc<AtomicI64>,
}

fn settings() -> Settings {
    Settings {
        identity: KeyPair::of_secret([1; 32]),
        relay: Some(KeyPair::of_secret([2; 32])),
        profile: MeshProfile {
            domain: "mesh".to_owned(),
            owner: "gateway".to_owned(),
            derp_map: DerpMap::default(),
        },
        lifetimes: Lifetimes {
            key: SignedDuration::from_secs(1000),
            ephemeral: SignedDuration::from_secs(60),
        },
        verify_clients: true,
    }
}

fn mesh() -> Mesh {
    let (ledger, second) = (Arc::<MemoryLedger>::default(), Arc::new(AtomicI64::new(1_800_000_000)));
    let time = Arc::clone(&second);
    let clock: Clock = Arc::new(move || Timestamp::from_second(time.load(Ordering::Relaxed)).unwrap());
    let coordinator = Coordinator::new(settings(), Roster::default(), ledger.clone(), clock);
    Mesh { coordinator, ledger, second }
}

impl Mesh {
    fn key(&self, ephemeral: bool) -> String {
        let expires = self.coordinator.now() + SignedDuration::from_secs(3600);
        let terms = AuthKeyTerms { reusable: true, ephemeral, expires, tags: Vec::new(), usage_limit: 0 };
        self.coordinator.create_key(terms, &*self.ledger).unwrap().expect("room").1
    }

    fn register(&self, number: u8, auth_key: &str) -> RegisterResponse {
        let request = RegisterRequest {
            node_key: NodeKey([number; 32]),
            auth: Some(RegisterAuth { auth_key: Some(auth_key.to_owned()) }),
            hostinfo: HostInfo { hostname: format!("host-{number}"), ..HostInfo::default() },
            ..RegisterRequest::default()
        };
        let from = IpAddr::from([192, 0, 2, number]);
        self.coordinator.register(MachineKey([number; 32]), from, &request)
    }

    fn connect(&self, number: u8) -> Option<Connection> {
        let request = MapRequest {
            version: 130,
            node_key: NodeKey([number; 32]),
            stream: true,
            ..MapRequest::default()
        };
        self.coordinator.connect(MachineKey([number; 32]), request).unwrap()
    }
}

fn message(connection: &mut Connection) -> MapResponse {
    match connection.next() {
        Next::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn peers_learn_of_a_node_and_of_its_removal() {
    let mesh = mesh();
    let key = mesh.key(false);
    assert!(mesh.register(1, &key).machine_authorized && mesh.register(2, &key).machine_authorized);
    let mut first = mesh.connect(1).unwrap();
    assert_eq!(message(&mut first).peers.map(|peers| (peers.len(), peers[0].online)), Some((1, false)));
    let mut second = mesh.connect(2).unwrap();
    assert!(message(&mut first).peers_changed[0].online);
    message(&mut second);
    assert_eq!(second.next(), Next::Unchanged);
    assert!(
        mesh.coordinator.remove(1, &*mesh.ledger).unwrap()
            && !mesh.coordinator.remove(1, &*mesh.ledger).unwrap()
    );
    assert_eq!(message(&mut second).peers_removed, [1]);
    assert_eq!(first.next(), Next::End);
    assert!(mesh.connect(1).is_none() && !mesh.coordinator.admits(NodeKey([1; 32])));
}

#[test]
fn removed_node_loses_the_relay_at_once() {
    let mesh = mesh();
    mesh.register(1, &mesh.key(false));
    let (_attachment, mut frames) = mesh.coordinator.switch().attach(NodeKey([1; 32])).unwrap();
    mesh.coordinator.remove(1, &*mesh.ledger).unwrap();
    assert_eq!(frames.try_recv(), Err(tokio::sync::mpsc::error::TryRecvError::Disconnected));
}

#[test]
fn nothing_holds_that_is_not_stored() {
    let mesh = mesh();
    let key = mesh.key(false);
    mesh.register(1, &key);
    mesh.ledger.broken.store(true, Ordering::Relaxed);
    assert!(mesh.register(2, &key).error.contains("no space"));
    mesh.coordinator.remove(1, &*mesh.ledger).unwrap_err();
    assert!(mesh.connect(2).is_none() && mesh.connect(1).is_some());
}

#[test]
fn stored_roster_brings_nodes_back() {
    let mesh = mesh();
    mesh.register(1, &mesh.key(false));
    let (roster, change) = mesh.ledger.stored.lock().last().cloned().unwrap();
    assert_eq!(change, Change::NodeRegistered { id: 1, name: "host-1".to_owned() });
    let text = serde_json::to_string(&roster).unwrap();
    let roster = serde_json::from_str(&text).unwrap();
    let clock: Clock = Arc::new(|| Timestamp::from_second(1_800_000_001).unwrap());
    let again = Coordinator::new(settings(), roster, mesh.ledger.clone(), clock);
    let again = Mesh { coordinator: again, ..mesh };
    assert!(again.connect(1).is_some());
}

#[test]
fn ephemeral_node_ends_once_it_is_gone_for_a_while() {
    let mesh = mesh();
    mesh.register(1, &mesh.key(true));
    let connection = mesh.connect(1).unwrap();
    mesh.second.fetch_add(600, Ordering::Relaxed);
    mesh.coordinator.tick().unwrap();
    drop(connection);
    mesh.second.fetch_add(59, Ordering::Relaxed);
    mesh.coordinator.tick().unwrap();
    assert_eq!(mesh.coordinator.members().len(), 1);
    mesh.second.fetch_add(1, Ordering::Relaxed);
    mesh.coordinator.tick().unwrap();
    assert_eq!(mesh.coordinator.members().len(), 0);
}

#[test]
fn ephemeral_node_has_its_time_after_a_restart() {
    let mesh = mesh();
    mesh.register(1, &mesh.key(true));
    let roster = mesh.ledger.stored.lock().last().cloned().unwrap().0;
    let second = Arc::clone(&mesh.second);
    second.fetch_add(600, Ordering::Relaxed);
    let clock: Clock = Arc::new(move || Timestamp::from_second(second.load(Ordering::Relaxed)).unwrap());
    let again = Coordinator::new(settings(), roster, mesh.ledger.clone(), clock);
    again.tick().unwrap();
    assert_eq!(again.members().len(), 1);
    mesh.second.fetch_add(60, Ordering::Relaxed);
    again.tick().unwrap();
    assert_eq!(again.members().len(), 0);
}

#[test]
fn single_look_leaves_the_stream_alone() {
    let mesh = mesh();
    mesh.register(1, &mesh.key(false));
    let mut stream = mesh.connect(1).unwrap();
    message(&mut stream);
    let request = MapRequest { node_key: NodeKey([1; 32]), read_only: true, ..MapRequest::default() };
    let mut look = mesh.coordinator.connect(MachineKey([1; 32]), request).unwrap().unwrap();
    assert!(message(&mut look).node.is_some_and(|node| node.online));
    drop(look);
    assert_eq!(stream.next(), Next::Unchanged);
}

#[test]
fn key_that_ends_ends_the_relay_and_the_peers() {
    let mesh = mesh();
    let key = mesh.key(false);
    mesh.register(1, &key);
    mesh.second.fetch_add(500, Ordering::Relaxed);
    mesh.register(2, &key);
    let mut second = mesh.connect(2).unwrap();
    message(&mut second);
    let (_attachment, mut frames) = mesh.coordinator.switch().attach(NodeKey([1; 32])).unwrap();
    mesh.second.fetch_add(500, Ordering::Relaxed);
    mesh.coordinator.tick().unwrap();
    assert_eq!(message(&mut second).peers_removed, [1]);
    assert_eq!(frames.try_recv(), Err(tokio::sync::mpsc::error::TryRecvError::Disconnected));
}

#[test]
fn newer_stream_takes_the_place_of_the_older() {
    let mesh = mesh();
    mesh.register(1, &mesh.key(false));
    let mut old = mesh.connect(1).unwrap();
    let mut new = mesh.connect(1).unwrap();
    assert_eq!(old.next(), Next::End);
    drop(old);
    assert!(message(&mut new).node.is_some_and(|node| node.online));
}

#[test]
fn address_that_guesses_keys_is_refused_for_a_while() {
    let mesh = mesh();
    let key = mesh.key(false);
    for _ in 0..crate::attempts::MOST_REFUSALS {
        assert!(mesh.register(1, "gwmesh-000000000000-x").error.contains("not known"));
    }
    assert!(mesh.register(1, &key).error.contains("try again"));
    mesh.second.fetch_add(60, Ordering::Relaxed);
    assert!(mesh.register(1, &key).machine_authorized);
}

#[test]
fn approved_route_reaches_peers() {
    let mesh = mesh();
    let key = mesh.key(false);
    mesh.register(1, &key);
    mesh.register(2, &key);
    let mut second = mesh.connect(2).unwrap();
    message(&mut second);
    let route: IpNet = "192.168.7.0/24".parse().unwrap();
    let mut request = MapRequest { node_key: NodeKey([1; 32]), ..MapRequest::default() };
    request.hostinfo.routable_ips = vec![route];
    assert!(mesh.coordinator.update(MachineKey([1; 32]), &request).unwrap());
    assert_eq!(second.next(), Next::Unchanged);
    assert!(mesh.coordinator.approve_routes(1, vec![route], &*mesh.ledger).unwrap());
    assert!(message(&mut second).peers_changed[0].allowed_ips.contains(&route));
}
