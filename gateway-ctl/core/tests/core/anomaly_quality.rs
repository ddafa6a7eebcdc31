//! Recall and precision of the detection of anomalies, on the traffic of a household that is made up, with incidents and
//! flows of real captures in it. The figures are in `docs/src/alerts.md`.

mod captures;
mod household;
mod incidents;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gateway_core::anomalies::{Anomaly, AnomalyEngine, AnomalySettings, Clock, ObservationSource};
use gateway_model::Id;
use gateway_model::kinds::anomaly::AnomalyKind;
use gateway_model::settings::bootstrap;
use jiff::{SignedDuration, Timestamp};

use household::Device;
use incidents::Incident;
use traffic::{Random, Traffic};

/// Environment variable with the number of households.
const HOUSEHOLDS: &str = "GATEWAY_ANOMALY_HOUSEHOLDS";
/// Number of households by default, whose figures the documentation has.
const DOCUMENTED_HOUSEHOLDS: u64 = 6;
const LEARNING_DAYS: i64 = 28;
const EVALUATED_DAYS: i64 = 28;
/// Each device has an incident on one of so many days.
const DAYS_PER_INCIDENT: u64 = 4;
/// An anomaly belongs to an incident until so many hours after it began.
const INCIDENT_HOURS: i64 = 2;
/// Kinds that the traffic cannot have: MAC addresses are no flows.
const NOT_MADE: &[AnomalyKind] = &[AnomalyKind::MacSpoof];

/// Results for a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    incidents: u32,
    found: u32,
    true_findings: u32,
    false_findings: u32,
}

impl Score {
    fn recall(self) -> f64 {
        f64::from(self.found) / f64::from(self.incidents.max(1))
    }

    fn precision(self) -> f64 {
        f64::from(self.true_findings) / f64::from((self.true_findings + self.false_findings).max(1))
    }
}

/// Incident that a device had.
struct Happened {
    device: Id,
    hour: i64,
    incident: Incident,
    found: BTreeSet<AnomalyKind>,
}

/// Household under observation.
struct Observation {
    engine: AnomalyEngine,
    devices: Vec<(Id, Device)>,
    random: Random,
    begin: Timestamp,
    happened: Vec<Happened>,
    opened: Vec<(i64, Anomaly)>,
    device_days: i64,
}

impl Observation {
    fn new(seed: u64) -> Observation {
        // A Monday.
        let begin: Timestamp = "2026-06-01T00:00:00Z".parse().expect("a time");
        let mut engine = AnomalyEngine::default();
        let disabled = BTreeSet::new();
        let config = bootstrap::Anomalies::default();
        let (learning_hours, large_upload) =
            (config.learning_hours, u64::from(config.large_upload_mib) << 20);
        engine.set(AnomalySettings { learning_hours, large_upload, disabled });
        engine.set_sources([ObservationSource::FlowLog, ObservationSource::Countries].into());
        let mut random = Random::new(seed);
        let devices = household::devices(&mut random);
        let devices = devices
            .into_iter()
            .zip(1u128..)
            .map(|(device, number)| (Id::from_u128(number), device))
            .collect();
        let (happened, opened) = Default::default();
        Observation { engine, devices, random, begin, happened, opened, device_days: 0 }
    }

    fn run(&mut self) {
        let ids: BTreeSet<Id> = self.devices.iter().map(|(id, _)| *id).collect();
        for hour in 0..(LEARNING_DAYS + EVALUATED_DAYS) * 24 {
            let is_evaluated = hour >= LEARNING_DAYS * 24;
            let begin = self.begin + SignedDuration::from_hours(hour);
            self.engine.begin(Clock { now: begin, offset: 0 }, &ids);
            let mut devices = std::mem::take(&mut self.devices);
            for (id, device) in &mut devices {
                let mut traffic = Traffic::new(begin);
                device.spend(hour, &mut self.random, &mut traffic);
                if is_evaluated {
                    self.happen(*id, device, hour, &mut traffic);
                }
                traffic.observe(&mut self.engine, *id);
            }
            self.devices = devices;
            let end = Clock { now: begin + SignedDuration::from_mins(59), offset: 0 };
            let opened = self.engine.check(end);
            if is_evaluated {
                self.opened.extend(opened.into_iter().map(|anomaly| (hour, anomaly)));
            }
        }
        self.device_days = EVALUATED_DAYS * self.devices.len() as i64;
    }

