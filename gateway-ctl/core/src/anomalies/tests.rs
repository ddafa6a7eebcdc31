//! Traffic that is an anomaly, and traffic that is not.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use gateway_model::Id;
use gateway_model::kinds::anomaly::{AnomalyKind, AnomalyStatus};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::countries::CountryCode;
use crate::flow_log::FlowId;

mod flows;

const MIB: u64 = 1 << 20;

/// Engine with one device, and a clock.
struct Scene {
    engine: AnomalyEngine,
    device: Id,
    now: Timestamp,
}

fn settings(learning_hours: u32) -> AnomalySettings {
    AnomalySettings { learning_hours, large_upload: 2048 * MIB, disabled: BTreeSet::new() }
}

impl Scene {
    /// Begins on a Monday at midnight, in UTC.
    fn new() -> Scene {
        let now: Timestamp = "2026-11-02T00:00:00Z".parse().expect("a time");
        let mut engine = AnomalyEngine::default();
        engine.set(settings(24));
        engine.set_sources(BTreeSet::from([ObservationSource::FlowLog, ObservationSource::Countries]));
        let mut scene = Scene { engine, device: Id::mint(now, 1), now };
        scene.begin();
        scene
    }

    fn clock(&self) -> Clock {
        Clock { now: self.now, offset: 0 }
    }

    fn begin(&mut self) {
        self.engine.begin(self.clock(), &BTreeSet::from([self.device]));
    }

    fn pass(&mut self, minutes: i64) -> Vec<Anomaly> {
        let found = self.engine.check(self.clock());
        self.now += SignedDuration::from_mins(minutes);
        self.begin();
        found
    }

    /// Lets weeks pass in which each hour has these values.
    fn learn(&mut self, weeks: i64, values: impl Fn(i64) -> (u64, u64)) {
        for hour in 0..weeks * 168 {
            let (sent, queries) = values(hour % 168);
            self.engine.note_sent(self.device, sent);
            (0..queries).for_each(|_| self.query("www.example.org", false));
            assert_eq!(self.pass(60), [], "hour {hour}");
        }
    }

    fn query(&mut self, name: &str, nxdomain: bool) {
        self.engine.note_query(self.device, &QuerySeen { name, nxdomain, is_doh: false });
    }

    fn flow(&mut self, destination: IpAddr, port: u16, protocol: u8) -> FlowId {
        self.flow_to(destination, port, protocol, None)
    }

    fn flow_to(
        &mut self,
        destination: IpAddr,
        port: u16,
        protocol: u8,
        country: Option<CountryCode>,
    ) -> FlowId {
        let id = FlowId::new(self.now, &port.to_le_bytes());
        let (name, is_doh, is_local) = (None, false, false);
        let flow = FlowSeen { id, destination, port, protocol, name, country, is_doh, is_local };
        self.engine.note_flow(self.device, &flow);
        id
    }

    /// Lets the time of learning pass, with the same flow in each hour.
    fn learn_flows(&mut self, destination: IpAddr, port: u16) {
        for _ in 0..25 {
            self.flow(destination, port, 6);
            assert_eq!(self.pass(60), []);
        }
    }

    fn kinds(&mut self) -> Vec<AnomalyKind> {
        self.engine.check(self.clock()).iter().map(|anomaly| anomaly.kind).collect()
    }
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, last).into()
}

/// Busy by day, quiet at night.
fn usual(hour: i64) -> (u64, u64) {
    if (8..22).contains(&(hour % 24)) { (20 * MIB, 100) } else { (1000, 2) }
}

#[test]
fn nothing_is_an_anomaly_while_it_is_learned_except_what_always_is() {
    let mut scene = Scene::new();
    scene.engine.note_sent(scene.device, 1000 * MIB);
    (0..5000).for_each(|_| scene.query("www.example.org", false));
    assert_eq!(scene.kinds(), []);
    scene.engine.note_sent(scene.device, 1048 * MIB);
    assert_eq!(scene.kinds(), [AnomalyKind::LargeUpload]);
    assert_eq!(scene.engine.devices(), (1, 1));
}

