//! Tests of the store: durability, audit entries and refused changes.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use gateway_model::kinds::{Device, RoutingPolicy, SourceType};
use gateway_model::registry::kind;
use gateway_model::{EditError, Id, Revision};
use proptest::prelude::*;
use redb::ReadableTable;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::schema::{AUDIT, META, meta};
use super::*;
use crate::clock::ManualClock;

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";

struct Fixture {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Fixture {
        let clock = ManualClock::at("2026-11-20T12:00:00Z".parse().unwrap());
        Fixture { folder: TempDir::new().unwrap(), clock }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("state").join("gateway.redb")
    }

    fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<Store, Error> {
        Store::open(self.path(), self.clock.clone())
    }

    /// Modifies the raw file, as a defect or an attacker would.
    fn tamper(&self, change: impl FnOnce(&redb::WriteTransaction)) {
        let db = redb::Database::open(self.path()).unwrap();
        let txn = db.begin_write().unwrap();
        change(&txn);
        txn.commit().unwrap();
    }
}

fn ticket(action: &str, noun: &str) -> AuditTicket {
    AuditTicket::system(action, noun)
}

/// Applies the current policies.
fn apply(store: &Store) {
    let freeze = |draft: &mut State| {
        draft.freeze_applied();
        Ok::<_, Infallible>(())
    };
    store.commit(ticket("apply_routing_policies", "routing_policy"), freeze).unwrap();
}

fn create(store: &Store, noun: &str, input: Value) -> Id {
    let created = store
        .commit(ticket(&format!("create_{noun}"), noun), |draft| kind(noun).unwrap().create(draft, input));
    created.unwrap().id
}

fn device(store: &Store, name: &str) -> Id {
    create(store, "device", json!({"name": name}))
}

fn trail(store: &Store) -> Vec<AuditEntry> {
    store.audit(1000, None, &AuditFilter::default()).unwrap().0
}

/// Returns all stored data in a comparable form.
fn image(state: &State) -> Value {
    let mut image = json!({
        "revision": state.revision, "applied": state.applied.revision, "applied_at": state.applied.at,
        "policies": state.applied.policies.iter().collect::<Vec<_>>(),
    });
    for kind in gateway_model::KINDS {
        image[kind.collection] = kind.list(state, &Default::default()).into();
        image[format!("{} marks", kind.collection)] = json!(format!("{:?}", kind.marks(state)));
    }
    image
}

#[test]
fn a_new_store_has_the_built_in_objects_and_is_private() {
    let fixture = Fixture::new();
    let store = fixture.open();
    assert_eq!(store.current().trust_classes.len(), 5);
    assert_eq!(store.current().revision, Revision(0));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(store.path().parent().unwrap()), 0o700);
    drop(store);
    fs::set_permissions(fixture.path(), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(mode(fixture.open().path()), 0o600);
}

#[test]
fn commits_survive_a_restart() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let laptop = device(&store, "laptop");
    create(&store, "device_group", json!({"name": "g", "members": [laptop]}));
    create(&store, "tunnel", json!({"name": "home", "type": "wireguard", "private_key": KEY}));
    let policy = create(
        &store,
        "routing_policy",
        json!({"source_type": "device", "source_value": laptop.to_string()}),
    );
    apply(&store);
    let hops = |policy: &mut RoutingPolicy| policy.priority = 7;
    store.commit(ticket("t", "routing_policy"), |draft| draft.update(policy, None, hops).map(drop)).unwrap();
    let gone = device(&store, "gone");
    store.commit(ticket("t", "device"), |draft| draft.remove::<Device>(gone, None, false).map(drop)).unwrap();
    let before = image(&store.current());
    assert_eq!(store.current().applied.policies.get(policy).unwrap().priority, 1000);
    drop(store);
    let store = fixture.open();
    assert_eq!(image(&store.current()), before);
    assert_eq!(store.current().tunnel_by_name("home").unwrap().private_key.expose(), KEY);
    // The slot of the deleted device is not reused for the next one.
    let next = device(&store, "next");
    assert_eq!(store.current().devices.get(next).unwrap().meta.slot, 3);
}

