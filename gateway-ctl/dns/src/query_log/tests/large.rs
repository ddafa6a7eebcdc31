//! Two million records in real files: the cost of a page depends on its size only.

use std::net::IpAddr;
use std::path::PathBuf;

use gateway_model::Id;

use super::super::journal::Journal;
use super::super::*;
use crate::hooks::Client;
use crate::serve::test_doubles::{a, client, message, name};
use crate::serve::{Status, Trace, Transport};
use crate::wire::{Answer, rtype};

const ROWS: usize = 2_000_000;
/// Rows between two of those that are looked for.
const RARE: usize = 400_000;
/// Records that are in memory.
const RECENT: usize = 10_000;
/// More than any block has.
const BLOCK: u64 = 80 << 10;

fn at(row: usize) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + row as i64).expect("an instant")
}

fn answer(text: &str) -> Vec<u8> {
    let name = name(text);
    let answer = Answer { answers: vec![a(text, 60, [192, 0, 2, 1])], ..Answer::default() };
    message(gateway_core::dns::Question { name: name.as_ref(), qtype: rtype::A }, &answer)
}

/// Of twenty clients and five hundred names; one row in [`RARE`] is of another client, another domain, and refused.
fn filled(directory: PathBuf) -> Journal {
    let settings =
        Settings { directory: Some(directory), recent: RECENT, keep: Duration::MAX, ..Settings::default() };
    let mut journal = Journal::new(settings, at(0));
    let clients: Vec<Client> = (1..=20).map(|number| client(number, 0)).collect();
    let stranger = client(99, 0);
    let answers: Vec<Vec<u8>> = (0..500).map(|number| answer(&format!("w{number}.common.example"))).collect();
    let odd = answer("www.rare.test");
    let traces = [Status::Cached, Status::Forwarded, Status::Blocked].map(Trace::new);
    let refused = Trace::new(Status::Refused);
    let buffer = WorkerBuffer::default();
    for row in 0..ROWS {
        let rare = row % RARE == RARE / 2;
        let of = |number: usize| (&clients[number % 20], &traces[number % 3], &answers[number % 500]);
        let (client, trace, message) = if rare { (&stranger, &refused, &odd) } else { of(row) };
        let from = if rare { [192, 0, 2, 99] } else { [192, 0, 2, (row % 20) as u8] };
        let (time, elapsed, transport) = (at(row), Duration::ZERO, Transport::Udp);
        buffer.open().write(&QueryRecord {
            time,
            elapsed,
            from: from.into(),
            client,
            transport,
            trace,
            message,
        });
        if row % 5000 == 4999 {
            journal.add(buffer.take(), at(row));
        }
    }
    journal.flush(at(ROWS));
    journal
}

fn ids(page: &Page) -> Vec<u64> {
    page.rows.iter().map(|row| row.id).collect()
}

#[test]
fn a_page_of_millions_of_rows_costs_what_is_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = filled(folder.path().to_owned());
    assert_eq!(journal.lost(), 0);
    // Written by one run and read by another, whose memory is empty.
    for run in 0..2 {
        if run == 1 {
            let settings = Settings { directory: Some(folder.path().to_owned()), ..Settings::default() };
            journal = Journal::new(Settings { keep: Duration::MAX, ..settings }, at(ROWS));
        }
        let pages = journal.view();
        let all = Filter::default();
        for before in [ROWS, ROWS - RECENT - 7, ROWS / 2, ROWS / 3, 101] {
            let expected: Vec<u64> = (before as u64 - 100..before as u64).rev().collect();
            let page = pages.read(&all, Some(PageStart::Id(before as u64)), 100, u64::MAX);
            assert!(ids(&page) == expected && page.read <= 2 * BLOCK, "{before}: {} bytes", page.read);
            let page = pages.read(&all, Some(PageStart::Time(at(before - 1))), 100, u64::MAX);
            assert!(ids(&page) == expected && page.read <= 2 * BLOCK, "{before}: {} bytes", page.read);
        }
        // Page by page: no row is left out, and none is read for many pages.
        let (mut before, mut read) = (ROWS as u64 / 2, 0);
        for _ in 0..50 {
            let page = pages.read(&all, Some(PageStart::Id(before)), 20, u64::MAX);
            assert_eq!(ids(&page), (before - 20..before).rev().collect::<Vec<_>>());
            (before, read) = (before - 20, read + page.read);
        }
        assert!(read <= 100 * BLOCK, "{read} bytes for 50 pages");

        let rare: Vec<u64> = (0..5).map(|n| (n * RARE + RARE / 2) as u64 + 1).rev().collect();
        let written: u64 = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("a file").metadata().expect("its size").len())
            .sum();
        assert!(written > 100 << 20, "{written} bytes");
        let address = IpAddr::from([192, 0, 2, 99]);
        let filters = [
            Filter { status: Some(Status::Refused), ..Filter::default() },
            Filter { client: Some(ClientFilter::Number(99)), ..Filter::default() },
            Filter { client: Some(ClientFilter::Device(Id::from_u128(99))), ..Filter::default() },
            Filter { client: Some(ClientFilter::Address(address)), ..Filter::default() },
            Filter { domain: Some(DomainFilter::Within(name("rare.test"))), ..Filter::default() },
            Filter { domain: Some(DomainFilter::Within(name("www.rare.test"))), ..Filter::default() },
        ];
        for filter in &filters {
            let page = pages.read(filter, None, 100, u64::MAX);
            assert_eq!(ids(&page), rare, "{filter:?}");
            // Five blocks contain it; few others are false positives.
            assert!(page.read <= 5 * BLOCK + written / 10, "{filter:?}: {} of {written}", page.read);
            let page = pages.read(filter, Some(PageStart::Id(rare[1])), 2, u64::MAX);
            assert_eq!(ids(&page), rare[2..4], "{filter:?}");
        }
        // What every block has is found at once.
        let often = Filter {
            client: Some(ClientFilter::Number(7)),
            status: Some(Status::Blocked),
            ..Filter::default()
        };
        let page = pages.read(&often, Some(PageStart::Id(ROWS as u64 / 2)), 10, u64::MAX);
        assert_eq!(page.rows.len(), 10);
        assert!(page.read <= 4 * BLOCK, "{} bytes", page.read);
        let text = Filter { domain: Some(DomainFilter::Contains("common".into())), ..Filter::default() };
        assert!(pages.read(&text, Some(PageStart::Id(ROWS as u64 / 2)), 100, u64::MAX).read <= 2 * BLOCK);
        let text = Filter { domain: Some(DomainFilter::Contains("rare".into())), ..Filter::default() };
        assert_eq!(ids(&pages.read(&text, None, 100, u64::MAX)), rare);
    }
}
