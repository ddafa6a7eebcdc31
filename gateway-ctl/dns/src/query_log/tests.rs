//! Records through memory and files, page by page.

mod large;

use std::ops::Deref;
use std::thread::JoinHandle;
use std::time::Duration;

use gateway_core::dns::{Cause, RuleSource};
use gateway_model::Id;
use jiff::{SignedDuration, Timestamp};

use super::journal::Journal;
use super::*;
use crate::hooks::{Client, Logged};
use crate::serve::test_doubles::{a, client, message, name};
use crate::serve::{Status, Trace, Transport};
use crate::wire::{Answer, rtype};

fn answer(text: &str) -> Vec<u8> {
    let answer = Answer { answers: vec![a(text, 60, [192, 0, 2, 1])], ..Answer::default() };
    let name = name(text);
    message(gateway_core::dns::Question { name: name.as_ref(), qtype: rtype::A }, &answer)
}

fn write(buffer: &WorkerBuffer, number: usize, client: &Client, status: Status, text: &str) {
    let time = Timestamp::from_second(1_800_000_000 + number as i64).expect("an instant");
    let because =
        RuleSource { cause: Cause::Feed, id: Some(Id::from_u128(9)), rule: "||ads^".into(), through: None };
    let mut trace = Trace::new(status);
    trace.because = (status == Status::Blocked).then_some(because);
    trace.upstream = (status == Status::Forwarded).then(|| "192.0.2.53".into());
    trace.egress = (status == Status::Forwarded).then(|| "wg-a".into());
    trace.blocked = status == Status::Error;
    trace.detail = (status == Status::Error).then(|| "the policy \"anna\" blocks\u{1b}".into());
    let reply = QueryRecord {
        time,
        elapsed: Duration::from_micros(1500),
        from: "192.0.2.9".parse().expect("v4"),
        client,
        transport: Transport::Udp,
        trace: &trace,
        message: &answer(text),
    };
    buffer.open().write(&reply);
}

/// A log with its thread.
struct RunningLog {
    log: Arc<QueryLog>,
    thread: JoinHandle<()>,
}

impl RunningLog {
    fn stop(self) {
        self.log.end();
        self.thread.join().expect("it wrote what was left");
    }
}

impl Deref for RunningLog {
    type Target = QueryLog;

    fn deref(&self) -> &QueryLog {
        &self.log
    }
}

fn start(settings: Settings) -> RunningLog {
    let log = QueryLog::new(settings, 1, WallClock::new(Timestamp::now));
    let own = log.clone();
    RunningLog { log, thread: std::thread::spawn(move || own.run()) }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let log = start(Settings::default());
    write(log.buffer(0), 0, &client(5, 0), Status::Blocked, "x.ads.example");
    write(
        log.buffer(0),
        1,
        &Client { logged: Logged::Anonymous, ..client(6, 0) },
        Status::Forwarded,
        "www.example",
    );
    write(
        log.buffer(0),
        2,
        &Client { logged: Logged::Off, ..client(7, 0) },
        Status::Cached,
        "secret.example",
    );
    let rows = log.read(&Filter::default(), None, 10).rows;
    assert_eq!(rows.len(), 2);
    let DisplayRecord { id, client, name, status, upstream, egress, answers, .. } = &rows[0];
    assert_eq!((*id, client, name.to_string().as_str()), (2, &None, "www.example"));
    assert_eq!((*status, upstream.as_deref()), (Status::Forwarded, Some("192.0.2.53")));
    assert_eq!((egress.as_deref(), &rows[1].egress), (Some("wg-a"), &None));
    assert_eq!(*answers, [(rtype::A, "192.0.2.1".to_owned())]);
    let who = rows[1].client.clone().expect("a client");
    assert_eq!((who.number, who.device, who.name.as_deref()), (5, Some(Id::from_u128(5)), Some("client 5")));
    assert_eq!((rows[1].reason, rows[1].rule.as_deref()), (Some(Cause::Feed), Some("||ads^")));
    assert_eq!((rows[1].list, rows[1].elapsed), (Some(Id::from_u128(9)), Duration::from_micros(1500)));
    assert_eq!(log.today(), Totals { queries: 3, blocked: 1, cached: 1 });
    let clients = log.clients();
    assert_eq!(clients.len(), 1, "only who is logged by name");
    assert_eq!((clients[0].queries, clients[0].blocked), (1, 1));
    assert_eq!(clients[0].top[0].0.to_string(), "x.ads.example");
    log.stop();
}