#[test]
fn commits_survive_a_crash() {
    let fixture = Fixture::new();
    let store = fixture.open();
    device(&store, "laptop");
    let before = image(&store.current());
    // Copy of the file on the disk while the store is open: the state after a killed process.
    let copy = Fixture::new();
    fs::create_dir_all(copy.path().parent().unwrap()).unwrap();
    fs::copy(fixture.path(), copy.path()).unwrap();
    let revived = copy.open();
    assert_eq!(image(&revived.current()), before);
    assert!(revived.verify_audit().unwrap().intact);
    device(&revived, "phone");
}

#[test]
fn a_commit_publishes_the_state_and_wakes_the_watchers() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut watch = store.watch();
    let seen = store.current();
    device(&store, "laptop");
    assert!(watch.has_changed().unwrap());
    assert_eq!(
        (*watch.borrow_and_update(), store.current().revision, seen.revision),
        (1, Revision(1), Revision(0))
    );
    assert!(seen.devices.is_empty());
    store.record(ticket("mesh_up", "mesh"), AuditResult::Success).unwrap();
    store.commit(ticket("look", "device"), |_| Ok::<_, Infallible>(())).unwrap();
    assert!(!watch.has_changed().unwrap(), "nothing changed");
    assert_eq!(store.current().revision, Revision(1));
}

#[test]
fn a_refused_edit_changes_nothing_and_gives_the_ticket_back() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let refused = store.commit(ticket("create_device", "device"), |draft| {
        kind("device").unwrap().create(draft, json!({"name": "half"}))?;
        kind("device").unwrap().create(draft, json!({"name": ""}))
    });
    let Err(CommitError::Refused { error: EditError::Invalid(_), ticket }) = refused else {
        panic!("{refused:?}")
    };
    assert!(store.current().devices.is_empty());
    assert!(trail(&store).is_empty());
    store.record(*ticket, AuditResult::Failed).unwrap();
    let entries = trail(&store);
    assert_eq!((entries.len(), entries[0].result), (1, AuditResult::Failed));
    assert_eq!(store.current().revision, Revision(0));
}

#[test]
fn a_panicking_edit_leaves_the_store_usable() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.commit(ticket("t", "device"), |draft| -> Result<(), Infallible> {
            kind("device").unwrap().create(draft, json!({"name": "half"})).unwrap();
            panic!("on purpose");
        })
    }));
    assert!(result.is_err());
    assert!(store.current().devices.is_empty());
    device(&store, "whole");
    assert_eq!(store.current().devices.len(), 1);
}

#[test]
fn every_mutation_leaves_one_entry_that_tells_what_changed() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = create(&store, "tunnel", json!({"name": "home", "type": "wireguard", "private_key": KEY}));
    let edit = |draft: &mut State| {
        let mut input = kind("tunnel").unwrap().get(draft, &id.to_string())?.0;
        input["keepalive"] = 5.into();
        input["private_key"] = "UFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFM=".into();
        kind("tunnel").unwrap().replace(draft, &id.to_string(), None, input)
    };
    store.commit(ticket("replace_tunnel", "tunnel"), edit).unwrap();
    let entries = trail(&store);
    assert_eq!(entries.len(), 2);
    let [replaced, created] = &entries[..] else { panic!() };
    assert_eq!(
        (created.id, created.action.as_str(), created.prev_hash.as_str()),
        (1, "create_tunnel", "0".repeat(64).as_str())
    );
    assert_eq!(
        (replaced.id, &replaced.prev_hash, &replaced.resource_id),
        (2, &created.hash, &Some(id.to_string()))
    );
    let change = &replaced.details["changes"][0];
    assert_eq!(
        (&change["op"], &change["type"], &change["name"]),
        (&json!("replace"), &json!("tunnel"), &json!("home"))
    );
    let fields = change["fields"].as_array().unwrap();
    assert!(fields.contains(&json!("keepalive")) && fields.contains(&json!("private_key")));
    let diff = &change["diff"];
    assert_eq!(diff["keepalive"], json!({"from": 25, "to": 5}));
    assert_eq!(diff["private_key"], json!({"secret": "changed"}));
    assert!(diff.get("name").is_none() && diff.get("updated_at").is_none(), "{diff}");
    let diff = &created.details["changes"][0]["diff"];
    assert_eq!((&diff["name"], &diff["private_key"]), (&json!({"to": "home"}), &json!({"secret": "set"})));
    let text = serde_json::to_string(&entries).unwrap();
    assert!(!text.contains(KEY) && !text.contains("UFNLUFNL"), "a secret is in the trail");
    assert!(store.verify_audit().unwrap().intact);
}

