//! Tests of the bytes in the folder, of a lost passphrase, and of a failed rotation.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use gateway_model::registry::kind;
use gateway_model::{EditError, Id};
use redb::{ReadableTable, TableDefinition};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{CommitError, RollbackOptions, SnapshotReason, restore};
use super::*;
use crate::clock::SystemClock;

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";
const OTHER: &str = "YAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGE=";
const PSK: &str = "EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE=";
const OWN: &str = "an own passphrase";

struct Fixture(TempDir);

impl Fixture {
    fn new() -> Fixture {
        Fixture(TempDir::new().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("gateway.redb")
    }

    fn fallback(&self) -> PathBuf {
        self.0.path().join("secrets.passphrase")
    }

    fn open(&self) -> Store {
        Store::open(self.path(), SystemClock::shared()).unwrap()
    }

    /// Reports whether the bytes of any file in the folder contain this text.
    fn has(&self, text: &str) -> bool {
        self.has_bytes(text.as_bytes())
    }

    fn has_bytes(&self, wanted: &[u8]) -> bool {
        fs::read_dir(self.0.path()).unwrap().any(|entry| {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(wanted.len()).any(|window| window == wanted)
        })
    }

    fn forget(&self, key: &str) {
        let db = redb::Database::open(self.path()).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut texts = txn.open_table(TableDefinition::<&str, &str>::new("meta_text")).unwrap();
            assert!(texts.remove(key).unwrap().is_some(), "{key} was there");
        }
        txn.commit().unwrap();
    }

    fn lose_passphrase(&self) {
        self.forget("secrets_passphrase");
        fs::remove_file(self.fallback()).unwrap();
    }
}

fn ticket() -> AuditTicket {
    AuditTicket::system("t", "secrets")
}

fn tunnel(name: &str, key: &str) -> Value {
    json!({"name": name, "type": "wireguard", "private_key": key, "addresses": ["10.9.0.2/32"], "peers": [{
        "public_key": "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=", "preshared_key": PSK,
        "endpoint": "192.0.2.1:51820", "allowed_ips": ["0.0.0.0/0"]}]})
}

fn create(store: &Store, input: Value) -> Id {
    store.commit(ticket(), |draft| kind("tunnel").unwrap().create(draft, input)).unwrap().id
}

fn replace(store: &Store, id: Id, input: Value) -> Result<(), CommitError<EditError>> {
    let edit = |draft: &mut State| kind("tunnel").unwrap().replace(draft, &id.to_string(), None, input);
    store.commit(ticket(), edit).map(drop)
}

fn key_of(store: &Store, name: &str) -> String {
    store.current().tunnel_by_name(name).unwrap().private_key.expose().to_owned()
}

fn snapshot(store: &Store) -> String {
    store.take_snapshot(ticket(), SnapshotReason::Manual, None).unwrap().expect("a free name").name
}

fn key_in(store: &Store, snapshot: &str) -> String {
    let (_, state) = store.snapshot(snapshot).unwrap().unwrap();
    state.tunnel_by_name("home").unwrap().private_key.expose().to_owned()
}

fn roll_back(store: &Store, snapshot: &str) {
    let (_, target) = store.snapshot(snapshot).unwrap().unwrap();
    let safety = RollbackOptions { reason: SnapshotReason::PreRollback, confirm: None };
    store.commit_safely(ticket(), safety, |draft, _| restore(draft, &target)).unwrap();
}

const CONTENTS: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("snapshot_contents");

/// Returns the content of a snapshot as stored, compressed.
fn packed(store: &Store, snapshot: &str) -> Vec<u8> {
    let txn = store.db.begin_read().unwrap();
    txn.open_table(CONTENTS).unwrap().get(snapshot).unwrap().unwrap().value().to_vec()
}

fn content(store: &Store, snapshot: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(packed(store, snapshot).as_slice()).read_to_string(&mut text).unwrap();
    text
}

fn last_details(store: &Store) -> Value {
    store.audit(1, None, &Default::default()).unwrap().0.remove(0).details
}

fn fallback_text(place: &Fixture) -> String {
    fs::read_to_string(place.fallback()).unwrap().trim().to_owned()
}

