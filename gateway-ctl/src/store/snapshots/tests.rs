//! Tests of snapshots and of pending changes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use gateway_model::kinds::{Device, Tunnel};
use gateway_model::{EditError, Id, Secret};
use redb::ReadableTableMetadata;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::store::{AuditFilter, AuditTicket, Store};

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";

struct Fixture {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Fixture {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        Fixture { folder: TempDir::new().unwrap(), clock }
    }

    fn open(&self) -> Store {
        Store::open(self.folder.path().join("store.redb"), self.clock.clone()).unwrap()
    }
}

fn ticket() -> AuditTicket {
    AuditTicket::system("apply_plan", "plan")
}

fn safety(seconds: Option<u64>) -> RollbackOptions {
    let confirm = seconds.map(|seconds| Confirm { within: Duration::from_secs(seconds) });
    RollbackOptions { reason: SnapshotReason::PreApply, confirm }
}

fn add(store: &Store, name: &str, seconds: Option<u64>) -> Result<(Id, ChangeRecords), SafeError<EditError>> {
    store.commit_safely(ticket(), safety(seconds), |draft, _| {
        let device = Device { name: name.into(), ..Device::default() };
        let (device, _) = draft.create(device)?;
        draft.freeze_applied();
        Ok(device.meta.id)
    })
}

fn names(store: &Store) -> Vec<String> {
    store.current().devices.iter().map(|device| device.name.clone()).collect()
}

fn actions(store: &Store) -> Vec<String> {
    let (entries, _) = store.audit(100, None, &AuditFilter::default()).unwrap();
    entries.into_iter().rev().map(|entry| entry.action).collect()
}

#[test]
fn a_snapshot_holds_what_was_before_and_brings_it_back() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let made = store.commit(ticket(), |draft| {
        draft.set("a.b", json!(1));
        draft.set("secrets_passphrase", json!("p"));
        draft
            .create(Tunnel { name: "home".into(), private_key: Secret::new(KEY), ..Tunnel::default() })
            .map(drop)
    });
    made.unwrap();
    add(&store, "first", None).unwrap();
    let (_, secured) = add(&store, "second", None).unwrap();
    let snapshot = secured.snapshot.unwrap();
    assert_eq!(snapshot.name, "20261121T120000Z-pre-apply-2");
    assert_eq!(snapshot.summary, "1 tunnel, 1 device");
    store
        .commit(ticket(), |draft| {
            draft.set("a.b", json!(2));
            draft.set("secrets_passphrase", json!("q"));
            Ok::<_, Infallible>(())
        })
        .unwrap();
    drop(store);
    let store = fixture.open();
    let (found, target) = store.snapshot(&snapshot.name).unwrap().unwrap();
    assert_eq!(found, snapshot);
    let (_, again) = store
        .commit_safely(
            ticket(),
            RollbackOptions { reason: SnapshotReason::PreRollback, confirm: None },
            |draft, _| restore(draft, &target),
        )
        .unwrap();
    assert_eq!(names(&store), ["first"]);
    assert_eq!(again.snapshot.unwrap().reason, SnapshotReason::PreRollback);
    let state = store.current();
    assert_eq!(
        (state.settings.get("a.b"), state.settings.get("secrets_passphrase")),
        (Some(&json!(1)), Some(&json!("q")))
    );
    assert_eq!(state.tunnel_by_name("home").unwrap().private_key.expose(), KEY);
    assert!(store.snapshot("nothing").unwrap().is_none());
    assert!(store.verify_audit().unwrap().intact);
}

#[test]
fn fifty_snapshots_stay_and_an_empty_change_takes_none() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for number in 0..KEPT + 3 {
        add(&store, &format!("d{number}"), None).unwrap();
        fixture.clock.advance(Duration::from_secs(1));
    }
    let all = store.snapshots().unwrap();
    assert_eq!(all.len(), KEPT);
    assert!(all.windows(2).all(|pair| pair[0].created_at > pair[1].created_at));
    assert_eq!(store.newest_snapshot(), Some(all[0].created_at));
    let (_, secured) =
        store.commit_safely(ticket(), safety(Some(5)), |_, _| Ok::<_, Infallible>(())).unwrap();
    assert!(secured.snapshot.is_none() && secured.pending.is_none() && store.pending().is_none());
    let txn = store.db.begin_read().unwrap();
    assert_eq!(txn.open_table(CONTENTS).unwrap().len().unwrap(), KEPT as u64);
}