#[test]
fn the_cause_of_a_failure_is_read_where_the_client_is_named() {
    let log = start(Settings::default());
    write(log.buffer(0), 0, &client(5, 0), Status::Error, "www.example");
    // A cause names a policy, and a policy may have the name of its device.
    let anonymous = Client { logged: Logged::Anonymous, ..client(6, 0) };
    write(log.buffer(0), 1, &anonymous, Status::Error, "www.example");
    write(log.buffer(0), 2, &client(5, 0), Status::Cached, "www.example");
    let rows = log.read(&Filter::default(), None, 10).rows;
    let details: Vec<_> = rows.iter().map(|row| row.detail.as_deref()).collect();
    assert_eq!(details, [None, None, Some("the policy \"anna\" blocks")]);
    log.stop();
}

#[test]
fn rows_are_found_by_client_name_and_status() {
    let log = start(Settings::default());
    for number in 0..40 {
        let status = if number % 2 == 0 { Status::Blocked } else { Status::Cached };
        let text = if number % 4 < 2 { "a.example" } else { "b.test" };
        write(log.buffer(0), number, &client(number as u64 % 5, 0), status, text);
    }
    let count = |filter: Filter| log.read(&filter, None, 100).rows.len();
    assert_eq!(count(Filter { status: Some(Status::Blocked), ..Filter::default() }), 20);
    assert_eq!(count(Filter { client: Some(ClientFilter::Number(3)), ..Filter::default() }), 8);
    assert_eq!(
        count(Filter { client: Some(ClientFilter::Device(Id::from_u128(3))), ..Filter::default() }),
        8
    );
    let address = "192.0.2.9".parse().expect("v4");
    assert_eq!(count(Filter { client: Some(ClientFilter::Address(address)), ..Filter::default() }), 40);
    assert_eq!(
        count(Filter { domain: Some(DomainFilter::Contains("xamp".into())), ..Filter::default() }),
        20
    );
    let domain = Some(DomainFilter::Within(name("test")));
    let cached = Filter { domain: domain.clone(), status: Some(Status::Cached), ..Filter::default() };
    assert_eq!(count(cached.clone()), 10);
    let domain = Filter { domain, ..Filter::default() };
    let client = Filter { client: Some(ClientFilter::Number(3)), ..Filter::default() };
    let without = |except: Vec<Filter>| count(Filter { except, ..Filter::default() });
    assert_eq!((without(vec![domain.clone()]), without(vec![cached])), (20, 30));
    assert_eq!(without(vec![domain, client]), 16, "those that meet one of them are left out");
    log.stop();
}

#[test]
fn rows_are_found_by_what_decided_and_where_they_went() {
    let log = start(Settings::default());
    let statuses = [Status::Blocked, Status::Cached, Status::Forwarded, Status::Forwarded];
    for number in 0..40 {
        write(log.buffer(0), number, &client(1, 0), statuses[number % 4], "a.example");
    }
    let count = |filter: Filter| log.read(&filter, None, 100).rows.len();
    let of = |list| count(Filter { list: Some(Id::from_u128(list)), ..Filter::default() });
    assert_eq!((of(9), of(8)), (10, 0));
    let cached = |cached| count(Filter { cached: Some(cached), ..Filter::default() });
    assert_eq!((cached(true), cached(false)), (10, 30));
    let upstream = |text: &str| count(Filter { upstream: Some(text.to_owned()), ..Filter::default() });
    assert_eq!((upstream("192.0.2"), upstream("9.9.9.9")), (20, 0));
    let egress = |name: &str| count(Filter { egress: Some(name.to_owned()), ..Filter::default() });
    assert_eq!((egress("wg-a"), egress("wg")), (20, 0));
    let qtype = |qtype| count(Filter { qtype: Some(qtype), ..Filter::default() });
    assert_eq!((qtype(rtype::A), qtype(rtype::AAAA)), (40, 0));
    let slower = |us| count(Filter { slower_than: Some(Duration::from_micros(us)), ..Filter::default() });
    assert_eq!((slower(1499), slower(1500)), (40, 0));
    let at = |second: i64| Some(Timestamp::from_second(1_800_000_000 + second).expect("an instant"));
    let between = |since, until| count(Filter { since: at(since), until: at(until), ..Filter::default() });
    assert_eq!((between(10, 20), between(39, 99), between(40, 99)), (10, 1, 0));
    log.stop();
}

