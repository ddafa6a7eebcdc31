//! Totals by rollups are those by records, over crashes, retention and erasure.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::countries::{Countries, CountryCode};
use gateway_core::flow_log::{
    Client, ClientCondition, CountryCondition, Decision, DomainCondition, FlowFilter, FlowId, FlowPath,
    FlowRecord, TopKey, TopTable, Totals, Traffic,
};
use gateway_model::Id;
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::WipeLevel;
use jiff::Timestamp;
use proptest::prelude::*;

use super::rollups::{Wanted, WantedTotals};
use super::*;

const ALWAYS: Duration = Duration::MAX;

/// Database that has a country for every second address.
struct SomeCountries;

impl Countries for SomeCountries {
    fn country(&self, address: IpAddr) -> Option<CountryCode> {
        let IpAddr::V4(four) = address else { return None };
        four.octets()[3].is_multiple_of(2).then(|| "DE".parse().expect("a code"))
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

/// Properties of a record by a seed.
fn record(second: i64, seed: u8) -> FlowRecord {
    let is_denied = seed.is_multiple_of(7);
    let path = FlowPath {
        at: at(second - 60),
        generation: 1,
        decision: if is_denied { Decision::Dropped } else { Decision::Permitted },
        reason: 1,
        policy: (!seed.is_multiple_of(3)).then(|| Id::from_u128((seed % 3).into())),
        hops: Vec::new(),
        leg: None,
        egress: (!is_denied).then(|| format!("wg-{}", seed % 4)),
    };
    let traffic = Traffic { packets: seed.into(), bytes: 100 * u64::from(seed) };
    FlowRecord {
        flow_id: FlowId::new(at(second - 60), &[seed]),
        part: u32::from(seed.is_multiple_of(5)),
        written_at: at(second),
        client: (!seed.is_multiple_of(6)).then(|| Client {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            address: [10, 0, 0, 1].into(),
            port: 50_000,
            interface: 1,
            interface_name: None,
            vlan: 0,
            device: (!seed.is_multiple_of(4)).then(|| Id::from_u128((seed % 4).into())),
            trust_class: None,
        }),
        destination: [192, 0, 2, seed].into(),
        destination_port: 443,
        protocol: 6,
        names: if !seed.is_multiple_of(8) { vec![format!("host-{}.example", seed % 8)] } else { Vec::new() },
        server_name: None,
        paths: vec![path],
        path_changes: 0,
        sent: (!is_denied).then_some(traffic),
        received: (!is_denied).then_some(traffic),
        last_at: None,
        ended_at: None,
        end: None,
    }
}

fn open(folder: &Path) -> FlowLog {
    FlowLog::open(folder, at(0))
}

/// Compares totals by rollups with those by records, and with a computation of the number of records.
fn assert_same(log: &FlowLog, since: Option<i64>, until: Option<i64>, expected: usize) {
    let filter = FlowFilter { since: since.map(at), until: until.map(at), ..FlowFilter::default() };
    for by in TopKey::ALL {
        for countries in [None, Some(&SomeCountries as &dyn Countries)] {
            let quick = log.top(&filter, *by, usize::MAX, countries);
            let count: u64 = quick.rows.iter().map(|row| row.totals.records).sum();
            assert_eq!((count, quick.others), (expected as u64, 0), "by {by}");
            // Without a database the countries that were looked up before stay.
            if *by != TopKey::Country || countries.is_some() {
                assert_eq!(quick, by_records(log, &filter, *by, countries), "by {by}");
            }
        }
    }
}

/// Returns the totals over the records, one by one. A record counts in the time of its end.
fn by_records(
    log: &FlowLog,
    filter: &FlowFilter,
    by: TopKey,
    countries: Option<&dyn Countries>,
) -> FlowTotals {
    let (mut table, known) = (TopTable::new(by), countries.unwrap_or(&()));
    let of_any_time = FlowFilter { since: None, until: None, ..filter.clone() };
    let rows = log.read(&of_any_time, None, None, usize::MAX).rows;
    let records = rows.iter().map(|row| &row.record).filter(|record| {
        let time = record.written_at;
        filter.since.is_none_or(|since| time >= since) && filter.until.is_none_or(|until| time < until)
    });
    records.for_each(|record| table.add(record, known));
    let (rows, others) = table.rows(usize::MAX);
    FlowTotals { rows, others, ended_at: None }
}

/// Conditions on what [`record`] makes: a device, and others.
fn conditions() -> impl Strategy<Value = FlowFilter> {
    let of_device = |device: u128| FlowFilter {
        client: Some(ClientCondition::Device(Id::from_u128(device))),
        ..FlowFilter::default()
    };
    let country =
        CountryCondition { code: "DE".parse().expect("a code"), countries: Arc::new(SomeCountries) };
    let more = proptest::sample::select(vec![
        FlowFilter::default(),
        FlowFilter { egress: Some("wg-1".to_owned()), ..FlowFilter::default() },
        FlowFilter { policy: Some(Id::from_u128(2)), ..FlowFilter::default() },
        FlowFilter { decision: Some(Decision::Dropped), ..FlowFilter::default() },
        FlowFilter { domain: Some(DomainCondition::Within("example".to_owned())), ..FlowFilter::default() },
        FlowFilter { domain: Some(DomainCondition::Contains("host-3".to_owned())), ..FlowFilter::default() },
        FlowFilter { country: Some(country), ..FlowFilter::default() },
        FlowFilter { min_bytes: Some(30_000), ..FlowFilter::default() },
        FlowFilter { destination: Some([192, 0, 2, 9].into()), ..FlowFilter::default() },
    ]);
    // The device 9 has no records.
    let device = proptest::option::of(prop_oneof![1..4u128, Just(9)]);
    (more, device).prop_map(move |(more, device)| FlowFilter {
        client: device.and_then(|device| of_device(device).client),
        ..more
    })
}

#[derive(Clone, Debug)]
enum Step {
    /// Records, with the seconds between them.
    Keep(Vec<(i64, u8)>),
    AddUp {
        has_countries: bool,
    },
    /// The daemon is killed, with what was not written, and starts again.
    Kill,
    /// The records are written, and the daemon starts again.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => proptest::collection::vec((0..1800i64, any::<u8>()), 1..20).prop_map(Step::Keep),
        2 => any::<bool>().prop_map(|has_countries| Step::AddUp { has_countries }),
        1 => Just(Step::Kill),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn totals_by_rollups_are_those_by_records(
        steps in proptest::collection::vec(step(), 1..12),
        times in proptest::collection::vec(any::<(Option<u16>, Option<u16>)>(), 3),
        conditions in proptest::collection::vec(conditions(), 3),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = open(folder.path());
        let mut now = 0;
        // Times of the records that the log has.
        let mut there: Vec<i64> = Vec::new();
        for step in steps {
            match step {
                Step::Keep(new) => {
                    let mut records = Vec::new();
                    for (seconds, seed) in new {
                        now += seconds;
                        records.push(record(now, seed));
                        there.push(now);
                    }
                    log.keep(&records, at(now));
                }
                Step::AddUp { has_countries } => {
                    let known = has_countries.then_some(&SomeCountries as &dyn Countries);
                    log.add_up(ALWAYS, known, at(now));
                }
                Step::Kill => {
                    drop(log);
                    log = open(folder.path());
                    let all = log.read(&FlowFilter::default(), None, None, usize::MAX).rows.len();
                    there.truncate(all);
                }
                Step::Restart => {
                    log.flush(at(now));
                    drop(log);
                    log = open(folder.path());
                }
            }
        }
        for ((since, until), filter) in times.into_iter().chain([(None, None)]).zip(conditions.iter().cycle()) {
            let scaled = |part: u16| now * i64::from(part) / i64::from(u16::MAX);
            let (since, until) = (since.map(scaled), until.map(scaled));
            let is_in = |time: &&i64| since.is_none_or(|since| **time >= since) && until.is_none_or(|until| **time < until);
            assert_same(&log, since, until, there.iter().filter(is_in).count());
            let filter = FlowFilter { since: since.map(at), until: until.map(at), ..filter.clone() };
            for by in TopKey::ALL {
                let known = Some(&SomeCountries as &dyn Countries);
                prop_assert_eq!(log.top(&filter, *by, usize::MAX, known), by_records(&log, &filter, *by, known), "by {} of {:?}", by, filter);
            }
        }
    }
}

/// Keeps a record in each of some hours, and adds them up.
fn keep_hours(log: &FlowLog, hours: std::ops::Range<i64>) {
    for hour in hours {
        let records: Vec<FlowRecord> = (0..50).map(|seed| record(3600 * hour + 1, seed)).collect();
        log.keep(&records, at(3600 * hour + 1));
        log.add_up(ALWAYS, Some(&SomeCountries), at(3600 * hour + 1));
    }
}

fn files(folder: &Path, of: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(of)).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn totals_of_whole_hours_read_no_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = open(folder.path());
    keep_hours(&log, 0..5);
    log.flush(at(0));
    drop(log);
    // Nothing can be read of the records any more, but that they are there.
    let path = files(folder.path(), "flows").pop().expect("a file");
    let mut bytes = fs::read(&path).expect("a file");
    let log = open(folder.path());
    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
    fs::write(&path, bytes).expect("written");
    let totals = log.top(&FlowFilter::default(), TopKey::Egress, 10, None);
    let records: u64 = totals.rows.iter().map(|row| row.totals.records).sum();
    assert_eq!(records, 4 * 50, "the hour that goes on is read from its records");
}

#[test]
fn totals_of_a_device_read_only_hours_in_which_it_has_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = open(folder.path());
    // The device 1 has the records of odd hours, the device 2 those of the others.
    for hour in 0..6 {
        let seed = if hour % 2 == 1 { 1 } else { 2 };
        let records: Vec<FlowRecord> = (0..50).map(|second| record(3600 * hour + second, seed)).collect();
        log.keep(&records, at(3600 * hour));
        log.flush(at(3600 * hour));
        log.add_up(ALWAYS, None, at(3600 * hour));
    }
    let of_device = |device: u128| FlowFilter {
        client: Some(ClientCondition::Device(Id::from_u128(device))),
        ..FlowFilter::default()
    };
    for (device, hours) in [(1, 3), (2, 3), (9, 0)] {
        for by in TopKey::ALL {
            let totals = log.top(&of_device(device), *by, 10, None);
            assert_eq!(totals, by_records(&log, &of_device(device), *by, None), "{device} by {by}");
            assert_eq!(totals.rows.iter().map(|row| row.totals.records).sum::<u64>(), 50 * hours);
        }
    }
    let answered = |totals| {
        let mut table = TopTable::new(TopKey::Domain);
        let wanted = Wanted { totals, since: None, until: None, first: 1, needs_countries: false };
        let written = log.0.rollups.lock().add_to(&mut table, wanted);
        written.add_to(&mut table).iter().map(|ids| ids.end - ids.start).sum::<u64>()
    };
    let device = Id::from_u128(1);
    assert_eq!((answered(WantedTotals::NoneOf(device)), answered(WantedTotals::Unknown)), (150, 0));
}