    /// Begins an incident, at one of the hours of a day.
    fn happen(&mut self, id: Id, device: &Device, hour: i64, traffic: &mut Traffic) {
        if self.random.below(24 * DAYS_PER_INCIDENT) == 0 {
            let incident = Incident::any(&mut self.random);
            if incident.make(device, hour, &mut self.random, traffic) {
                self.happened.push(Happened { device: id, hour, incident, found: BTreeSet::new() });
            }
        }
    }

    fn score(&mut self, scores: &mut BTreeMap<AnomalyKind, Score>) {
        for (hour, anomaly) in &self.opened {
            let is_of = |happened: &&mut Happened| {
                happened.device == anomaly.device_id
                    && (happened.hour..happened.hour + INCIDENT_HOURS).contains(hour)
                    && happened.incident.kinds().contains(&anomaly.kind)
            };
            let score = scores.entry(anomaly.kind).or_default();
            match self.happened.iter_mut().find(is_of) {
                Some(happened) => {
                    score.true_findings += 1;
                    happened.found.insert(anomaly.kind);
                }
                None => score.false_findings += 1,
            }
        }
        for Happened { incident, found, .. } in &self.happened {
            let kind = incident.kinds()[0];
            let score = scores.entry(kind).or_default();
            score.incidents += 1;
            score.found += u32::from(found.contains(&kind));
        }
    }
}

/// Returns the table of the documentation.
fn table(scores: &BTreeMap<AnomalyKind, Score>, device_days: i64) -> String {
    let head =
        "| kind | incidents | recall | false findings per device-day | precision |\n|---|---|---|---|---|\n";
    let row = |kind: &AnomalyKind| {
        let score = scores.get(kind).copied().unwrap_or_default();
        let rate = f64::from(score.false_findings) / device_days as f64;
        let (incidents, recall, precision) = (score.incidents, score.recall(), score.precision());
        format!("| `{kind}` | {incidents} | {recall:.2} | {rate:.4} | {precision:.2} |\n")
    };
    let kinds = AnomalyKind::ALL.iter().filter(|kind| !NOT_MADE.contains(kind));
    head.to_owned() + &kinds.map(row).collect::<String>()
}

#[test]
fn kinds_that_are_on_are_precise_and_find_incidents() {
    let households =
        std::env::var(HOUSEHOLDS).ok().map_or(DOCUMENTED_HOUSEHOLDS, |text| text.parse().expect("a number"));
    let (mut scores, mut device_days) = (BTreeMap::new(), 0);
    for seed in 1..=households {
        let mut observation = Observation::new(seed);
        observation.run();
        observation.score(&mut scores);
        device_days += observation.device_days;
    }
    let table = table(&scores, device_days);
    println!("{device_days} device-days\n{table}");
    if households == DOCUMENTED_HOUSEHOLDS {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/alerts.md"));
        assert!(page.expect("the page of alerts").contains(&table), "docs/src/alerts.md has other figures");
    }
    let disabled = bootstrap::Anomalies::default().disabled_kinds;
    for (kind, score) in scores {
        assert!(score.incidents > 0 || NOT_MADE.contains(&kind), "no incident of {kind}");
        let is_on = !disabled.contains(&kind);
        assert!(!is_on || score.precision() >= 0.8, "{kind}: {score:?}");
        assert!(!is_on || score.recall() >= 0.2, "{kind}: {score:?}");
    }
}
