//! Engine: profiles of all devices, hours that begin and end, and anomalies that open and close.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::Id;
use gateway_model::kinds::anomaly::{AnomalyKind, AnomalyStatus};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::baseline::HOURS;
use super::finding::{Anomaly, AnomalyWindow, Detected};
use super::flows::FlowSeen;
use super::observation_source::ObservationSource;
use super::profile::{Check, Profile};
use super::queries::QuerySeen;
use crate::flow_log::FlowId;

/// Maximum number of devices that are observed.
const MAX_DEVICES: usize = 10_000;
/// Maximum number of anomalies that are kept, and for how long.
const MAX_ANOMALIES: usize = 10_000;
const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
/// An anomaly that was not seen for so long is closed.
const OPEN_FOR: SignedDuration = SignedDuration::from_hours(1);
const HOUR: i64 = 3600;
/// Part of an hour that may be missing in an hour that counts as observed, in seconds.
const TOLERANCE: i64 = 120;

/// Settings of the detection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnomalySettings {
    /// Hours that a device is observed before its values are compared.
    pub learning_hours: u32,
    /// Bytes within an hour that are always an anomaly.
    pub large_upload: u64,
    /// Kinds that are not looked for.
    pub disabled: BTreeSet<AnomalyKind>,
}

/// Time of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub now: Timestamp,
    /// Seconds by which local time is ahead of UTC.
    pub offset: i32,
}

impl Clock {
    /// Returns the number of the hour since 1970, in local time.
    fn hour(self) -> i64 {
        (self.now.as_second() + i64::from(self.offset)).div_euclid(HOUR)
    }

    /// Returns the time at which an hour begins.
    fn begin_of(self, hour: i64) -> Timestamp {
        Timestamp::from_second(hour * HOUR - i64::from(self.offset)).unwrap_or(self.now)
    }
}

/// Returns the hour of the week, from 0 on Monday.
fn hour_of_week(hour: i64) -> usize {
    // 1970 began on a Thursday.
    usize::try_from((hour + 3 * 24).rem_euclid(HOURS as i64)).unwrap_or_default()
}

/// State that outlives a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stored {
    pub devices: BTreeMap<Id, Profile>,
    pub anomalies: Vec<Anomaly>,
    pub next: u64,
    pub learned_since: Option<Timestamp>,
}

/// Engine of the detection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnomalyEngine {
    devices: BTreeMap<Id, Profile>,
    /// In the order of their ids.
    anomalies: Vec<Anomaly>,
    next: u64,
    learned_since: Option<Timestamp>,
    /// Hour that is observed, and the time from which on.
    hour: Option<(i64, Timestamp)>,
    settings: Option<AnomalySettings>,
    /// Sources that could be read the last time.
    sources: BTreeSet<ObservationSource>,
}

impl AnomalyEngine {
    pub fn restore(stored: Stored) -> AnomalyEngine {
        let Stored { mut devices, anomalies, next, learned_since } = stored;
        while devices.len() > MAX_DEVICES {
            devices.pop_last();
        }
        let next = next.max(anomalies.iter().map(|anomaly| anomaly.id).max().unwrap_or_default());
        AnomalyEngine { devices, anomalies, next, learned_since, ..AnomalyEngine::default() }
    }

    pub fn stored(&self) -> Stored {
        Stored {
            devices: self.devices.clone(),
            anomalies: self.anomalies.clone(),
            next: self.next,
            learned_since: self.learned_since,
        }
    }

    pub fn set(&mut self, settings: AnomalySettings) {
        self.settings = Some(settings);
    }

    /// Notes which sources could be read.
    pub fn set_sources(&mut self, sources: BTreeSet<ObservationSource>) {
        self.sources = sources;
    }

    /// Begins a new hour where one has begun, and forgets devices that are gone. To be called before observations.
    pub fn begin(&mut self, clock: Clock, devices: &BTreeSet<Id>) {
        self.learned_since.get_or_insert(clock.now);
        self.devices.retain(|id, _| devices.contains(id));
        for id in devices {
            if self.devices.len() >= MAX_DEVICES {
                break;
            }
            self.devices.entry(*id).or_default();
        }
        let hour = clock.hour();
        match self.hour {
            Some((observed, _)) if observed == hour => {}
            Some((observed, since)) => {
                // An hour in which the daemon began late, or after which it was asleep, is no sample.
                let late = since.as_second() - clock.begin_of(observed).as_second();
                let is_whole = hour == observed + 1 && late <= TOLERANCE;
                let week = hour_of_week(observed);
                let AnomalyEngine { devices, sources, .. } = self;
                devices.values_mut().for_each(|profile| profile.end_hour(week, is_whole, sources));
                self.hour = Some((hour, clock.now));
            }
            None => self.hour = Some((hour, clock.now)),
        }
    }

    /// Notes bytes that a device has sent.
    pub fn note_sent(&mut self, device: Id, bytes: u64) {
        if let Some(profile) = self.devices.get_mut(&device) {
            let hour = profile.hour();
            hour.sent = hour.sent.saturating_add(bytes);
        }
    }

    pub fn note_query(&mut self, device: Id, query: &QuerySeen<'_>) {
        if let Some(profile) = self.devices.get_mut(&device) {
            profile.hour().queries.note(query);
        }
    }

    pub fn note_flow(&mut self, device: Id, flow: &FlowSeen<'_>) {
        let learning = self.learning_hours();
        if let Some(profile) = self.devices.get_mut(&device) {
            profile.note_flow(flow, learning);
        }
    }

    /// Notes that the MAC address of a device is online at two interfaces.
    pub fn note_spoof(&mut self, device: Id) {
        if let Some(profile) = self.devices.get_mut(&device) {
            profile.hour().is_spoofed = true;
        }
    }

