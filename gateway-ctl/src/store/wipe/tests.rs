//! Tests that wiped data is gone from the bytes of every file.

use std::time::Duration;

use gateway_model::registry::kind;
use gateway_model::settings::group::GroupKind;
use gateway_model::settings::keys::NODE_ID;
use gateway_model::{EditError, Secret};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::clock::SystemClock;
use crate::store::{Confirm, RollbackOptions, SnapshotReason};

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";

fn ticket(action: &str) -> AuditTicket {
    AuditTicket { actor: "anna-the-actor".into(), ..AuditTicket::system(action, "gateway") }
}

fn open(folder: &TempDir) -> Store {
    Store::open(folder.path().join("gateway.redb"), SystemClock::shared()).unwrap()
}

/// Returns a store that contains objects of every kind.
fn filled(folder: &TempDir) -> Store {
    let store = open(folder);
    store.clear_passphrase(ticket("clear")).unwrap();
    let filled = store.commit(ticket("fill"), |draft| {
        kind("device").unwrap().create(draft, json!({"name": "laptop-of-anna"}))?;
        let tunnel = json!({"name": "home-of-anna", "type": "wireguard", "private_key": KEY, "addresses": ["10.9.0.2/32"]});
        kind("tunnel").unwrap().create(draft, tunnel)?;
        GroupKind::find("deadman").unwrap().put(draft, json!({"enabled": true, "hours": 77}))?;
        draft.set_secret("alerts.webhook.secret", Secret::new("webhook-of-anna"));
        Ok::<_, EditError>(())
    });
    filled.unwrap();
    store
}

fn has(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has(&path, text);
        }
        fs::read(path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_soft_wipe_removes_the_trail_and_keeps_the_configuration() {
    let folder = TempDir::new().unwrap();
    let store = filled(&folder);
    store
        .record(AuditTicket { actor: "bert".into(), ..ticket("seen-by-bert") }, AuditResult::Failed)
        .unwrap();
    assert!(has(folder.path(), "seen-by-bert"));
    let before = store.verify_audit().unwrap().entries;
    store.wipe(ticket("wipe"), false).unwrap();
    assert!(!has(folder.path(), "seen-by-bert"));
    let report = store.verify_audit().unwrap();
    assert!(report.intact && report.entries == 1, "{report:?}");
    let (entries, _) = store.audit(10, None, &Default::default()).unwrap();
    assert_eq!((entries[0].id, entries[0].action.as_str()), (before + 1, "wipe"));
    store.record(ticket("next"), AuditResult::Success).unwrap();
    drop(store);
    let store = open(&folder);
    assert!(store.verify_audit().unwrap().intact);
    assert_eq!(store.current().tunnel_by_name("home-of-anna").unwrap().private_key.expose(), KEY);
}

#[test]
fn a_medium_wipe_leaves_nothing_but_a_policy_that_blocks() {
    let folder = TempDir::new().unwrap();
    let store = filled(&folder);
    let revision = store.current().revision;
    for text in ["laptop-of-anna", "home-of-anna", "webhook-of-anna", KEY] {
        assert!(has(folder.path(), text), "{text}");
    }
    let node = store.current().settings.get(NODE_ID).cloned().unwrap();
    store.wipe(AuditTicket::system("wipe", "gateway"), true).unwrap();
    let gone = || {
        for text in ["laptop-of-anna", "home-of-anna", "webhook-of-anna", "anna-the-actor", KEY] {
            assert!(!has(folder.path(), text), "{text}");
        }
    };
    gone();
    let check = |store: &Store| {
        let state = store.current();
        assert!(state.revision > revision);
        assert!(state.settings.get(NODE_ID).is_some_and(|id| id.is_string() && *id != node), "{node}");
        let settings = state.settings.iter().filter(|(key, _)| *key != NODE_ID);
        assert!(state.devices.is_empty() && state.tunnels.is_empty() && settings.count() == 0);
        assert_eq!((state.trust_classes.len(), state.applied.policies.len()), (5, 1));
        let policy = state.applied.policies.iter().next().unwrap();
        assert!(policy.enabled && policy.hops.is_empty());
        assert!(store.verify_audit().unwrap().intact);
    };
    check(&store);
    // The gateway continues to work.
    store.commit(ticket("t"), |draft| kind("device").unwrap().create(draft, json!({"name": "new"}))).unwrap();
    store
        .commit(ticket("t"), |draft| {
            let id = draft.devices.iter().next().unwrap().meta.id;
            draft.remove::<gateway_model::Device>(id, None, true)
        })
        .unwrap();
    drop(store);
    check(&open(&folder));
}

#[test]
fn a_wipe_of_the_configuration_leaves_neither_snapshots_nor_what_waits_for_a_confirmation() {
    let folder = TempDir::new().unwrap();
    let store = filled(&folder);
    let confirm = Some(Confirm { within: Duration::from_secs(60) });
    let safety = RollbackOptions { reason: SnapshotReason::PreApply, confirm };
    let change = |store: &Store, name: &str| {
        let changed = store.commit_safely(ticket("apply"), safety, |draft, _| {
            kind("device").unwrap().create(draft, json!({"name": name})).map(drop)
        });
        changed.map(drop)
    };
    change(&store, "one").unwrap();
    store.wipe(ticket("wipe"), false).unwrap();
    assert!(store.pending().is_some() && store.newest_snapshot().is_some(), "the configuration stays");
    assert!(has(folder.path(), "anna-the-actor"));
    store.wipe(AuditTicket::system("wipe", "gateway"), true).unwrap();
    assert!(!has(folder.path(), "anna-the-actor"));
    let check = |store: &Store| {
        assert!(store.pending().is_none() && store.newest_snapshot().is_none());
        assert!(store.snapshots().unwrap().is_empty() && !store.revert_overdue().unwrap());
    };
    check(&store);
    drop(store);
    let store = open(&folder);
    check(&store);
    change(&store, "two").unwrap();
    store.destroy().unwrap();
    assert!(store.pending().is_none() && store.newest_snapshot().is_none());
}

#[test]
fn a_hard_wipe_leaves_a_mark_that_keeps_everything_blocked() {
    let folder = TempDir::new().unwrap();
    let store = filled(&folder);
    fs::create_dir(folder.path().join("lists")).unwrap();
    fs::write(folder.path().join("lists/one"), "list-of-anna").unwrap();
    store.destroy().unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [WIPED]);
    assert!(store.record(ticket("late"), AuditResult::Success).is_err());
    drop(store);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [WIPED], "letting go of the store writes nothing");
    let refused = Store::open(folder.path().join("gateway.redb"), SystemClock::shared()).unwrap_err();
    assert!(matches!(refused, Error::Wiped { .. }), "{refused}");
    fs::remove_file(folder.path().join(WIPED)).unwrap();
    assert!(open(&folder).current().tunnels.is_empty());
}

#[test]
fn a_check_in_is_stored() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    assert_eq!(store.check_in().unwrap(), None);
    for certain in [false, true] {
        let check_in = CheckIn { at: "2026-11-21T12:00:00.5Z".parse().unwrap(), certain };
        store.keep_check_in(check_in).unwrap();
        assert_eq!(store.check_in().unwrap(), Some(check_in));
    }
    assert_eq!(store.verify_audit().unwrap().entries, 0);
}
