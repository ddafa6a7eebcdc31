//! Random reports, ends, requests, mutes, restarts, lost writes and jumps of the clock.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::id::Id;
use gateway_model::kinds::alert_rule::AlertKind;
use jiff::SignedDuration;

use super::fixture::Fixture;
use crate::alerts::{AlertStatus, Transition};

/// Number of events in a normal run: 18 s of one processor. `GATEWAY_ALERT_EVENTS` makes it another.
const EVENTS: u64 = 400_000;

/// Generator of Marsaglia.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Trial {
    fixture: Fixture,
    random: Random,
    keys: Vec<(AlertKind, String)>,
    /// Conditions that hold in truth.
    holding: BTreeSet<usize>,
}

impl Trial {
    fn new(seed: u64) -> Trial {
        let mut fixture = Fixture::new();
        let tunnel = |number: u64| -> Id { format!("00000000-0000-4000-8000-{number:012}").parse().unwrap() };
        let mut keys = vec![(AlertKind::WanDown, "wan0".to_owned()), (AlertKind::WanDown, "wan1".to_owned())];
        for number in 0..6 {
            let uplink = if number < 4 { "wan0" } else { "wan1" };
            fixture.dependencies =
                std::mem::take(&mut fixture.dependencies).with_tunnel(tunnel(number), uplink);
            keys.push((AlertKind::TunnelDown, tunnel(number).to_string()));
            keys.push((AlertKind::HandshakeStale, tunnel(number).to_string()));
        }
        keys.push((AlertKind::BackupFailed, "folder".to_owned()));
        keys.push((AlertKind::StorageLow, "store".to_owned()));
        fixture.rule(AlertKind::StorageLow, |rule| rule.window = SignedDuration::from_secs(20));
        fixture.rule(AlertKind::BackupFailed, |rule| rule.threshold = 2.0);
        fixture.rule(AlertKind::WanDown, |rule| rule.cooldown = SignedDuration::from_secs(30));
        Trial { fixture, random: Random(seed), keys, holding: BTreeSet::new() }
    }

    fn step(&mut self) {
        let index = self.random.below(self.keys.len() as u64) as usize;
        let (kind, subject) = self.keys[index].clone();
        match self.random.below(100) {
            0..40 => {
                self.holding.insert(index);
                self.fixture.report(kind, &subject);
            }
            40..65 => {
                self.holding.remove(&index);
                self.fixture.end(kind, &subject);
            }
            65..85 => {
                let seconds = [0, 1, 5, 20, 60, 400][self.random.below(6) as usize];
                self.fixture.pass(seconds);
            }
            85..92 => self.request(),
            92..96 => self.jump(),
            _ => self.restart(),
        }
    }

    /// Makes a request about an alert, perhaps one that does not exist.
    fn request(&mut self) {
        let newest = self.fixture.records.keys().last().copied().unwrap_or_default();
        let id = (newest + 1).saturating_sub(self.random.below(8));
        let now = self.fixture.now;
        let status =
            self.fixture.engine.open().find(|record| record.alert.id == id).map(|record| record.alert.status);
        let is_muted = self.fixture.engine.muted().any(|record| record.alert.id == id);
        match self.random.below(4) {
            0 => {
                let done = self.fixture.engine.acknowledge(id, "anna", now);
                assert_eq!(done.is_ok(), status == Some(AlertStatus::Active), "{done:?}");
            }
            1 => {
                let done = self.fixture.engine.resolve(id, "anna", now);
                assert_eq!(done.is_ok(), status.is_some(), "{done:?}");
            }
            2 => {
                let time = SignedDuration::from_secs(self.random.below(1_000) as i64);
                let done = self.fixture.engine.mute(id, time, "anna", now);
                assert_eq!(done.is_ok(), status.is_some(), "{done:?}");
            }
            _ => {
                let done = self.fixture.engine.unmute(id, now);
                assert_eq!(done.is_ok(), is_muted, "{done:?}");
            }
        }
        self.fixture.store();
    }

