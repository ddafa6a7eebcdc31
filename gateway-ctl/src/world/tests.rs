//! Tests of the published world.

use std::sync::atomic::{AtomicBool, Ordering};

use gateway_core::facts::Link;

use super::*;
use crate::clock::SystemClock;
use crate::store::AuditTicket;
use crate::world::reports::uplinks::UplinkStates;

fn facts(index: u32) -> Facts {
    let mut facts = Facts::default();
    facts.links.insert("eth1".into(), Link { index, up: true, ..Link::default() });
    facts
}

fn create_device(store: &Store, n: u8) {
    let device = serde_json::json!({"name": format!("device-{n}"), "mac": format!("02:00:00:00:00:{n:02x}")});
    let kind = gateway_model::registry::kind("device").expect("a kind");
    store
        .commit(AuditTicket::system("create_device", "device"), |draft| kind.create(draft, device).map(drop))
        .expect("stored");
}

fn worlds(attached: Option<AttachMode>) -> (tempfile::TempDir, Arc<Store>, Worlds) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("store.redb"), SystemClock::shared()).expect("a store");
    let store = Arc::new(store);
    let configuration = Configuration::new(Bootstrap::default(), store.current().settings.clone());
    let worlds = Worlds::new(store.clone(), configuration, attached);
    (folder, store, worlds)
}

/// Readers see the plan of exactly the state and the facts in the same world, while both change.
#[test]
fn state_facts_and_plan_are_of_one_instant() {
    let (_folder, store, worlds) = worlds(Some(AttachMode::Tcx));
    worlds.compile(&facts(1), store.clock().now());
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let read = || {
            let mut seen = 0;
            while !done.load(Ordering::Acquire) {
                let world = worlds.now();
                assert!(
                    compile(&world.input()).plan.dataplane == world.compiled().plan.dataplane,
                    "a plan of another state or of other facts"
                );
                seen += 1;
            }
            seen
        };
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        for n in 1..40 {
            create_device(&store, n);
            // Before the run, the state is newer than the last plan.
            assert_eq!(worlds.now().state.revision, store.current().revision);
            worlds.compile(&facts(u32::from(n) + 1), store.clock().now());
        }
        done.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().expect("a reader")).sum::<usize>()
    });
    assert!(seen > 0);
}

#[test]
fn a_plan_is_compiled_once_for_all_callers_and_is_not_active_before_a_run() {
    let (_folder, store, worlds) = worlds(Some(AttachMode::Tcx));
    worlds.compile(&facts(1), store.clock().now());
    let before = worlds.now();
    assert!(Arc::ptr_eq(before.compiled(), before.live()));
    create_device(&store, 1);
    let (first, second) = (worlds.now(), worlds.now());
    assert!(Arc::ptr_eq(first.compiled(), second.compiled()));
    assert!(Arc::ptr_eq(first.live(), before.live()) && !Arc::ptr_eq(first.compiled(), first.live()));
    worlds.compile(&facts(1), store.clock().now());
    assert!(Arc::ptr_eq(worlds.now().compiled(), worlds.now().live()));
}

#[test]
fn without_a_kernel_the_live_plan_is_the_one_that_would_be() {
    let (_folder, store, worlds) = worlds(None);
    create_device(&store, 1);
    let world = worlds.now();
    assert_eq!(
        (world.state.revision, world.live().plan.dataplane.devices_by_mac.len()),
        (store.current().revision, 1)
    );
}

#[test]
fn the_resolver_hears_of_a_plan_once_and_of_the_world_that_it_is_of() {
    let (_folder, store, worlds) = worlds(Some(AttachMode::Tcx));
    let heard = Arc::<Mutex<Vec<u64>>>::default();
    let noted = heard.clone();
    worlds.on_before_activate(move |world| {
        assert!(Arc::ptr_eq(world.compiled(), world.live()));
        noted.lock().push(world.state.revision.0);
    });
    create_device(&store, 1);
    for _ in 0..2 {
        worlds.compile(&facts(1), store.clock().now());
    }
    assert_eq!(*heard.lock(), [store.current().revision.0]);
}

#[test]
fn runs_and_reports_are_published_with_what_they_are_of() {
    let (_folder, store, worlds) = worlds(Some(AttachMode::Tcx));
    let mut watched = worlds.watch();
    worlds.compile(&facts(7), store.clock().now());
    worlds.finished(&Arc::new(Status { run: 3, ..Status::default() }));
    let uplinks = Arc::<UplinkStates>::default();
    worlds.report(|reports| reports.uplinks = uplinks.clone());
    let world = watched.borrow_and_update().clone();
    assert_eq!((world.status.run, world.facts.links["eth1"].index), (3, 7));
    assert!(Arc::ptr_eq(&world.reports.uplinks, &uplinks));
}