#[test]
fn a_confirmed_change_stays() {
    let fixture = Fixture::new();
    let store = fixture.open();
    add(&store, "new", Some(60)).unwrap();
    assert!(matches!(add(&store, "other", None), Err(SafeError::InProgress { .. })));
    assert_eq!(names(&store), ["new"]);
    assert!(store.confirm_pending(ticket()).unwrap().is_some());
    assert!(store.confirm_pending(ticket()).unwrap().is_none());
    fixture.clock.advance(Duration::from_secs(120));
    drop(store);
    let store = fixture.open();
    assert!(!store.revert_overdue().unwrap());
    assert_eq!(names(&store), ["new"]);
    add(&store, "other", None).unwrap();
}

#[test]
fn a_change_that_is_not_confirmed_goes_also_after_a_crash() {
    let fixture = Fixture::new();
    let store = fixture.open();
    add(&store, "old", None).unwrap();
    let before = store.current().applied.policies.len();
    add(&store, "new", Some(60)).unwrap();
    drop(store);
    let store = fixture.open();
    assert!(!store.revert_overdue().unwrap(), "its time has not come");
    assert_eq!(store.pending().unwrap().remaining(fixture.clock.as_ref()), Duration::from_secs(60));
    fixture.clock.advance(Duration::from_secs(61));
    drop(store);
    let store = fixture.open();
    assert!(store.revert_overdue().unwrap());
    assert_eq!((names(&store), store.current().applied.policies.len()), (vec!["old".to_owned()], before));
    assert_eq!(actions(&store), ["apply_plan", "apply_plan", "revert_apply"]);
    assert!(store.pending().is_none());
}

#[test]
fn within_one_boot_the_wall_clock_does_not_count_and_after_a_reboot_it_never_lengthens() {
    let fixture = Fixture::new();
    let store = fixture.open();
    add(&store, "new", Some(60)).unwrap();
    let pending = store.pending().unwrap();
    let remaining = || pending.remaining(fixture.clock.as_ref());
    fixture.clock.set("2030-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(remaining(), Duration::from_secs(60));
    fixture.clock.set("2026-11-21T12:00:10Z".parse().unwrap());
    fixture.clock.reboot();
    assert_eq!(remaining(), Duration::from_secs(50));
    fixture.clock.set("1970-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(remaining(), Duration::from_secs(60));
    fixture.clock.set("2027-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(remaining(), Duration::ZERO);
}

#[test]
fn stored_rows_of_snapshots_can_be_rewritten() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let key =
        |text: &str| Tunnel { name: "home".into(), private_key: Secret::new(text), ..Tunnel::default() };
    store.commit(ticket(), |draft| draft.create(key(KEY)).map(drop)).unwrap();
    let (_, secured) = add(&store, "x", None).unwrap();
    let txn = store.db.begin_write().unwrap();
    let mut seen = Vec::new();
    let damaged = rewrite(&txn, |collection, row| {
        seen.push(collection.to_owned());
        if collection == "tunnels" {
            row["private_key"] = json!("QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEU=");
        }
        collection == "tunnels"
    });
    assert!(damaged.unwrap().is_empty());
    txn.commit().unwrap();
    assert!(seen.contains(&"tunnels".to_owned()) && seen.contains(&"trust_classes".to_owned()));
    let (_, state) = store.snapshot(&secured.snapshot.unwrap().name).unwrap().unwrap();
    assert_ne!(state.tunnel_by_name("home").unwrap().private_key.expose(), KEY);
}

#[test]
fn names_of_snapshots_are_no_paths() {
    for good in ["20261121T120000Z-pre-apply", "a", "A_1-b"] {
        assert!(is_snapshot_name(good), "{good}");
    }
    for bad in ["", "../etc", "a/b", "a.b", "-a", "a b", "ä", &"x".repeat(65)] {
        assert!(!is_snapshot_name(bad), "{bad}");
    }
}