#[test]
fn the_passphrase_is_made_at_the_first_start_and_each_copy_restores_the_other() {
    let place = Fixture::new();
    let store = place.open();
    assert_eq!(store.secrets_status().mode, SecretsMode::Generated);
    create(&store, tunnel("home", KEY));
    drop(store);
    let passphrase = fallback_text(&place);
    assert!(
        passphrase.len() == 64 && passphrase.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{passphrase}"
    );
    assert_eq!(fs::metadata(place.fallback()).unwrap().permissions().mode() & 0o777, 0o400);
    fs::remove_file(place.fallback()).unwrap();
    assert_eq!(key_of(&place.open(), "home"), KEY);
    assert_eq!(fallback_text(&place), passphrase);
    place.forget("secrets_passphrase");
    assert_eq!(key_of(&place.open(), "home"), KEY);
    fs::remove_file(place.fallback()).unwrap();
    assert_eq!(key_of(&place.open(), "home"), KEY, "the store has its copy again");
}

#[test]
fn secrets_are_sealed_on_disk_and_a_start_or_a_rename_opens_none() {
    let place = Fixture::new();
    let store = place.open();
    let ids: Vec<Id> = (0..20).map(|n| create(&store, tunnel(&format!("t{n}"), KEY))).collect();
    assert!(!place.has(KEY) && !place.has(PSK));
    drop(store);
    let store = place.open();
    let status = store.secrets_status();
    assert_eq!((status.total, status.sealed, status.unreadable), (40, 40, 0));
    assert_eq!(store.derivations(), 0, "a start opens nothing");
    let sealed = |store: &Store| {
        let state = store.current();
        state.tunnels.get(ids[3]).unwrap().peers[0].preshared_key.sealed_text().unwrap().to_owned()
    };
    let before = sealed(&store);
    let mut input = kind("tunnel").unwrap().get(&store.current(), &ids[3].to_string()).unwrap().0;
    input["notes"] = "renamed".into();
    replace(&store, ids[3], input).unwrap();
    assert_eq!(sealed(&store), before);
    assert!(store.derivations() <= 2, "validation reads the secrets of this object; nothing is sealed anew");
    assert_eq!(key_of(&store, "t3"), KEY);
    drop(store);
    assert_eq!(key_of(&place.open(), "t3"), KEY);
}

#[test]
fn a_store_with_secrets_in_clear_is_sealed_at_the_start_and_keeps_none_of_the_bytes() {
    let place = Fixture::new();
    let store = place.open();
    store.clear_passphrase(ticket()).unwrap();
    create(&store, tunnel("home", KEY));
    let secret = Secret::new("a-setting-that-is-secret");
    store
        .commit(ticket(), |draft| {
            draft.set_secret("alerts.webhook.secret", secret);
            Ok::<_, EditError>(())
        })
        .unwrap();
    drop(store);
    assert!(place.has(KEY) && place.has("a-setting-that-is-secret") && !place.fallback().exists());
    // As written by a version that did not seal.
    place.forget("secrets_mode");
    let store = place.open();
    let bytes_are_gone = || !place.has(KEY) && !place.has(PSK) && !place.has("a-setting-that-is-secret");
    assert!(bytes_are_gone());
    assert_eq!((store.secrets_status().total, store.secrets_status().sealed), (3, 3));
    assert!(store.verify_audit().unwrap().intact);
    drop(store);
    let store = place.open();
    assert!(bytes_are_gone());
    assert_eq!(key_of(&store, "home"), KEY);
    assert_eq!(store.current().settings.secret("alerts.webhook.secret").expose(), "a-setting-that-is-secret");
}

