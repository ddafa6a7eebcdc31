//! Nodes and keys of the mesh in the store.

use gateway_model::settings::Bootstrap;
use gateway_model::settings::keys::MESH_ROSTER;
use serde_json::json;

use super::*;
use crate::clock::SystemClock;
use crate::configuration::Configuration;
use crate::store::AuditTicket;

struct Fixture {
    mesh: Arc<Mesh>,
    store: Arc<Store>,
    folder: tempfile::TempDir,
}

fn ticket() -> AuditTicket {
    AuditTicket::system("create_mesh_key", "mesh_key")
}

fn mesh_of(store: &Arc<Store>) -> Arc<Mesh> {
    let configuration = Configuration::new(Bootstrap::default(), store.current().settings.clone());
    let worlds = Arc::new(Worlds::new(store.clone(), configuration, None));
    Mesh::new(store.clone(), worlds, Arc::new(|| Box::pin(std::future::ready(Err("none".to_owned())))))
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path().join("store.redb"), SystemClock::shared()).unwrap());
    Fixture { mesh: mesh_of(&store), store, folder }
}

fn set(store: &Store, key: &str, value: serde_json::Value) {
    let edit = |draft: &mut gateway_model::State| {
        draft.set(key, value);
        Ok::<_, std::convert::Infallible>(())
    };
    store.commit(AuditTicket::system("test", "setting"), edit).unwrap();
}

fn switch_on(store: &Store) {
    set(store, "mesh.coordinator.host", json!("gw.example.net"));
    set(store, "mesh.coordinator.enabled", json!(true));
}

#[test]
fn a_coordinator_that_is_off_makes_no_keys_and_has_no_identity() {
    let Fixture { mesh, store, folder: _folder } = fixture();
    let refused = mesh.create_key(ticket(), KeyTerms::default());
    assert!(matches!(refused, Err(AdministrationError::Off)));
    assert!(mesh.peers().unwrap().is_empty());
    assert_eq!(mesh.status().unwrap().state, MeshState::Down);
    assert_eq!(mesh.derp_mode().mode, DerpModeName::Off);
    assert!(store.current().settings.setting(MESH_ROSTER).is_none());
    assert!(mesh.open().unwrap().is_none());
}

#[test]
fn keys_and_identity_survive_a_restart_and_the_store_has_no_text_of_them() {
    let Fixture { mesh, store, folder } = fixture();
    switch_on(&store);
    let key = mesh.create_key(ticket(), KeyTerms::default()).unwrap();
    assert!(key.command.contains(&key.key) && key.command.contains("https://gw.example.net:8443"));
    let first = mesh.open().unwrap().unwrap().coordinator;
    let identity = first.identity().public();
    let again = mesh.open().unwrap().unwrap().coordinator;
    assert!(Arc::ptr_eq(&first, &again), "its own change does not replace it");
    drop((mesh, first, again, store));
    let path = folder.path().join("store.redb");
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(key.key.len()).any(|window| window == key.key.as_bytes()));
    let store = Arc::new(Store::open(&path, SystemClock::shared()).unwrap());
    let mesh = mesh_of(&store);
    assert_eq!(mesh.open().unwrap().unwrap().coordinator.identity().public(), identity);
    let roster = store.current().settings.get(MESH_ROSTER).unwrap().clone();
    assert!(roster["keys"].get(&key.id).is_some(), "{roster}");
}

#[test]
fn a_roster_that_others_changed_replaces_the_coordinator_and_is_not_overwritten() {
    let Fixture { mesh, store, folder: _folder } = fixture();
    switch_on(&store);
    mesh.create_key(ticket(), KeyTerms::default()).unwrap();
    let before = mesh.open().unwrap().unwrap();
    set(&store, MESH_ROSTER, json!({"last_id": 7, "nodes": {}, "keys": {}}));
    let terms = gateway_mesh::AuthKeyTerms {
        reusable: false,
        ephemeral: false,
        expires: jiff::Timestamp::MAX,
        tags: Vec::new(),
        usage_limit: 0,
    };
    let late = before.coordinator.create_key(terms, &*before.ledger);
    assert!(late.unwrap_err().to_string().contains("replaced"));
    let after = mesh.open().unwrap().unwrap();
    assert!(!Arc::ptr_eq(&before.coordinator, &after.coordinator));
    assert_eq!(store.current().settings.get(MESH_ROSTER).unwrap()["last_id"], 7);
}

#[test]
fn a_damaged_roster_is_an_error_and_stays() {
    let Fixture { mesh, store, folder: _folder } = fixture();
    switch_on(&store);
    set(&store, MESH_ROSTER, json!({"nodes": "none"}));
    assert!(matches!(mesh.peers(), Err(OpenError::Roster(_))));
    assert!(mesh.create_key(ticket(), KeyTerms::default()).is_err());
    assert_eq!(store.current().settings.get(MESH_ROSTER).unwrap(), &json!({"nodes": "none"}));
}

#[test]
fn a_hard_wipe_ends_the_coordinator_for_good() {
    let Fixture { mesh, store, folder: _folder } = fixture();
    switch_on(&store);
    mesh.create_key(ticket(), KeyTerms::default()).unwrap();
    mesh.erase(WipeLevel::Soft);
    assert!(mesh.open().unwrap().is_some());
    mesh.erase(WipeLevel::Hard);
    assert!(mesh.open().unwrap().is_none());
}

#[test]
fn a_medium_wipe_leaves_no_node_and_no_identity() {
    let Fixture { mesh, store, folder: _folder } = fixture();
    switch_on(&store);
    mesh.create_key(ticket(), KeyTerms::default()).unwrap();
    store.wipe(AuditTicket::system("wipe_system", "system"), true).unwrap();
    assert!(mesh.open().unwrap().is_none());
    assert!(store.current().settings.iter().all(|(key, _)| !key.contains("mesh")));
}