#[test]
fn an_entry_has_the_values_of_settings_and_is_bounded() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let set = |level: &str| {
        let edit = |draft: &mut State| {
            draft.set("log.level", json!(level));
            Ok::<_, Infallible>(())
        };
        store.commit(ticket("replace_setting", "setting"), edit).unwrap();
        trail(&store)[0].details["changes"][0].clone()
    };
    assert_eq!(set("debug")["diff"], json!({"value": {"to": "debug"}}));
    assert_eq!(set("info")["diff"], json!({"value": {"from": "debug", "to": "info"}}));
    let load = |draft: &mut State| {
        let note = "x".repeat(1000);
        for n in 0..30 {
            draft.create(Device { name: format!("d{n}"), notes: note.clone(), ..Device::default() })?;
        }
        Ok::<_, EditError>(())
    };
    store.commit(ticket("load", "plan"), load).unwrap();
    let details = &trail(&store)[0].details;
    let changes = details["changes"].as_array().unwrap();
    let with_values = changes.iter().filter(|change| change.get("diff").is_some()).count();
    assert!((10..20).contains(&with_values), "{with_values}");
    assert!(changes.len() == 20 && details.to_string().len() < 20 * 1024, "{}", details.to_string().len());
    assert!(store.verify_audit().unwrap().intact);
}

#[test]
fn the_trail_is_read_by_pages_newest_first() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for n in 1..=10 {
        let result = if n % 5 == 0 { AuditResult::Denied } else { AuditResult::Success };
        let mut ticket = ticket(if n % 2 == 0 { "even" } else { "odd" }, "thing");
        ticket.actor = format!("user-{n}");
        store.record(ticket, result).unwrap();
        if n == 4 {
            fixture.clock.advance(Duration::from_secs(60));
        }
    }
    let page = |limit, before, filter: &AuditFilter| {
        let (entries, total) = store.audit(limit, before, filter).unwrap();
        (entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), total)
    };
    let all = AuditFilter::default();
    assert_eq!(page(3, None, &all), (vec![10, 9, 8], 10));
    assert_eq!(page(3, Some(PageEnd::Id(8)), &all), (vec![7, 6, 5], 10));
    assert_eq!(page(3, Some(PageEnd::Id(1)), &all), (vec![], 10));
    let fifth = trail(&store)[5].clone();
    assert_eq!(fifth.id, 5);
    assert_eq!(page(9, Some(PageEnd::Time(fifth.timestamp)), &all), (vec![4, 3, 2, 1], 10));
    let even = AuditFilter { action: Some("even".into()), ..Default::default() };
    assert_eq!(page(2, Some(PageEnd::Id(9)), &even), (vec![8, 6], 5));
    let denied = AuditFilter { result: Some(AuditResult::Denied), ..even };
    assert_eq!(page(9, None, &denied), (vec![10], 1));
    assert_eq!(page(0, None, &all), (vec![], 10));
}