    /// Compares what was observed with what is usual. Returns the anomalies that are new.
    pub fn check(&mut self, clock: Clock) -> Vec<Anomaly> {
        let (Some((hour, since)), Some(settings)) = (self.hour, self.settings.clone()) else {
            return Vec::new();
        };
        let mut found: Vec<(Id, Detected)> = Vec::new();
        for (id, profile) in &self.devices {
            let check = Check {
                hour: hour_of_week(hour),
                is_learning: profile.hours < settings.learning_hours,
                is_learning_flows: profile.flow_hours < settings.learning_hours,
                large_upload: settings.large_upload,
            };
            let detected = profile.check(check).into_iter();
            let enabled = detected.filter(|detected| !settings.disabled.contains(&detected.kind));
            found.extend(enabled.map(|detected| (*id, detected)));
        }
        let window = AnomalyWindow { from: since, to: clock.now };
        let mut opened = Vec::new();
        let mut seen = BTreeSet::new();
        for (device, detected) in found {
            // Of two observations of one kind, the first counts.
            if seen.insert((device, detected.kind)) {
                opened.extend(self.note(device, &detected, window));
            }
        }
        self.close(clock.now);
        opened
    }

    /// Opens an anomaly, or renews the open one of its kind. Returns it if it is new.
    fn note(&mut self, device: Id, detected: &Detected, window: AnomalyWindow) -> Option<Anomaly> {
        let is_same = |anomaly: &&mut Anomaly| {
            anomaly.status == AnomalyStatus::Open
                && anomaly.device_id == device
                && anomaly.kind == detected.kind
        };
        if let Some(open) = self.anomalies.iter_mut().rev().find(is_same) {
            // What was observed in this hour goes on; the same value again is nothing new.
            if detected.observed > open.observed || window.from > open.window.from {
                open.observed = detected.observed;
                open.score = detected.score().max(open.score);
                open.description.clone_from(&detected.description);
                open.flow_ids.clone_from(&detected.flow_ids);
                open.baseline = detected.baseline;
                open.last_seen = window.to;
            }
            open.window.to = open.last_seen;
            return None;
        }
        let is_known = |anomaly: &Anomaly| {
            anomaly.device_id == device && anomaly.kind == detected.kind && anomaly.last_seen >= window.from
        };
        if self.anomalies.iter().rev().any(is_known) {
            return None;
        }
        self.next += 1;
        let anomaly = Anomaly {
            id: self.next,
            kind: detected.kind,
            device_id: device,
            score: detected.score(),
            severity: detected.severity(),
            baseline: detected.baseline,
            observed: detected.observed,
            unit: detected.unit.to_owned(),
            window,
            rests_on: detected.rests_on.to_owned(),
            flow_ids: detected.flow_ids.clone(),
            description: detected.description.clone(),
            first_seen: window.to,
            last_seen: window.to,
            status: AnomalyStatus::Open,
        };
        self.anomalies.push(anomaly.clone());
        Some(anomaly)
    }

    fn close(&mut self, now: Timestamp) {
        for anomaly in &mut self.anomalies {
            if anomaly.status == AnomalyStatus::Open && now.duration_since(anomaly.last_seen) >= OPEN_FOR {
                anomaly.status = AnomalyStatus::Closed;
            }
        }
        self.anomalies.retain(|anomaly| now.duration_since(anomaly.last_seen) < RETENTION);
        let surplus = self.anomalies.len().saturating_sub(MAX_ANOMALIES);
        self.anomalies.drain(..surplus);
    }

    /// Names the flows on which an anomaly of counters rests, and adds to its description.
    pub fn attach_flows(&mut self, id: u64, flow_ids: Vec<FlowId>, addition: &str) {
        if let Some(anomaly) = self.anomalies.iter_mut().rev().find(|anomaly| anomaly.id == id) {
            anomaly.flow_ids = flow_ids;
            anomaly.description.push_str(addition);
        }
    }

    /// Reports whether a kind is looked for.
    pub fn is_enabled(&self, kind: AnomalyKind) -> bool {
        self.settings.as_ref().is_none_or(|settings| !settings.disabled.contains(&kind))
    }

    /// Returns all anomalies, newest first.
    pub fn anomalies(&self) -> impl Iterator<Item = &Anomaly> {
        self.anomalies.iter().rev()
    }

    /// Reports whether an anomaly of a kind is open.
    pub fn is_open(&self, device: Id, kind: AnomalyKind) -> bool {
        let open = |anomaly: &Anomaly| anomaly.status == AnomalyStatus::Open;
        self.anomalies
            .iter()
            .any(|anomaly| open(anomaly) && anomaly.device_id == device && anomaly.kind == kind)
    }

    pub fn learned_since(&self) -> Option<Timestamp> {
        self.learned_since
    }

    /// Returns the number of devices, and how many of them are still learned.
    pub fn devices(&self) -> (usize, usize) {
        let learning = self.learning_hours();
        (self.devices.len(), self.devices.values().filter(|profile| profile.hours < learning).count())
    }

    /// Returns the number of devices of which too few hours were observed, as this counts them.
    pub(super) fn learning(&self, hours: impl Fn(&Profile) -> u32) -> usize {
        let learning = self.learning_hours();
        self.devices.values().filter(|profile| hours(profile) < learning).count()
    }

    pub(super) fn sources(&self) -> &BTreeSet<ObservationSource> {
        &self.sources
    }

    fn learning_hours(&self) -> u32 {
        self.settings.as_ref().map_or(u32::MAX, |settings| settings.learning_hours)
    }

    /// Returns the profile of a device.
    pub fn profile(&self, device: Id) -> Option<&Profile> {
        self.devices.get(&device)
    }
}
