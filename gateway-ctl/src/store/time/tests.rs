//! Tests of exceptions, policies, API keys and slow clocks: nothing that has ended comes back.

use std::sync::Arc;
use std::time::Duration;

use gateway_model::kinds::exception::{Exception, ExceptionStatus, ExceptionType};
use gateway_model::kinds::{ApiKey, Device};
use gateway_model::{Id, RoutingPolicy};
use jiff::Timestamp;

use crate::clock::{ManualClock, SteadyClock};
use crate::store::{AuditTicket, Confirm, RollbackOptions, SnapshotReason, Store, restore};

const MINUTE: Duration = Duration::from_secs(60);

struct Fixture {
    folder: tempfile::TempDir,
    kernel: Arc<ManualClock>,
    store: Option<Store>,
}

impl Fixture {
    /// Creates a store with a device, under an unsynchronised clock.
    fn new() -> Fixture {
        let kernel = ManualClock::at(at("2026-11-22T12:00:00Z"));
        kernel.set_synchronised(false);
        let mut site = Fixture { folder: tempfile::tempdir().unwrap(), kernel, store: None };
        site.start();
        let device = Device { name: "laptop".into(), ..Device::default() };
        let ticket = AuditTicket::system("create_device", "device");
        site.store().commit(ticket, |draft| draft.create(device).map(drop)).unwrap();
        site
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// Restarts as after `kill -9`: nothing was stored at the end.
    fn start(&mut self) {
        self.store = None;
        let clock = SteadyClock::over(self.kernel.clone());
        let store = Store::open(self.folder.path().join("store.redb"), clock).unwrap();
        store.end_overdue().unwrap();
        self.store = Some(store);
    }

    fn except(&self, r#type: ExceptionType, minutes: i64) -> Id {
        let device_id = self.store().current().devices.iter().next().unwrap().meta.id;
        let exception = Exception {
            r#type,
            device_id,
            allow_direct: true,
            duration_min: minutes,
            ..Exception::default()
        };
        let ticket = AuditTicket::system("create_exception", "exception");
        let (made, _) = self.store().commit(ticket, |draft| draft.create(exception)).unwrap();
        made.meta.id
    }

    fn status(&self, id: Id) -> ExceptionStatus {
        let now = self.store().clock().now();
        self.store().current().exceptions.get(id).unwrap().status(now)
    }

    fn ended_at(&self, id: Id) -> Option<Timestamp> {
        self.store().current().exceptions.get(id).unwrap().ended_at
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Two hours back, twenty years back, and no battery.
const BEHIND: [&str; 3] = ["2026-11-22T10:00:00Z", "2006-11-22T12:00:00Z", "1970-01-01T00:00:10Z"];

#[test]
fn ended_exception_stays_ended_when_the_clock_steps_back_under_the_daemon() {
    for set in BEHIND {
        let site = Fixture::new();
        let id = site.except(ExceptionType::EmergencyBypass, 1);
        site.kernel.advance(MINUTE / 2);
        site.kernel.set(at(set));
        assert_eq!(site.status(id), ExceptionStatus::Active, "{set}: it has time left");
        site.kernel.advance(MINUTE / 2);
        assert_eq!(site.status(id), ExceptionStatus::Expired, "{set}: prolonged");
        assert_eq!(site.store().end_overdue().unwrap(), 1);
        site.kernel.set(at(set));
        assert_eq!(site.status(id), ExceptionStatus::Expired, "{set}: revived");
        assert!(site.ended_at(id).is_some());
        assert_eq!(site.store().end_overdue().unwrap(), 0, "once");
    }
}

#[test]
fn exception_that_ended_while_nothing_ran_stays_ended() {
    for set in BEHIND {
        let mut site = Fixture::new();
        let id = site.except(ExceptionType::EmergencyBypass, 60);
        site.store = None;
        site.kernel.advance(61 * MINUTE);
        site.kernel.set(at(set));
        site.start();
        assert_eq!(site.status(id), ExceptionStatus::Expired, "{set}: the boot clock knows");
        assert!(site.ended_at(id).is_some(), "{set}");
    }
}

#[test]
fn exception_of_this_boot_survives_kill_9_whatever_the_clock_shows() {
    for set in BEHIND {
        let mut site = Fixture::new();
        let id = site.except(ExceptionType::EmergencyBypass, 60);
        site.kernel.advance(MINUTE);
        site.kernel.set(at(set));
        site.start();
        assert_eq!(site.status(id), ExceptionStatus::Active, "{set}");
    }
}

#[test]
fn reboot_without_a_synchronised_clock_ends_what_lets_out_and_keeps_quarantine() {
    for set in BEHIND {
        let mut site = Fixture::new();
        let bypass = site.except(ExceptionType::EmergencyBypass, 60);
        let quarantine = site.except(ExceptionType::Quarantine, 60);
        site.kernel.reboot();
        site.kernel.set(at(set));
        site.start();
        assert_eq!(site.status(bypass), ExceptionStatus::Expired, "{set}");
        assert_eq!(site.status(quarantine), ExceptionStatus::Active, "{set}");
        // The right time comes later; ended exceptions stay ended.
        site.kernel.set(at("2026-11-22T12:10:00Z"));
        site.kernel.set_synchronised(true);
        site.start();
        assert_eq!(site.status(bypass), ExceptionStatus::Expired, "{set}");
        assert_eq!(site.status(quarantine), ExceptionStatus::Active, "{set}");
    }
}

#[test]
fn reboot_with_a_synchronised_clock_keeps_exceptions_that_have_time_left() {
    let mut site = Fixture::new();
    let id = site.except(ExceptionType::EmergencyBypass, 60);
    site.kernel.reboot();
    site.kernel.set_synchronised(true);
    site.kernel.set(at("2026-11-22T12:10:00Z"));
    site.start();
    assert_eq!(site.status(id), ExceptionStatus::Active);
}

#[test]
fn synchronised_time_that_is_behind_is_taken_over_and_ends_what_lets_out() {
    let site = Fixture::new();
    let id = site.except(ExceptionType::EmergencyBypass, 60);
    site.kernel.set(at("2026-11-22T10:00:00Z"));
    site.kernel.set_synchronised(true);
    assert_eq!(site.store().end_overdue().unwrap(), 1);
    assert_eq!(site.store().clock().now(), at("2026-11-22T10:00:00Z"));
    for minutes in [0, 120, 150] {
        site.kernel.set(at("2026-11-22T10:00:00Z") + jiff::SignedDuration::from_mins(minutes));
        assert_eq!(site.status(id), ExceptionStatus::Expired, "after {minutes} minutes");
    }
}

impl Fixture {
    /// Creates an applied policy and an API key, both of which end in a minute.
    fn policy_and_key(&self, priority: i64) -> (Id, Id) {
        let end = Some(self.store().clock().now() + MINUTE);
        let ticket = AuditTicket::system("create_policy", "routing_policy");
        let ids = self.store().commit(ticket, |draft| {
            let (policy, _) =
                draft.create(RoutingPolicy { priority, expires_at: end, ..RoutingPolicy::default() })?;
            let key = ApiKey { name: format!("key {priority}"), expires_at: end, ..ApiKey::default() };
            let (key, _) = draft.create(key)?;
            draft.freeze_applied();
            Ok::<_, gateway_model::EditError>((policy.meta.id, key.meta.id))
        });
        ids.unwrap()
    }

    /// Reports whether the policy applies, and whether the key is valid.
    fn holds(&self, (policy, key): (Id, Id)) -> (bool, bool) {
        let (state, now) = (self.store().current(), self.store().clock().now());
        let applied = state.applied.policies.get(policy).unwrap();
        (applied.in_force(now), !state.api_keys.get(key).unwrap().is_expired(now))
    }
}

#[test]
fn synchronised_time_that_is_behind_revives_neither_policies_nor_api_keys() {
    let mut site = Fixture::new();
    let ended = site.policy_and_key(1);
    assert_eq!(site.holds(ended), (true, true));
    site.kernel.advance(2 * MINUTE);
    let running = site.policy_and_key(2);
    assert_eq!(site.store().end_overdue().unwrap(), 2);
    site.kernel.set(at("2026-11-22T10:00:00Z"));
    site.kernel.set_synchronised(true);
    assert_eq!(site.store().end_overdue().unwrap(), 0);
    assert_eq!(site.store().clock().now(), at("2026-11-22T10:00:00Z"));
    for _ in 0..2 {
        assert_eq!(site.holds(ended), (false, false), "revived");
        assert_eq!(site.holds(running), (true, true), "time is left");
        site.start();
    }
}

#[test]
fn policy_and_api_key_that_ended_while_nothing_ran_stay_ended() {
    let mut site = Fixture::new();
    let ended = site.policy_and_key(1);
    site.store = None;
    site.kernel.advance(2 * MINUTE);
    site.start();
    site.kernel.set(at("2026-11-22T10:00:00Z"));
    site.kernel.set_synchronised(true);
    site.store().end_overdue().unwrap();
    assert_eq!(site.holds(ended), (false, false));
}

#[test]
fn rollback_to_a_snapshot_revives_no_exception() {
    let site = Fixture::new();
    let (revoked, ended) =
        (site.except(ExceptionType::EmergencyBypass, 60), site.except(ExceptionType::TemporaryDirect, 60));
    let ticket = AuditTicket::system("create_snapshot", "snapshot");
    let snapshot = site.store().take_snapshot(ticket, SnapshotReason::Manual, None).unwrap().unwrap();
    let later = site.except(ExceptionType::EmergencyBypass, 60);
    let ticket = AuditTicket::system("revoke_exception", "exception");
    site.store().commit(ticket, |draft| draft.remove::<Exception>(revoked, None, false).map(drop)).unwrap();
    let ticket = AuditTicket::system("end_exceptions", "exception");
    site.store().commit(ticket, |draft| draft.end_exceptions(&[ended])).unwrap();
    let (_, target) = site.store().snapshot(&snapshot.name).unwrap().unwrap();
    assert_eq!(target.exceptions.get(revoked).unwrap().revoked_at, None, "it has time left there");
    let ticket = AuditTicket::system("rollback", "snapshot");
    site.store().commit(ticket, |draft| restore(draft, &target)).unwrap();
    assert_eq!(site.status(revoked), ExceptionStatus::Revoked);
    assert_eq!(site.status(ended), ExceptionStatus::Expired);
    assert!(!site.store().current().exceptions.contains(later));
}

#[test]
fn timed_revert_revives_no_exception() {
    let site = Fixture::new();
    let id = site.except(ExceptionType::EmergencyBypass, 60);
    let safety =
        RollbackOptions { reason: SnapshotReason::PreApply, confirm: Some(Confirm { within: MINUTE }) };
    let ticket = AuditTicket::system("apply_plan", "plan");
    let change = |draft: &mut gateway_model::State| draft.remove::<Exception>(id, None, false).map(drop);
    site.store().commit_safely(ticket, safety, |draft, _| change(draft)).unwrap();
    assert_eq!(site.status(id), ExceptionStatus::Revoked);
    site.kernel.advance(2 * MINUTE);
    assert!(site.store().revert_overdue().unwrap());
    assert_eq!(site.status(id), ExceptionStatus::Revoked);
}