#[test]
fn a_search_ends_after_its_budget_and_goes_on_from_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { directory: Some(folder.path().into()), recent: 1, ..Settings::default() };
    let mut journal = Journal::new(settings, Timestamp::UNIX_EPOCH);
    let buffer = WorkerBuffer::default();
    for block in 0..5 {
        for number in 0..100 {
            write(&buffer, block * 100 + number, &client(1, 0), Status::Cached, "www.example");
        }
        journal.add(buffer.take(), Timestamp::UNIX_EPOCH);
        journal.flush(Timestamp::UNIX_EPOCH);
    }
    let pages = journal.view();
    let none = Filter { domain: Some(DomainFilter::Contains("nothing".into())), ..Filter::default() };
    let page = pages.read(&none, None, 10, 1);
    let SearchEnd { id, time } = page.ended_at.expect("it ended early");
    assert_eq!(id % 100, 1, "at the begin of a block: {id}");
    let first = 1_800_000_000 + i64::try_from(id).expect("small") - 1;
    assert_eq!(time, Timestamp::from_second(first).expect("an instant"));
    let (mut before, mut ends) = (id, 1);
    while let Some(end) = pages.read(&none, Some(PageStart::Id(before)), 10, 1).ended_at {
        assert!(end.id < before);
        (before, ends) = (end.id, ends + 1);
    }
    assert!(ends >= 3, "each search reads one block: {ends}");
    assert!(pages.read(&none, None, 10, u64::MAX).ended_at.is_none());
    // Blocks outside of the time range are not read.
    let at = |second: i64| Some(Timestamp::from_second(1_800_000_000 + second).expect("an instant"));
    let range = Filter { since: at(210), until: at(220), ..Filter::default() };
    let page = pages.read(&range, None, 100, u64::MAX);
    assert_eq!(page.rows.iter().map(|row| row.id).collect::<Vec<_>>(), (211..=220).rev().collect::<Vec<_>>());
    assert!(page.read < pages.read(&none, None, 10, u64::MAX).read / 3, "{} bytes", page.read);
}

#[test]
fn queries_are_counted_by_minute() {
    let mut journal = Journal::new(Settings::default(), Timestamp::UNIX_EPOCH);
    let buffer = WorkerBuffer::default();
    let at = |second| Timestamp::from_second(second).expect("an instant");
    for (second, status) in [(0, Status::Blocked), (30, Status::Cached), (130, Status::Cached)] {
        write(&buffer, 0, &client(1, 0), status, "www.example");
        journal.add(buffer.take(), at(second));
        journal.tick(at(second));
    }
    journal.tick(at(60));
    let history = journal.history(at(130), 1440);
    assert_eq!(history.len(), 2, "the clock was set back to the second minute");
    journal.tick(at(130));
    let shown: Vec<_> = journal.history(at(130), 1440);
    assert_eq!(shown[0], (at(0), Totals { queries: 2, blocked: 1, cached: 1 }));
    assert_eq!(shown[2], (at(120), Totals::default()), "a minute without queries is no gap");
    assert_eq!(journal.history(at(130), 1).len(), 1);
}

/// All ids, page by page.
fn pages(log: &QueryLog, filter: &Filter, size: usize) -> Vec<u64> {
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let rows = log.read(filter, before, size).rows;
        let Some(last) = rows.last() else { return ids };
        before = Some(PageStart::Id(last.id));
        ids.extend(rows.iter().map(|row| row.id));
    }
}

#[test]
fn pages_lead_through_memory_and_files_without_a_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { directory: Some(folder.path().into()), recent: 100, ..Settings::default() };
    let log = start(settings.clone());
    let keep = settings.clone();
    for number in 0..3000 {
        write(log.buffer(0), number, &client(1, 0), Status::Cached, &format!("n{number}.example"));
        if number % 100 == 0 {
            log.today();
        }
    }
    let expected: Vec<u64> = (1..=3000).rev().collect();
    assert!(pages(&log, &Filter::default(), 77) == expected);
    let before = Timestamp::from_second(1_800_000_000 + 10).expect("an instant");
    let rows = log.read(&Filter::default(), Some(PageStart::Time(before)), 3).rows;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [10, 9, 8]);
    log.stop();
    // Another run continues where this one ended.
    let log = start(keep);
    assert!(pages(&log, &Filter::default(), 1000) == expected);
    write(log.buffer(0), 3000, &client(1, 0), Status::Cached, "new.example");
    assert_eq!(log.read(&Filter::default(), None, 1).rows[0].id, 3001);
    log.clear();
    assert!(log.read(&Filter::default(), None, 1).rows.is_empty());
    log.stop();
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_file_that_was_cut_off_is_read_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { directory: Some(folder.path().into()), ..Settings::default() };
    for run in 0..2 {
        let log = start(settings.clone());
        for number in 0..100 {
            write(log.buffer(0), run * 100 + number, &client(1, 0), Status::Cached, "www.example");
        }
        log.stop();
    }
    let mut paths: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.path()).collect();
    paths.sort();
    let whole = std::fs::read(&paths[1]).expect("a file");
    std::fs::write(&paths[1], &whole[..whole.len() - 1]).expect("written");
    let log = start(settings.clone());
    assert_eq!(pages(&log, &Filter::default(), 1000), (1..=100).rev().collect::<Vec<_>>());
    log.stop();
    let mut wrong = std::fs::read(&paths[0]).expect("a file");
    let middle = wrong.len() / 2;
    wrong[middle] ^= 0xff;
    std::fs::write(&paths[0], &wrong).expect("written");
    let log = start(settings);
    assert!(pages(&log, &Filter::default(), 1000).is_empty());
    log.stop();
}

