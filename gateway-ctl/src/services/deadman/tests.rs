//! Tests of the dead-man switch: which requests count as a check-in, and the effects of a missing one.

use std::sync::atomic::{AtomicBool, Ordering};

use gateway_model::settings::group::GroupKind;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::store::AuditTicket;

const HOUR: Duration = Duration::from_secs(3600);

struct Fixture {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Fixture {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        Fixture { folder: TempDir::new().unwrap(), clock }
    }

    fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(self.folder.path().join("gateway.redb"), self.clock.clone()).unwrap())
    }
}

fn set(store: &Store, value: serde_json::Value) {
    let ticket = AuditTicket::system("replace_deadman", "deadman");
    store.commit(ticket, |draft| GroupKind::find("deadman").unwrap().put(draft, value)).unwrap();
}

#[test]
fn it_is_off_until_it_is_set_and_counts_over_a_restart() {
    let site = Fixture::new();
    let store = site.store();
    let switch = DeadManSwitch::new(store.clone(), || true).unwrap();
    site.clock.advance(1000 * HOUR);
    assert_eq!(switch.tick().unwrap(), None);
    assert_eq!(switch.report().unwrap().deadline, None);
    set(&store, json!({"enabled": true, "hours": 10, "level": "soft"}));
    let report = switch.report().unwrap();
    assert_eq!(report.warn_hours, [5.0, 8.0, 9.5]);
    assert_eq!(report.deadline, Some(store.clock().now().checked_add(10 * HOUR).unwrap()));
    site.clock.advance(6 * HOUR);
    assert_eq!((switch.tick().unwrap(), switch.report().unwrap().warned), (None, Some(50)));
    drop((switch, store));
    site.clock.advance(3 * HOUR);
    let switch = DeadManSwitch::new(site.store(), || true).unwrap();
    assert_eq!((switch.tick().unwrap(), switch.report().unwrap().warned), (None, Some(80)));
    site.clock.advance(HOUR);
    assert_eq!((switch.tick().unwrap(), switch.tick().unwrap()), (Some(WipeLevel::Soft), None));
}

#[test]
fn check_ins_keep_it_quiet_and_are_written_down_now_and_then() {
    let site = Fixture::new();
    let store = site.store();
    set(&store, json!({"enabled": true, "hours": 1}));
    let switch = DeadManSwitch::new(store.clone(), || true).unwrap();
    let first = store.check_in().unwrap().unwrap();
    site.clock.advance(Duration::from_secs(30));
    switch.check_in().unwrap();
    assert_eq!(store.check_in().unwrap(), Some(first), "too soon to be written down");
    site.clock.advance(Duration::from_secs(31));
    switch.check_in().unwrap();
    assert_eq!(store.check_in().unwrap().unwrap().at, store.clock().now());
    for _ in 0..20 {
        site.clock.advance(HOUR / 3);
        assert_eq!(switch.tick().unwrap(), None);
        switch.check_in().unwrap();
    }
    site.clock.advance(HOUR);
    assert_eq!(switch.tick().unwrap(), Some(WipeLevel::Medium));
}

#[test]
fn it_does_not_fire_before_the_clock_is_right() {
    static SYNCED: AtomicBool = AtomicBool::new(false);
    let site = Fixture::new();
    let store = site.store();
    set(&store, json!({"enabled": true, "hours": 1}));
    let switch = DeadManSwitch::new(store, || SYNCED.load(Ordering::SeqCst)).unwrap();
    site.clock.advance(100 * HOUR);
    assert_eq!(switch.tick().unwrap(), None);
    SYNCED.store(true, Ordering::SeqCst);
    assert_eq!(switch.tick().unwrap(), None, "the check-in is dated first");
    assert_eq!(switch.tick().unwrap(), Some(WipeLevel::Medium));
}