#[test]
fn an_upload_far_above_what_is_usual_at_the_hour_is_found_once() {
    let mut scene = Scene::new();
    scene.learn(3, usual);
    assert_eq!(scene.engine.devices(), (1, 0));
    scene.pass(12 * 60);
    scene.engine.note_sent(scene.device, 60 * MIB);
    assert_eq!(scene.kinds(), [], "three times the median is within the floor");
    scene.engine.note_sent(scene.device, 40 * MIB);
    let found = scene.engine.check(scene.clock());
    let [anomaly] = &found[..] else { panic!("{found:?}") };
    assert_eq!((anomaly.kind, anomaly.status), (AnomalyKind::AbnormalUpload, AnomalyStatus::Open));
    let baseline = anomaly.baseline.expect("a baseline");
    assert_eq!((baseline.samples, baseline.basis), (3, BaselineBasis::HourOfWeek));
    assert!((baseline.median / (20 * MIB) as f64 - 1.0).abs() < 0.001, "{baseline:?}");
    assert!(anomaly.observed >= (100 * MIB) as f64 && anomaly.score > 0.5, "{anomaly:?}");
    assert_eq!((anomaly.window.to, anomaly.first_seen), (scene.now, scene.now));

    scene.engine.note_sent(scene.device, 400 * MIB);
    assert_eq!(scene.kinds(), [], "it is open");
    let renewed = scene.engine.anomalies().next().expect("the anomaly");
    assert!(renewed.observed >= (500 * MIB) as f64 && renewed.score > anomaly.score);
    for _ in 0..3 {
        scene.pass(60);
    }
    assert_eq!(scene.engine.anomalies().next().map(|anomaly| anomaly.status), Some(AnomalyStatus::Closed));
}

#[test]
fn traffic_at_night_is_found_for_a_device_that_sleeps_and_not_for_one_that_does_not() {
    let mut scene = Scene::new();
    scene.learn(3, usual);
    scene.pass(3 * 60);
    scene.engine.note_sent(scene.device, 5 * MIB);
    assert_eq!(scene.kinds(), [AnomalyKind::NightActivity]);

    let mut scene = Scene::new();
    scene.learn(3, |_| (5 * MIB, 10));
    scene.pass(3 * 60);
    scene.engine.note_sent(scene.device, 7 * MIB);
    assert_eq!(scene.kinds(), []);
}

#[test]
fn the_hour_is_that_of_the_local_time() {
    let mut scene = Scene::new();
    scene.learn(3, usual);
    // 10:30 in UTC is 3:30 at the offset of the device.
    scene.pass(10 * 60 + 30);
    scene.engine.note_sent(scene.device, 5 * MIB);
    let clock = Clock { now: scene.now, offset: -7 * 3600 };
    scene.engine.begin(clock, &BTreeSet::from([scene.device]));
    scene.engine.note_sent(scene.device, 5 * MIB);
    let kinds: Vec<AnomalyKind> = scene.engine.check(clock).iter().map(|anomaly| anomaly.kind).collect();
    assert_eq!(kinds, [AnomalyKind::NightActivity]);
}

#[test]
fn many_queries_and_many_names_that_do_not_exist_are_found() {
    let mut scene = Scene::new();
    scene.learn(3, usual);
    scene.pass(12 * 60);
    (0..550).for_each(|_| scene.query("www.example.org", false));
    assert_eq!(scene.kinds(), []);
    (0..100).for_each(|number| scene.query(&format!("missing-{number}.example.org"), true));
    assert_eq!(scene.kinds(), [AnomalyKind::DnsVolume, AnomalyKind::DnsNxdomainBurst]);
}

#[test]
fn generated_names_and_long_names_below_one_domain_need_no_baseline() {
    let mut scene = Scene::new();
    (0..19)
        .for_each(|number: u8| scene.query(&format!("xkq{}zvbwpdfh.com", char::from(b'b' + number)), true));
    (0..99).for_each(|number| scene.query(&format!("{number:040x}.t.example.net"), false));
    assert_eq!(scene.kinds(), []);
    scene.query("bvcxzlkjhgfd.info", true);
    scene.query(&format!("{:040x}.t.example.net", 99), false);
    assert_eq!(scene.kinds(), [AnomalyKind::DgaLike, AnomalyKind::DnsTunnelLike]);
    let tunnel = scene.engine.anomalies().next().expect("the anomaly");
    assert!(tunnel.description.contains("example.net"), "{}", tunnel.description);
}

#[test]
fn an_hour_that_was_not_observed_from_its_begin_is_no_sample() {
    let mut scene = Scene::new();
    scene.pass(60);
    let hours = |scene: &Scene| scene.engine.profile(scene.device).expect("a profile").hours;
    assert_eq!(hours(&scene), 1);
    let mut engine = AnomalyEngine::restore(scene.engine.stored());
    engine.set(settings(24));
    scene.engine = engine;
    scene.now += SignedDuration::from_mins(30);
    scene.begin();
    scene.pass(30);
    assert_eq!(hours(&scene), 1, "the daemon began in the middle");
    scene.pass(180);
    assert_eq!(hours(&scene), 1, "the host was asleep");
}