#[test]
fn rollups_go_with_their_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = open(folder.path());
    keep_hours(&log, 0..100);
    log.flush(at(0));
    let (records, rollups) =
        (files(folder.path(), "flows").len(), files(folder.path(), "flow-rollups").len());
    assert!(records >= 4 && rollups >= 4, "{records} and {rollups} files");
    let keep = Duration::from_secs(2 * 86_400);
    let settings = Settings { keep, ..Settings::unbounded(folder.path().join("flows"), 0) };
    log.0.journal.lock().set(settings, at(3600 * 100));
    log.add_up(ALWAYS, None, at(3600 * 100));
    assert!(files(folder.path(), "flow-rollups").len() < rollups);
    let there = log.read(&FlowFilter::default(), None, None, usize::MAX).rows.len();
    assert!(there < 100 * 50, "{there} records");
    assert_same(&log, None, None, there);
    log.erase(WipeLevel::Soft).expect("erased");
    assert_eq!(files(folder.path(), "flow-rollups"), Vec::<PathBuf>::new());
    assert_eq!(log.top(&FlowFilter::default(), TopKey::Device, 10, None).rows, []);
    keep_hours(&log, 200..203);
    assert_same(&log, None, None, 3 * 50);
}

#[test]
fn rollups_without_their_records_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = open(folder.path());
    keep_hours(&log, 0..3);
    drop(log);
    fs::remove_dir_all(folder.path().join("flows")).expect("removed");
    let log = open(folder.path());
    assert_eq!(log.top(&FlowFilter::default(), TopKey::Device, 10, None).rows, []);
    keep_hours(&log, 0..2);
    assert_same(&log, None, None, 2 * 50);
}

#[test]
fn hours_of_before_the_database_are_looked_up_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = open(folder.path());
    let records: Vec<FlowRecord> = (0..3).map(|hour| record(3600 * hour, 2)).collect();
    log.keep(&records, at(0));
    log.add_up(ALWAYS, None, at(0));
    let by_country = |known| {
        let totals = log.top(&FlowFilter::default(), TopKey::Country, 10, known);
        totals.rows.into_iter().map(|row| (row.name, row.totals)).collect::<Vec<(Option<String>, Totals)>>()
    };
    let (unknown, known) = (by_country(None), by_country(Some(&SomeCountries)));
    assert_eq!((unknown.len(), &unknown[0].0), (1, &None));
    assert_eq!(known, [(Some("DE".to_owned()), unknown[0].1)]);
}
