//! What is in the bytes of the folder, what a lost passphrase means, and what a failed rotation leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use gateway_model::registry::kind;
use gateway_model::{EditError, Id};
use redb::{ReadableTable, TableDefinition};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::CommitError;
use super::*;
use crate::clock::SystemClock;

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";
const OTHER: &str = "YAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGE=";
const PSK: &str = "EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE=";
const OWN: &str = "an own passphrase";

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(TempDir::new().unwrap())
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

    /// Whether the bytes of any file in the folder have this text.
    fn has(&self, text: &str) -> bool {
        fs::read_dir(self.0.path()).unwrap().any(|entry| {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
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

fn fallback_text(place: &Place) -> String {
    fs::read_to_string(place.fallback()).unwrap().trim().to_owned()
}

#[test]
fn the_passphrase_is_made_at_the_first_start_and_each_copy_restores_the_other() {
    let place = Place::new();
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
    let place = Place::new();
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
    let place = Place::new();
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
    // As it was written by a version that did not seal.
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
    let place = Place::new();
    let store = place.open();
    create(&store, tunnel("home", KEY));
    let generated = fallback_text(&place);
    assert!(place.has(&generated));
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 2);
    assert!(!place.has(&generated) && fallback_text(&place) == OWN);
    // Commits, reads and the trail go on in the new file.
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
    let place = Place::new();
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
    // Set again, it works again.
    replace(&store, id, tunnel("home", OTHER)).unwrap();
    assert_eq!(key_of(&store, "home"), OTHER);
    assert_eq!(store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap(), 2);
    drop(store);
    assert_eq!(key_of(&place.open(), "home"), OTHER);
}

#[test]
fn a_lost_own_passphrase_locks_until_it_is_set_again() {
    let place = Place::new();
    let store = place.open();
    create(&store, tunnel("home", KEY));
    store.set_passphrase(ticket(), &Secret::new(OWN)).unwrap();
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
    create(&store, tunnel("away", OTHER));
    drop(store);
    assert_eq!(key_of(&place.open(), "away"), OTHER);
}

#[test]
fn a_value_that_cannot_be_opened_stops_a_rotation_before_anything_is_written() {
    let place = Place::new();
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