#[test]
fn an_own_passphrase_replaces_the_generated_one_everywhere() {
    let place = Fixture::new();
    let store = place.open();
    create(&store, tunnel("home", KEY));
    let generated = fallback_text(&place);
    assert!(place.has(&generated));
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 2);
    assert!(!place.has(&generated) && fallback_text(&place) == OWN);
    // Commits, reads and the trail continue in the new file.
    create(&store, tunnel("away", OTHER));
    assert!(store.verify_audit().unwrap().intact);
    assert_eq!(store.set_passphrase(ticket(), &Secret::new("another passphrase")).unwrap(), 4);
    drop(store);
    let store = place.open();
    assert_eq!((key_of(&store, "home"), key_of(&store, "away")), (KEY.to_owned(), OTHER.to_owned()));
    assert_eq!(store.secrets_status().mode, SecretsMode::Own);
    assert_eq!(store.clear_passphrase(ticket()).unwrap(), 4);
    assert!(place.has(KEY) && !place.fallback().exists());
    drop(store);
    let store = place.open();
    assert_eq!((store.secrets_status().mode, key_of(&store, "home")), (SecretsMode::Plain, KEY.to_owned()));
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 4);
    assert!(!place.has(KEY) && !place.has(OTHER));
}

#[test]
fn when_both_copies_are_lost_values_are_unreadable_and_the_rest_goes_on() {
    let place = Fixture::new();
    let id = create(&place.open(), tunnel("home", KEY));
    place.lose_passphrase();
    let store = place.open();
    assert_eq!(key_of(&store, "home"), "");
    store.check_secrets();
    let status = store.secrets_status();
    assert_eq!(
        (status.mode, status.locked, status.total, status.unreadable),
        (SecretsMode::Generated, false, 2, 2)
    );
    let failed = store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap_err();
    assert!(matches!(&failed, RotateError::Unreadable { places, .. } if places.len() == 2), "{failed}");
    assert_eq!(store.secrets_status().mode, SecretsMode::Generated);
    // With the passphrase set again, the store works again.
    replace(&store, id, tunnel("home", OTHER)).unwrap();
    assert_eq!(key_of(&store, "home"), OTHER);
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 2);
    drop(store);
    assert_eq!(key_of(&place.open(), "home"), OTHER);
}

#[test]
fn verification_finds_what_cannot_be_decrypted_a_few_at_a_time() {
    let place = Fixture::new();
    let store = place.open();
    create(&store, tunnel("home", KEY));
    drop(store);
    let store = place.open();
    let budget = std::time::Duration::from_secs(60);
    let health = store.verify_secrets(std::time::Duration::ZERO);
    assert_eq!((health.unreadable.len(), health.unknown), (0, 2), "nothing was tried");
    let health = store.verify_secrets(budget);
    assert_eq!((health.unreadable.len(), health.unknown), (0, 0));
    drop(store);
    place.lose_passphrase();
    let store = place.open();
    let health = store.verify_secrets(budget);
    let unreadable: Vec<(&str, &str)> =
        health.unreadable.iter().map(|place| (place.noun, place.name.as_str())).collect();
    assert_eq!((unreadable, health.unknown), (vec![("tunnel", "home"); 2], 0));
    create(&store, tunnel("away", OTHER));
    assert_eq!(store.verify_secrets(budget).unreadable.len(), 2, "a new one can be");
}

#[test]
fn a_lost_own_passphrase_locks_until_it_is_set_again() {
    let place = Fixture::new();
    let store = place.open();
    create(&store, tunnel("home", KEY));
    store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap();
    let taken = snapshot(&store);
    drop(store);
    place.lose_passphrase();
    let store = place.open();
    assert!(store.secrets_status().locked);
    let refused =
        store.commit(ticket(), |draft| kind("tunnel").unwrap().create(draft, tunnel("away", OTHER)));
    assert!(matches!(refused, Err(CommitError::Store(Error::SecretsLocked))), "{refused:?}");
    let plain = store.commit(ticket(), |draft| kind("device").unwrap().create(draft, json!({"name": "d"})));
    assert!(plain.is_ok(), "what has no secret is stored");
    assert!(store.set_passphrase(ticket(), &Secret::new("not the one at all")).is_err());
    assert!(store.secrets_status().locked);
    store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap();
    assert_eq!((key_of(&store, "home"), store.secrets_status().locked), (KEY.to_owned(), false));
    assert_eq!(key_in(&store, &taken), KEY);
    create(&store, tunnel("away", OTHER));
    drop(store);
    assert_eq!(key_of(&place.open(), "away"), OTHER);
}

