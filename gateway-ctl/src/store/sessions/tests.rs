//! Tests of sessions in a store on disk, under a manually advanced clock.

use std::sync::Arc;
use std::time::Duration;

use gateway_model::kinds::User;
use gateway_model::{Role, Secret};

use super::operations::{IN_SUM, PER_USER};
use super::*;
use crate::clock::ManualClock;
use crate::store::{AuditTicket, Store};

struct Fixture {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: Store,
    user: Id,
}

fn ticket() -> AuditTicket {
    AuditTicket::system("login", "session")
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2026-11-20T12:00:00Z".parse().unwrap());
        let store = Store::open(folder.path().join("store.redb"), clock.clone()).unwrap();
        let anna = User {
            username: "anna".into(),
            role: Role::Admin,
            password_hash: Secret::new("x"),
            ..User::default()
        };
        let (anna, _) = store.commit(ticket(), |draft| draft.create(anna)).unwrap();
        Fixture { folder, clock, store, user: anna.meta.id }
    }

    fn sign_in(&self) -> Uuid {
        let now = self.store.clock().now();
        let session = Session::new(self.user, 0, now, None, Some("a\nbrowser"));
        let id = session.id;
        self.store.open_session(ticket(), session).unwrap();
        id
    }

    fn restart(self) -> Fixture {
        let Fixture { folder, clock, store, user } = self;
        drop(store);
        let store = Store::open(folder.path().join("store.redb"), clock.clone()).unwrap();
        Fixture { folder, clock, store, user }
    }

    fn use_it(&self, id: Uuid) {
        if self.store.note_use(id) {
            self.store.save_session(id).unwrap();
        }
    }
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

#[test]
fn a_session_ends_after_thirty_idle_minutes_and_after_twelve_hours_anyway() {
    let site = Fixture::new();
    let (used, unused) = (site.sign_in(), site.sign_in());
    for _ in 0..(12 * 60 / 20 - 1) {
        site.clock.advance(minutes(20));
        assert!(site.store.session(used).is_some());
        site.use_it(used);
    }
    assert!(site.store.session(unused).is_none());
    site.clock.advance(minutes(20));
    assert!(site.store.session(used).is_none(), "twelve hours are over");
    assert!(site.store.sessions().is_empty());
}

#[test]
fn idle_is_counted_to_the_minute_in_memory() {
    let site = Fixture::new();
    let id = site.sign_in();
    site.clock.advance(minutes(30) - Duration::from_secs(1));
    assert!(site.store.session(id).is_some());
    site.clock.advance(Duration::from_secs(1));
    assert!(site.store.session(id).is_none());
}

#[test]
fn a_restart_keeps_sessions_the_key_and_the_last_use() {
    let site = Fixture::new();
    let (id, key) = (site.sign_in(), *site.store.session_key());
    let session = site.store.session(id).unwrap();
    site.clock.advance(minutes(25));
    site.use_it(id);
    let site = site.restart();
    site.clock.advance(minutes(25));
    assert_eq!(site.store.session(id).map(|session| session.csrf), Some(session.csrf));
    assert_eq!(site.store.session_key(), &key);
    assert_ne!(&key, &[0; 32]);
    assert_eq!(session.user_agent.as_deref(), Some("abrowser"));
    assert_eq!(site.store.last_sign_in(site.user), Some(session.created_at));
    site.clock.advance(minutes(5));
    assert!(site.store.session(id).is_none(), "idle since it was last used, restart or not");
}

#[test]
fn deleting_disabling_and_a_new_epoch_end_sessions_at_once() {
    let site = Fixture::new();
    let second = User {
        username: "bert".into(),
        role: Role::Admin,
        password_hash: Secret::new("x"),
        ..User::default()
    };
    site.store.commit(ticket(), |draft| draft.create(second)).unwrap();
    let (id, other) = (site.sign_in(), site.sign_in());
    let change = |edit: fn(&mut User)| {
        site.store.commit(ticket(), |draft| draft.update::<User>(site.user, None, edit)).unwrap();
    };
    change(|user| user.enabled = false);
    assert!(site.store.session(id).is_none());
    change(|user| user.enabled = true);
    assert!(site.store.session(id).is_some());
    change(|user| user.session_epoch += 1);
    site.store.keep_session(id, 1).unwrap();
    assert!(site.store.session(id).is_some() && site.store.session(other).is_none());
    let site = site.restart();
    assert!(site.store.session(id).is_some() && site.store.session(other).is_none());
    site.store.commit(ticket(), |draft| draft.remove::<User>(site.user, None, false)).unwrap();
    assert!(site.store.session(id).is_none() && site.store.sessions().is_empty());
}

#[test]
fn a_closed_session_stays_closed_and_leaves_an_entry() {
    let site = Fixture::new();
    let id = site.sign_in();
    site.clock.advance(minutes(2));
    assert!(site.store.note_use(id));
    site.store.close_sessions(ticket(), &[id]).unwrap();
    site.store.save_session(id).unwrap();
    assert!(site.store.session(id).is_none());
    let site = site.restart();
    assert!(site.store.session(id).is_none());
    assert_eq!(site.store.verify_audit().unwrap().entries, 3);
    assert!(site.store.verify_audit().unwrap().intact);
}

#[test]
fn a_user_has_a_bounded_number_of_sessions() {
    let site = Fixture::new();
    let first = site.sign_in();
    for _ in 0..PER_USER {
        site.clock.advance(Duration::from_secs(1));
        site.sign_in();
    }
    assert_eq!(site.store.sessions().len(), PER_USER);
    assert!(site.store.session(first).is_none());
    let site = site.restart();
    assert_eq!(site.store.sessions().len(), PER_USER);
}

#[test]
fn a_clock_that_was_set_back_lets_no_session_live_longer() {
    let site = Fixture::new();
    let id = site.sign_in();
    site.clock.set("2026-11-20T11:58:00Z".parse().unwrap());
    assert!(site.store.session(id).is_some(), "a small correction does no harm");
    site.clock.set("2026-11-19T12:00:00Z".parse().unwrap());
    assert!(site.store.session(id).is_none());
    site.clock.set("2026-11-20T12:10:00Z".parse().unwrap());
    assert!(site.store.session(id).is_some());
}

#[test]
fn sessions_of_all_users_are_bounded_and_the_least_recently_used_end() {
    let site = Fixture::new();
    let mut first = None;
    for number in 0..IN_SUM / PER_USER + 1 {
        let user = User {
            username: format!("user-{number}"),
            role: Role::Viewer,
            password_hash: Secret::new("x"),
            ..User::default()
        };
        let (user, _) = site.store.commit(ticket(), |draft| draft.create(user)).unwrap();
        for _ in 0..PER_USER {
            site.clock.advance(Duration::from_millis(1));
            let session = Session::new(user.meta.id, 0, site.store.clock().now(), None, None);
            first.get_or_insert(session.id);
            site.store.open_session(ticket(), session).unwrap();
        }
    }
    assert_eq!(site.store.sessions().len(), IN_SUM);
    assert!(first.is_some_and(|first| site.store.session(first).is_none()), "the oldest one is still there");
}
