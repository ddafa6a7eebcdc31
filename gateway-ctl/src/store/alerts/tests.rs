//! Stored alerts.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::alerts::{AlertEngine, AlertKey};
use gateway_core::alerts::{Dependencies, Now, Report, Rules, Subject, Surroundings};

use super::*;
use crate::clock::ManualClock;
use crate::store::AuditTicket;

fn store() -> (tempfile::TempDir, Arc<ManualClock>, Store) {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at("2026-11-22T12:00:00Z".parse().unwrap());
    let store = Store::open(folder.path().join("store.redb"), clock.clone()).unwrap();
    (folder, clock, store)
}

/// Raises and ends the alerts of some events, and stores them.
fn fill(store: &Store, clock: &ManualClock, subjects: &[&str]) {
    let stored = store.alert_records().unwrap();
    let now = now(clock);
    let mut engine = AlertEngine::restore(stored, now);
    let rules = Rules::of(&store.current());
    let dependencies = Dependencies::default();
    let surroundings = Surroundings { rules: &rules, dependencies: &dependencies };
    for subject in subjects {
        let report = Report {
            subject: Subject::default(),
            message: String::new(),
            value: None,
            times: 1,
            until: None,
        };
        engine.report(&AlertKey::new(AlertKind::KeyCreated, *subject), report, surroundings, now);
    }
    engine.advance(surroundings, now);
    store.keep_alerts(&engine.take_changes()).unwrap();
}

fn now(clock: &ManualClock) -> Now {
    use crate::clock::Clock as _;
    Now { wall: clock.now(), boot: SignedDuration::try_from(clock.boot()).unwrap() }
}

#[test]
fn alerts_are_paged_filtered_and_read_again() {
    let (_folder, clock, store) = store();
    assert_eq!(store.alerts(10, None, &AlertFilter::default()).unwrap(), (vec![], 0));
    assert_eq!(store.alert(1).unwrap(), None);
    fill(&store, &clock, &["a", "b", "c"]);
    let (page, total) = store.alerts(2, None, &AlertFilter::default()).unwrap();
    assert_eq!((page.iter().map(|alert| alert.id).collect::<Vec<_>>(), total), (vec![3, 2], 3));
    let (page, _) = store.alerts(2, Some(PageEnd::Id(2)), &AlertFilter::default()).unwrap();
    assert_eq!(page.iter().map(|alert| alert.id).collect::<Vec<_>>(), [1]);
    let (page, _) =
        store.alerts(9, Some(PageEnd::Time(page[0].first_seen)), &AlertFilter::default()).unwrap();
    assert_eq!(page, []);
    let none = AlertFilter { kind: Some(AlertKind::WanDown), ..AlertFilter::default() };
    assert_eq!(store.alerts(9, None, &none).unwrap(), (vec![], 0));
    let numbers = |after, limit| -> Vec<u64> {
        let list = store.alert_notifications_after(after, limit).unwrap();
        list.iter().map(|notification| notification.sequence).collect()
    };
    assert_eq!((numbers(0, 2), numbers(2, 9), numbers(3, 9)), (vec![1, 2], vec![3], vec![]));
    let stored = store.alert_records().unwrap();
    assert_eq!((stored.records.len(), stored.last_id, stored.last_sequence), (3, 3, 3));
}

#[test]
fn resolved_alerts_are_removed_after_thirty_days_and_open_ones_are_kept() {
    let (_folder, clock, store) = store();
    fill(&store, &clock, &["a"]);
    clock.advance(Duration::from_secs(25 * 3600));
    fill(&store, &clock, &["b"]);
    let status = |id| store.alert(id).unwrap().map(|alert| alert.status);
    assert_eq!((status(1), status(2)), (Some(AlertStatus::Resolved), Some(AlertStatus::Active)));
    clock.advance(Duration::from_secs(30 * 86_400 - 1));
    assert_eq!(store.trim_alerts().unwrap(), 1, "the first notification");
    clock.advance(Duration::from_secs(86_400));
    assert_eq!(store.trim_alerts().unwrap(), 3);
    assert_eq!((status(1), status(2)), (None, Some(AlertStatus::Active)));
    assert_eq!(store.trim_alerts().unwrap(), 0);
}

#[test]
fn wipe_removes_alerts_and_numbers_continue() {
    let (_folder, clock, store) = store();
    fill(&store, &clock, &["a"]);
    store.wipe(AuditTicket::system("wipe_system", "system"), false).unwrap();
    assert_eq!((store.alert(1).unwrap(), store.alert_notifications_after(0, 9).unwrap()), (None, vec![]));
    fill(&store, &clock, &["a"]);
    assert_eq!(store.alert(2).unwrap().map(|alert| alert.count), Some(1));
}