    fn jump(&mut self) {
        let hours = self.random.below(2_000) as i64 - 1_000;
        self.fixture.now.wall += SignedDuration::from_hours(hours);
    }

    /// Restarts, at times before the last changes are stored. Producers report again, and some end first what holds.
    fn restart(&mut self) {
        if self.random.below(2) == 0 {
            let now = self.fixture.now;
            let id = self.fixture.engine.open().next().map(|record| record.alert.id);
            // What it changes is not stored, and the request was never answered.
            if let Some(id) = id {
                self.fixture.engine.resolve(id, "bert", now).expect("it is open");
            }
        }
        self.fixture.restart();
        let liars = self.random.below(2) == 0;
        if liars {
            for (kind, subject) in self.keys.clone() {
                self.fixture.end(kind, &subject);
            }
            let seconds = self.random.below(25) as i64;
            self.fixture.pass(seconds);
        }
        for (index, (kind, subject)) in self.keys.clone().into_iter().enumerate() {
            if self.holding.contains(&index) {
                self.fixture.report(kind, &subject);
            } else {
                self.fixture.end(kind, &subject);
            }
        }
    }

    fn check_open(&self) {
        let mut fingerprints = BTreeSet::new();
        for record in self.fixture.engine.open() {
            assert!(fingerprints.insert(record.alert.fingerprint.clone()), "{:?} twice", record.alert);
        }
    }

    /// Ends everything, and waits longer than any cooldown.
    fn settle(&mut self) {
        for (kind, subject) in self.keys.clone() {
            self.fixture.end(kind, &subject);
        }
        for _ in 0..4 {
            self.fixture.pass(301);
        }
    }

    fn check_end(&self) {
        assert_eq!(self.fixture.open(), 0, "an alert never ended");
        assert_eq!(self.fixture.engine.muted().count(), 0, "a mute never ended");
        let open: Vec<_> =
            self.fixture.records.values().filter(|record| record.alert.status.is_open()).collect();
        assert!(open.is_empty(), "the store has {open:?}");
        let times: BTreeSet<_> =
            self.fixture.records.values().map(|record| record.alert.first_seen).collect();
        assert_eq!(times.len(), self.fixture.records.len(), "two alerts have one time");
        let mut sent: BTreeMap<&str, bool> = BTreeMap::new();
        let mut last = 0;
        for notification in &self.fixture.notifications {
            assert!(notification.sequence > last);
            last = notification.sequence;
            if notification.is_consequence {
                continue;
            }
            let is_raised = sent.entry(&notification.alert.fingerprint).or_default();
            let is_muted = notification.alert.muted_until.is_some();
            match notification.transition {
                Transition::Raised | Transition::Promoted | Transition::Unmuted => {
                    assert!(!is_muted, "sent while muted: {notification:?}");
                    let returns = notification.transition == Transition::Unmuted;
                    assert_eq!(*is_raised, returns, "raised twice, or never: {notification:?}");
                    *is_raised = true;
                }
                Transition::Acknowledged | Transition::Muted => {
                    assert!(*is_raised, "unknown: {notification:?}");
                }
                Transition::Resolved => {
                    assert!(*is_raised, "resolved without being raised: {notification:?}");
                    *is_raised = false;
                }
            }
        }
        let left: Vec<_> = sent.iter().filter(|(_, is_raised)| **is_raised).collect();
        assert!(left.is_empty(), "never resolved for receivers: {left:?}");
    }
}

#[test]
fn no_duplicate_and_no_lost_end_in_random_sequences() {
    let events =
        std::env::var("GATEWAY_ALERT_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(EVENTS);
    let mut done = 0;
    for seed in 1.. {
        let mut trial = Trial::new(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        for _ in 0..2_000 {
            trial.step();
            trial.check_open();
        }
        trial.settle();
        trial.check_end();
        done += 2_000;
        if done >= events {
            return;
        }
    }
}