#[test]
fn timestamps_of_entries_are_unique_and_a_clock_set_back_shows() {
    let fixture = Fixture::new();
    let store = fixture.open();
    (0..3).for_each(|_| store.record(ticket("a", "b"), AuditResult::Success).unwrap());
    let times: Vec<String> = trail(&store).iter().rev().map(|entry| entry.timestamp.to_string()).collect();
    assert_eq!(times, ["2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000001Z", "2026-11-20T12:00:00.000002Z"]);
    fixture.clock.set("2026-11-20T11:00:00Z".parse().unwrap());
    store.record(ticket("a", "b"), AuditResult::Success).unwrap();
    assert_eq!(trail(&store)[0].timestamp.to_string(), "2026-11-20T11:00:00Z");
    assert!(store.verify_audit().unwrap().intact);
}

#[test]
fn an_altered_entry_breaks_the_chain_at_its_index() {
    type Tamper = fn(&redb::WriteTransaction);
    let replace = |txn: &redb::WriteTransaction, id: u64, from: &str, to: &str| {
        let mut table = txn.open_table(AUDIT).unwrap();
        let value = table.get(id).unwrap().unwrap().value().to_vec();
        let json = String::from_utf8(value[32..].to_vec()).unwrap();
        assert!(json.contains(from));
        let value = [&value[..32], json.replace(from, to).as_bytes()].concat();
        table.insert(id, value.as_slice()).unwrap();
    };
    let cases: [(&str, u64, Tamper); 5] = [
        ("removed", 2, |txn| drop(txn.open_table(AUDIT).unwrap().remove(2).unwrap())),
        ("cut off at the end", 3, |txn| drop(txn.open_table(AUDIT).unwrap().remove(3).unwrap())),
        ("emptied", 1, |txn| (1..=3).for_each(|id| drop(txn.open_table(AUDIT).unwrap().remove(id).unwrap()))),
        ("mangled", 1, |txn| drop(txn.open_table(AUDIT).unwrap().insert(1, &b"short"[..]).unwrap())),
        ("mangled at the end", 3, |txn| {
            drop(txn.open_table(AUDIT).unwrap().insert(3, &b"short"[..]).unwrap())
        }),
    ];
    let check = |name: &str, id: u64, tamper: &dyn Fn(&redb::WriteTransaction)| {
        let fixture = Fixture::new();
        let store = fixture.open();
        (0..3).for_each(|_| store.record(ticket("act", "thing"), AuditResult::Success).unwrap());
        assert_eq!(store.verify_audit().unwrap(), AuditReport { entries: 3, intact: true, fault: None });
        drop(store);
        fixture.tamper(tamper);
        let store = fixture.open();
        let report = store.verify_audit().unwrap();
        assert_eq!((report.intact, report.fault.map(|fault| fault.id)), (false, Some(id)), "{name}");
        // The trail continues, and the break stays visible.
        store.record(ticket("act", "thing"), AuditResult::Success).unwrap();
        assert_eq!(trail(&store)[0].id, 4, "{name}");
        assert!(!store.verify_audit().unwrap().intact, "{name}");
    };
    for (name, id, tamper) in cases {
        check(name, id, &tamper);
    }
    check("edited", 2, &|txn| replace(txn, 2, "system", "nobody"));
}

#[test]
fn a_second_opener_is_locked_out() {
    let fixture = Fixture::new();
    let store = fixture.open();
    assert!(matches!(fixture.try_open(), Err(Error::Locked { .. })));
    drop(store);
    fixture.open();
}

/// A recently forked process shares the lock until it executes its own program.
#[test]
fn lock_that_is_given_up_soon_is_waited_for() {
    let fixture = Fixture::new();
    drop(fixture.open());
    let held = std::fs::File::open(fixture.path()).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        fixture.open();
    });
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let fixture = Fixture::new();
    device(&fixture.open(), "laptop");
    fixture.tamper(|txn| drop(txn.open_table(META).unwrap().insert(meta::SCHEMA, SCHEMA + 1).unwrap()));
    let error = fixture.try_open().unwrap_err();
    assert!(
        matches!(error, Error::NewerSchema { found, known } if found == SCHEMA + 1 && known == SCHEMA),
        "{error}"
    );
    fixture.tamper(|txn| drop(txn.open_table(META).unwrap().insert(meta::SCHEMA, SCHEMA).unwrap()));
    assert_eq!(fixture.open().current().devices.len(), 1);
}