#[test]
fn a_value_that_cannot_be_opened_stops_a_rotation_before_anything_is_written() {
    let place = Fixture::new();
    let store = place.open();
    let id = create(&store, tunnel("home", KEY));
    create(&store, tunnel("away", OTHER));
    drop(store);
    let generated = fallback_text(&place);
    {
        let db = redb::Database::open(place.path()).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let definition = TableDefinition::<&[u8; 16], &[u8]>::new("tunnels");
            let mut rows = txn.open_table(definition).unwrap();
            let row = rows.get(id.as_bytes()).unwrap().unwrap().value().to_vec();
            let mut row: Value = serde_json::from_slice(&row).unwrap();
            let sealed = row["private_key"].as_str().unwrap().to_owned();
            let end = if sealed.ends_with("AA==") { "BB==" } else { "AA==" };
            row["private_key"] = format!("{}{end}", &sealed[..sealed.len() - 4]).into();
            rows.insert(id.as_bytes(), serde_json::to_vec(&row).unwrap().as_slice()).unwrap();
        }
        txn.commit().unwrap();
    }
    let store = place.open();
    let (revision, entries) = (store.current().revision, store.verify_audit().unwrap().entries);
    let failed = store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap_err();
    let RotateError::Unreadable { places, .. } = failed else { panic!("{failed}") };
    assert_eq!(
        (places.len(), places[0].field.as_str(), places[0].id.clone()),
        (1, "private_key", id.to_string())
    );
    assert_eq!((store.current().revision, store.verify_audit().unwrap().entries), (revision, entries));
    assert_eq!(fallback_text(&place), generated);
    drop(store);
    assert_eq!(key_of(&place.open(), "away"), OTHER);
}

#[test]
fn a_rollback_to_a_snapshot_of_before_a_rotation_opens_its_secrets() {
    let place = Fixture::new();
    let store = place.open();
    let id = create(&store, tunnel("home", KEY));
    let first = snapshot(&store);
    replace(&store, id, tunnel("home", OTHER)).unwrap();
    let second = snapshot(&store);
    let old = packed(&store, &first);
    assert!(place.has_bytes(&old));
    let derived = store.derivations();
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 2);
    assert!(!place.has_bytes(&old));
    assert!(derived > 0 && store.derivations() <= 4, "what stands in rows and snapshots is sealed once");
    assert!(last_details(&store)["snapshot_values_unreadable"].is_null());
    assert_eq!((key_in(&store, &first), key_in(&store, &second)), (KEY.into(), OTHER.into()));
    for snapshot in store.snapshots().unwrap() {
        assert_eq!(snapshot.size, packed(&store, &snapshot.name).len() as u64);
    }
    store.set_passphrase(ticket(), &Secret::new("another passphrase")).unwrap();
    roll_back(&store, &first);
    let check = |store: &Store| {
        assert_eq!(key_of(store, "home"), KEY);
        let state = store.current();
        assert_eq!(state.tunnel_by_name("home").unwrap().peers[0].preshared_key.expose(), PSK);
        assert_eq!(key_in(store, &second), OTHER);
        assert_eq!(store.secrets_status().unreadable, 0);
    };
    check(&store);
    drop(store);
    check(&place.open());
}