#[test]
fn what_is_stored_goes_on_after_a_restart() {
    let mut scene = Scene::new();
    scene.learn(3, usual);
    scene.engine.note_sent(scene.device, 3000 * MIB);
    assert_eq!(scene.kinds().first(), Some(&AnomalyKind::LargeUpload));
    let stored = serde_json::to_string(&scene.engine.stored()).expect("JSON");
    let read: Stored = serde_json::from_str(&stored).expect("the same");
    let again = AnomalyEngine::restore(read);
    let shown = |engine: &AnomalyEngine| -> Vec<(u64, AnomalyKind, Timestamp)> {
        engine.anomalies().map(|anomaly| (anomaly.id, anomaly.kind, anomaly.first_seen)).collect()
    };
    assert_eq!(shown(&again), shown(&scene.engine));
    let (before, after) = (scene.engine.profile(scene.device), again.profile(scene.device));
    assert_eq!(before.map(|profile| &profile.sent), after.map(|profile| &profile.sent));
    assert_eq!(before.map(|profile| profile.hours), after.map(|profile| profile.hours));
}

#[test]
fn kinds_that_are_not_observed_say_why() {
    let mut scene = Scene::new();
    scene.engine.set_sources(BTreeSet::from([ObservationSource::QueryLog]));
    let missed = Missed { queries: 3, flows: 4 };
    let stats = scene.engine.stats(true, missed, scene.now);
    assert_eq!(stats.kinds.len(), AnomalyKind::ALL.len());
    let state = |kind| stats.kinds.iter().find(|state| state.kind == kind).expect("every kind");
    assert!(state(AnomalyKind::DnsVolume).observed && state(AnomalyKind::DnsVolume).reason.is_none());
    let country = state(AnomalyKind::NewDestinationCountry);
    assert!(!country.observed && country.reason.is_some());
    assert!(stats.learning && stats.devices == 1);
    assert_eq!((stats.missed_queries, stats.missed_flows), (3, 4));
    let off = scene.engine.stats(false, missed, scene.now);
    assert!(off.kinds.iter().all(|state| !state.observed && state.reason.is_some()));
}

fn observations() -> impl Strategy<Value = Vec<(u8, u64, String, bool)>> {
    prop::collection::vec(
        (0..4u8, any::<u64>(), "[a-z0-9]{0,40}(\\.[a-z0-9]{0,30}){0,4}", any::<bool>()),
        0..600,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a device does, its profile stays within 64 KiB, and nothing is found twice at once.
    #[test]
    fn a_profile_is_bounded(observations in observations(), hours in 0..40i64) {
        let mut scene = Scene::new();
        scene.engine.set(settings(0));
        for round in 0..=hours {
            for (what, number, name, flag) in &observations {
                match what {
                    0 => scene.engine.note_sent(scene.device, *number >> 20),
                    1 | 2 => scene.query(name, *flag),
                    _ => {
                        let [a, b, ..] = number.to_le_bytes();
                        let country = CountryCode::new([b'A' + a % 26, b'A' + b % 26]);
                        let to = Ipv4Addr::new(10, a, b, round as u8).into();
                        scene.flow_to(to, (*number >> 16) as u16, 6, country);
                    }
                }
            }
            scene.pass(60);
        }
        let profile = scene.engine.profile(scene.device).expect("a profile");
        prop_assert!(profile.bytes() <= 64 << 10, "{}", profile.bytes());
        let open = scene.engine.anomalies().filter(|anomaly| anomaly.status == AnomalyStatus::Open);
        let kinds: Vec<AnomalyKind> = open.map(|anomaly| anomaly.kind).collect();
        prop_assert_eq!(kinds.len(), kinds.iter().collect::<BTreeSet<_>>().len());
        for anomaly in scene.engine.anomalies() {
            prop_assert!((0.0..=1.0).contains(&anomaly.score), "{:?}", anomaly);
            prop_assert!(anomaly.window.from <= anomaly.window.to);
        }
    }

    /// The median is one of the middle, and a constant value is never an anomaly.
    #[test]
    fn a_constant_value_is_usual(value in 0..1u64 << 40, hour in 0..168usize, count in 3..6usize) {
        let mut samples = Samples::default();
        (0..count).for_each(|_| samples.push(hour, value));
        let baseline = samples.baseline(hour, 1.0).expect("enough samples");
        prop_assert!((baseline.median - value as f64).abs() <= value as f64 * 0.001 + 0.001);
        prop_assert!(baseline.threshold > baseline.median && baseline.deviation <= value as f64 * 0.001 + 0.001);
        prop_assert_eq!(samples.baseline((hour + 1) % 168, 1.0), None);
    }

    /// Samples from a file are read as they were written, or refused.
    #[test]
    fn samples_are_read_as_they_were_written(values in prop::collection::vec((0..168usize, any::<u64>()), 0..300)) {
        let mut samples = Samples::default();
        values.iter().for_each(|(hour, value)| samples.push(*hour, *value));
        let text = serde_json::to_string(&samples).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Samples>(&text).expect("the same"), samples);
    }

    #[test]
    fn no_text_makes_samples_panic(text in "[A-Za-z0-9+/=]{0,100}") {
        let _ = serde_json::from_value::<Samples>(text.into());
    }
}