#[test]
fn old_files_leave_by_age_and_by_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = Some(folder.path().to_owned());
    let settings = Settings { directory, recent: 1, keep: Duration::from_secs(3600), ..Settings::default() };
    let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("an instant");
    let fill = |second: usize| {
        let (buffer, now) = (WorkerBuffer::default(), at(second as i64));
        write(&buffer, second, &client(1, 0), Status::Cached, "www.example");
        let mut journal = Journal::new(settings.clone(), now);
        journal.add(buffer.take(), now);
        journal.flush(now);
    };
    let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
    fill(0);
    fill(1800);
    assert_eq!(files(), 2);
    fill(3700);
    assert_eq!(files(), 2, "what is older than an hour has left");
    let small = Settings { bytes: 1, ..settings.clone() };
    Journal::new(small, at(3700) + SignedDuration::from_secs(1));
    assert_eq!(files(), 0);
}

#[test]
fn a_full_worker_buffer_counts_dropped_records() {
    let buffer = WorkerBuffer::default();
    let (client, trace, message) = (client(1, 0), Trace::new(Status::Cached), answer("www.example"));
    let from = "192.0.2.9".parse().expect("v4");
    let (time, elapsed, transport) = (Timestamp::UNIX_EPOCH, Duration::ZERO, Transport::Udp);
    let reply =
        QueryRecord { time, elapsed, from, client: &client, transport, trace: &trace, message: &message };
    for _ in 0..100_000 {
        buffer.open().write(&reply);
    }
    let taken = buffer.take();
    assert_eq!(taken.queries, 100_000);
    assert_eq!(record::views(&taken.bytes).count() as u64 + taken.lost, 100_000);
    assert!(taken.lost > 0 && taken.bytes.len() < 5 << 20);
}

#[test]
fn probes_of_the_gateway_are_neither_counted_nor_written() {
    let buffer = WorkerBuffer::default();
    write(&buffer, 0, &client(1, 0), Status::Allowed, "0123456789abcdef.health-check.invalid");
    assert_eq!(last_probe(), 0x0123_4567_89ab_cdef);
    write(&buffer, 1, &client(1, 0), Status::Allowed, "0123456789abcdef.health-check.example");
    let taken = buffer.take();
    assert_eq!((taken.queries, record::views(&taken.bytes).count()), (1, 1));
}

#[test]
fn hits_of_rules_are_counted_for_every_client() {
    let log = start(Settings::default());
    let rule = Id::from_u128(5);
    let hit = |number: i64, cause: Cause, client: &Client| {
        let because = RuleSource { cause, id: Some(rule), rule: "ads.example".into(), through: None };
        let trace = Trace { because: Some(because), ..Trace::new(Status::Blocked) };
        let reply = QueryRecord {
            time: Timestamp::from_second(1_800_000_000 + number).expect("an instant"),
            elapsed: Duration::ZERO,
            from: "192.0.2.9".parse().expect("v4"),
            client,
            transport: Transport::Udp,
            trace: &trace,
            message: &answer("ads.example"),
        };
        log.buffer(0).open().write(&reply);
    };
    assert!(log.hits().is_empty());
    hit(1, Cause::Rule, &client(1, 0));
    hit(7, Cause::Rule, &Client { logged: Logged::Off, ..client(2, 0) });
    hit(3, Cause::Rule, &client(3, 0));
    // A list has no hits of a rule.
    hit(9, Cause::Feed, &client(1, 0));
    let last = Timestamp::from_second(1_800_000_007).expect("an instant");
    assert_eq!(log.hits().get(&rule), Some(&RuleCounter { count: 3, last }));
    log.stop();
}

#[test]
fn files_of_the_first_version_are_read_and_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { directory: Some(folder.path().into()), ..Settings::default() };
    let log = start(settings.clone());
    for number in 0..10 {
        write(log.buffer(0), number, &client(1, 0), Status::Cached, "www.example");
    }
    log.stop();
    let path =
        std::fs::read_dir(folder.path()).expect("a folder").next().expect("a file").expect("a file").path();
    let mut file = std::fs::read(&path).expect("a file");
    file[3] = 1;
    file.drain(56..56 + bloom::LENGTH);
    std::fs::write(&path, file).expect("written");
    let log = start(settings);
    write(log.buffer(0), 10, &client(1, 0), Status::Cached, "www.example");
    let filter = Filter { client: Some(ClientFilter::Number(1)), ..Filter::default() };
    assert_eq!(pages(&log, &filter, 4), (1..=11).rev().collect::<Vec<_>>());
    log.stop();
}