#[test]
fn snapshots_taken_in_clear_are_sealed_with_the_rest() {
    for first_sealing in [false, true] {
        let place = Fixture::new();
        let store = place.open();
        let id = create(&store, tunnel("home", KEY));
        store
            .commit(ticket(), |draft| {
                draft.set_secret("alerts.webhook.secret", Secret::new("enc:of the webhook"));
                Ok::<_, EditError>(())
            })
            .unwrap();
        let sealed = snapshot(&store);
        store.clear_passphrase(ticket()).unwrap();
        let clear = snapshot(&store);
        replace(
            &store,
            id,
            json!({"name": "home", "type": "wireguard", "private_key": OTHER,
            "addresses": ["10.9.0.2/32"]}),
        )
        .unwrap();
        let texts = [KEY, PSK, "enc:of the webhook"];
        let bytes: Vec<Vec<u8>> = [&sealed, &clear].map(|name| packed(&store, name)).into();
        for name in [&sealed, &clear] {
            assert!(texts.iter().all(|text| content(&store, name).contains(text)), "{name}");
        }
        assert!(bytes.iter().all(|bytes| place.has_bytes(bytes)));
        let store = if first_sealing {
            drop(store);
            // As written by a version that did not seal.
            place.forget("secrets_mode");
            place.open()
        } else {
            store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap();
            store
        };
        for name in [&sealed, &clear] {
            let content = content(&store, name);
            assert!(texts.iter().all(|text| !content.contains(text)), "{name}");
        }
        assert!(!bytes.iter().any(|bytes| place.has_bytes(bytes)));
        assert!(!texts.iter().any(|text| place.has(text)));
        for name in [&sealed, &clear] {
            assert_eq!(key_in(&store, name), KEY);
        }
        roll_back(&store, &clear);
        drop(store);
        let store = place.open();
        assert_eq!(key_of(&store, "home"), KEY);
        assert_eq!(store.current().settings.secret("alerts.webhook.secret").expose(), "enc:of the webhook");
    }
}

#[test]
fn a_snapshot_that_cannot_be_read_any_more_does_not_stop_a_rotation() {
    let place = Fixture::new();
    let store = place.open();
    let id = create(&store, tunnel("home", KEY));
    let lost = snapshot(&store);
    let damaged = snapshot(&store);
    let before = content(&store, &lost);
    drop(store);
    place.lose_passphrase();
    {
        let db = redb::Database::open(place.path()).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(CONTENTS).unwrap().insert(damaged.as_str(), b"no gzip".as_slice()).unwrap();
        txn.commit().unwrap();
    }
    let store = place.open();
    replace(&store, id, tunnel("home", OTHER)).unwrap();
    let readable = snapshot(&store);
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 2);
    let reported = last_details(&store);
    assert_eq!(
        (
            &reported["snapshot_values"],
            &reported["snapshot_values_unreadable"],
            &reported["snapshots_damaged"]
        ),
        (&json!(2), &json!(2), &json!(1)),
        "{reported}"
    );
    assert_eq!((content(&store, &lost), packed(&store, &damaged)), (before, b"no gzip".to_vec()));
    assert_eq!((key_in(&store, &lost), key_in(&store, &readable)), (String::new(), OTHER.into()));
    assert_eq!(store.clear_passphrase(ticket()).unwrap(), 2);
    // Sealed once, not twice, although the value looks like clear text.
    store.set_passphrase(ticket(), &Secret::new("another passphrase")).unwrap();
    assert_eq!((key_in(&store, &lost), key_in(&store, &readable)), (String::new(), OTHER.into()));
}

#[test]
fn secrets_of_tunnels_that_run_are_opened_ahead() {
    let place = Fixture::new();
    let store = place.open();
    create(&store, tunnel("home", KEY));
    let mut idle = tunnel("idle", OTHER);
    idle["enabled"] = false.into();
    create(&store, idle);
    drop(store);
    let store = place.open();
    store.open_tunnel_secrets();
    assert_eq!(store.derivations(), 2);
    assert_eq!((key_of(&store, "home"), store.derivations()), (KEY.to_owned(), 2));
}

#[test]
fn passphrases_set_at_the_same_time_lose_no_snapshot() {
    let place = Fixture::new();
    let store = place.open();
    let id = create(&store, tunnel("home", KEY));
    let taken = snapshot(&store);
    replace(&store, id, tunnel("home", OTHER)).unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let store = &store;
            scope.spawn(move || {
                store.set_passphrase(ticket(), &Secret::new(format!("passphrase {number}"))).unwrap()
            });
            scope.spawn(|| assert_eq!(key_in(store, &store.snapshots().unwrap()[0].name), KEY));
        }
    });
    assert_eq!((key_in(&store, &taken), key_of(&store, "home")), (KEY.into(), OTHER.into()));
    drop(store);
    assert_eq!(key_in(&place.open(), &taken), KEY);
}