#[test]
fn damage_is_distinguished_from_other_errors() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("no database", |path| fs::write(path, "this is a text, and no database at all").unwrap()),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("cut off", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() / 3).unwrap();
        }),
        ("overwritten", |path| {
            let mut bytes = fs::read(path).unwrap();
            let end = bytes.len();
            bytes[4096..end].fill(0xa5);
            fs::write(path, bytes).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let fixture = Fixture::new();
        device(&fixture.open(), "laptop");
        damage(&fixture.path());
        let error = fixture.try_open().unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{name}: {error:?}");
    }
    let fixture = Fixture::new();
    let id = device(&fixture.open(), "laptop");
    fixture.tamper(|txn| {
        let mut table = txn.open_table(schema::rows("devices")).unwrap();
        table.insert(id.as_bytes(), &b"{\"name\": 7}"[..]).unwrap();
    });
    assert!(matches!(fixture.try_open(), Err(Error::Damaged { .. })));
}

#[test]
fn an_interrupted_creation_is_started_over() {
    let fixture = Fixture::new();
    let draft = fixture.path().with_file_name("gateway.redb.new");
    fs::create_dir_all(draft.parent().unwrap()).unwrap();
    fs::write(&draft, "half a database").unwrap();
    assert_eq!(fixture.open().current().trust_classes.len(), 5);
    assert!(!draft.exists());
}

#[test]
fn ten_thousand_policies_are_one_commit_and_one_apply() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let started = Instant::now();
    let load = |draft: &mut State| {
        for n in 0..10_000u32 {
            let value = format!("10.{}.{}.0/24", n / 256, n % 256);
            let policy =
                RoutingPolicy { source_type: SourceType::Subnet, source_value: value, ..Default::default() };
            draft.create(policy)?;
        }
        Ok::<_, EditError>(())
    };
    store.commit(ticket("load", "plan"), load).unwrap();
    let loaded = started.elapsed();
    apply(&store);
    let applied = started.elapsed() - loaded;
    println!("load {loaded:?}, apply {applied:?}");
    assert_eq!(store.current().applied.policies.len(), 10_000);
    assert_eq!(trail(&store)[1].details["changes_total"], 10_000);
    assert_eq!(trail(&store)[1].details["changes"].as_array().unwrap().len(), 20);
    // Generous for a busy machine; without other load, each takes well under a second.
    assert!(loaded + applied < Duration::from_secs(20), "load {loaded:?}, apply {applied:?}");
    drop(store);
    assert_eq!(fixture.open().current().applied.policies.len(), 10_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// After any edits, the file equals the memory.
    #[test]
    fn the_file_follows_the_memory(edits in prop::collection::vec((0u8..5, 0usize..5), 1..25)) {
        let fixture = Fixture::new();
        let store = fixture.open();
        let mut ids: Vec<Id> = Vec::new();
        for (op, which) in edits {
            let id = ids.get(which).copied();
            match (op, id) {
                (0 | 1, _) | (_, None) => {
                    let input = json!({"source_type": "vlan", "source_value": (ids.len() + 1).to_string()});
                    ids.push(create(&store, "routing_policy", input));
                }
                (2, Some(id)) => {
                    let toggle = |policy: &mut RoutingPolicy| policy.enabled = !policy.enabled;
                    let _ = store.commit(ticket("t", "routing_policy"), |draft| draft.update(id, None, toggle).map(drop));
                }
                (3, Some(id)) => {
                    let _ = store.commit(ticket("t", "routing_policy"), |draft| draft.remove::<RoutingPolicy>(id, None, false).map(drop));
                }
                (_, Some(_)) => apply(&store),
            }
        }
        let before = image(&store.current());
        drop(store);
        let store = fixture.open();
        prop_assert_eq!(image(&store.current()), before);
        prop_assert!(store.verify_audit().unwrap().intact);
    }
}
