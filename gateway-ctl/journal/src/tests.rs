//! Journals of numbers: crashes, pages, bounds, sealing and erasure.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

/// Records of eight bytes of time and one byte of colour.
#[derive(Debug)]
struct Numbers;

#[derive(Clone, Copy)]
struct Number<'a>(&'a [u8]);

/// Colours of a block: a bit for each.
#[derive(Clone, Debug)]
struct Colours(u64);

const RECORD: usize = 9;

impl Format for Numbers {
    const VERSIONS: &'static [([u8; 4], usize)] = &[(*b"num\x01", 0), (*b"num\x02", 8)];
    const SUFFIX: &'static str = "numbers";
    const NAME: &'static str = "journal of numbers";
    const MAX_FILE_SPAN: Duration = Duration::from_secs(86_400);

    type View<'a> = Number<'a>;
    type Filter = Option<u8>;
    type Summary = Colours;

    fn views(bytes: &[u8]) -> impl Iterator<Item = Number<'_>> {
        bytes.chunks_exact(RECORD).map(Number)
    }

    fn is_match(view: &Number<'_>, filter: &Option<u8>) -> bool {
        filter.is_none_or(|colour| colour == view.0[8])
    }
}

impl View for Number<'_> {
    fn time(&self) -> i64 {
        self.0.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    fn length(&self) -> usize {
        RECORD
    }
}

impl Summary for Colours {
    type Filter = Option<u8>;

    fn nothing() -> Colours {
        Colours(0)
    }

    fn read(_: [u8; 4], bytes: &[u8]) -> Colours {
        Colours(bytes.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes)))
    }

    fn write(&self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.to_le_bytes());
    }

    fn may_match(&self, filter: &Option<u8>, _: u64) -> bool {
        filter.is_none_or(|colour| self.0 & 1 << colour != 0)
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn settings(folder: &Path) -> Settings {
    // All pages come from files.
    Settings { directory: Some(folder.to_owned()), recent: 0, ..Settings::default() }
}

/// Adds a record for each second and colour.
fn add(journal: &mut Journal<Numbers>, records: impl Iterator<Item = (i64, u8)>) {
    let encode = |(second, colour): (i64, u8)| {
        let time = i64::try_from(at(second).as_nanosecond()).expect("a time");
        time.to_le_bytes().into_iter().chain([colour])
    };
    let bytes: Vec<u8> = records.flat_map(encode).collect();
    journal.add(bytes, at(0), |view, block| {
        block.summary.0 |= 1 << view.0[8];
        block.figures[0] += u32::from(view.0[8]);
    });
}

/// Returns the matches with their IDs, page by page.
fn found(journal: &Journal<Numbers>, filter: Option<u8>, page: usize, budget: u64) -> Vec<(u64, u8)> {
    let pages = journal.view();
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let query = Query { filter: &filter, since: None, until: None, before, limit: page, budget };
        let Page { rows, ended_at, .. } = pages.read(query, |view, id| Some((id, view.0[8])));
        let next = ended_at
            .map(|end| end.id)
            .or_else(|| (rows.len() == page).then(|| rows.last().map(|(id, _)| *id)).flatten());
        all.extend(rows);
        match next {
            Some(id) => before = Some(PageStart::Id(id)),
            None => return all,
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a crash left of the last file, the journal has a prefix of what was written, and goes on behind it.
    #[test]
    fn a_cut_or_damaged_file_has_the_blocks_before(
        blocks in prop::collection::vec(1_usize..40, 1..8),
        cut in 0.0..1.0_f64,
        damage in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
        for (number, count) in blocks.iter().enumerate() {
            add(&mut journal, (0..*count).map(|record| (record as i64, number as u8)));
            journal.flush(at(0));
        }
        drop(journal);
        let path = files(folder.path()).pop().expect("a file");
        let mut bytes = fs::read(&path).expect("a file");
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        if let Some(index) = damage && !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] ^= 0x55;
        }
        fs::write(&path, bytes).expect("written");
        let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
        let before = found(&journal, None, 7, u64::MAX);
        let ids: BTreeSet<u64> = before.iter().map(|(id, _)| *id).collect();
        prop_assert_eq!(ids.len(), before.len(), "an ID occurs twice");
        add(&mut journal, std::iter::once((0, 63)));
        journal.flush(at(0));
        let after = found(&journal, None, 7, u64::MAX);
        prop_assert_eq!(&after[0].1, &63);
        prop_assert!(after[0].0 > before.first().map_or(0, |(id, _)| *id));
        prop_assert_eq!(&after[1..], &before[..]);
    }

    /// Pages of any size and budget have each match once, newest first.
    #[test]
    fn pages_have_each_match_once(
        colours in prop::collection::vec(0_u8..5, 1..300),
        block in 1_usize..50,
        page in 1_usize..40,
        budget in 1_u64..2_000,
        filter in prop::option::of(0_u8..5),
        is_reopened: bool,
        left_out in prop::collection::vec((0_u64..40, 1_u64..40), 0..5),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
        for part in colours.chunks(block) {
            add(&mut journal, part.iter().map(|colour| (0, *colour)));
            journal.flush(at(0));
        }
        if is_reopened {
            journal = Journal::new(settings(folder.path()), at(0));
        }
        let wanted = |colour: u8| filter.is_none_or(|filter| filter == colour);
        let expected: Vec<(u64, u8)> =
            (1..).zip(&colours).map(|(id, colour)| (id, *colour)).filter(|(_, colour)| wanted(*colour)).collect();
        let expected: Vec<(u64, u8)> = expected.into_iter().rev().collect();
        prop_assert_eq!(found(&journal, filter, page, budget), expected.clone());

        let mut next = 0;
        let ranges: Vec<_> = left_out
            .into_iter()
            .map(|(gap, length)| {
                let range = next + gap..next + gap + length;
                next = range.end;
                range
            })
            .collect();
        let scan = |budget: u64| {
            let mut read = Vec::new();
            let scan = Scan { filter: &filter, since: None, until: None, except: &ranges, budget };
            let scanned = journal.view().scan(&scan, |block| {
                let views = (0..).zip(Numbers::views(block.bytes));
                let records = views.filter(|(index, view)| block.is_wanted(*index, view.time()) && wanted(view.0[8]));
                read.extend(records.map(|(index, view)| (block.first() + index, view.0[8])));
            });
            read.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
            (read, scanned.ended_at.map(|end| end.id))
        };
        let is_left_out = |id| ranges.iter().any(|range| range.contains(&id));
        let others: Vec<_> = expected.into_iter().filter(|(id, _)| !is_left_out(*id)).collect();
        prop_assert_eq!(scan(u64::MAX), (others.clone(), None));
        // One that ends early has read all records from where it ended.
        let (read, ended_at) = scan(budget);
        let is_read = |id: u64| ended_at.is_none_or(|end| id >= end);
        prop_assert_eq!(read, others.into_iter().filter(|(id, _)| is_read(*id)).collect::<Vec<_>>());
    }
}

#[test]
fn records_that_are_not_written_yet_are_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
    add(&mut journal, (0..3).map(|second| (second, 1)));
    assert_eq!(found(&journal, None, 10, 1).len(), 3);
    assert!(files(folder.path()).is_empty());
    journal.tick(at(10));
    assert!(files(folder.path()).is_empty(), "too young");
    journal.tick(at(31));
    assert_eq!((files(folder.path()).len(), found(&journal, None, 10, 1).len()), (1, 3));
}

/// Folder with three files, of records that are an hour apart.
fn three_files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for run in 0..3 {
        let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
        add(&mut journal, std::iter::once((run * 3600, 1)));
        journal.flush(at(0));
    }
    folder
}

#[test]
fn files_that_are_too_old_or_too_many_go() {
    let folder = three_files();
    let keep = |keep: Duration, bytes: u64, now: i64| {
        let settings = Settings { keep, bytes, ..settings(folder.path()) };
        found(&Journal::<Numbers>::new(settings, at(now)), None, 10, u64::MAX).len()
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(keep(3 * hour, u64::MAX, 7200), 3);
    assert_eq!(keep(hour, u64::MAX, 7200), 2);
    let one = fs::metadata(&files(folder.path())[0]).expect("a file").len();
    assert_eq!(keep(hour, one, 7200), 1);
    assert_eq!(keep(Duration::MAX, 0, 7200 + SignedDuration::from_hours(9).as_secs()), 0);
}

#[test]
fn files_of_older_records_are_removed_the_open_one_included() {
    let folder = three_files();
    let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
    add(&mut journal, std::iter::once((9000, 1)));
    journal.flush(at(0));
    assert_eq!(journal.view().oldest(), Some((1, at(0))));
    journal.remove_before(at(3600));
    assert_eq!((journal.view().oldest(), files(folder.path()).len()), (Some((2, at(3600))), 3));
    journal.remove_before(at(9001));
    assert_eq!(files(folder.path()).len(), 0);
    assert_eq!(journal.view().oldest(), Some((4, at(9000))), "in memory until the next one comes");
    add(&mut journal, std::iter::once((9002, 1)));
    assert_eq!(journal.view().oldest(), Some((5, at(9002))), "in memory");
    journal.flush(at(0));
    assert_eq!(found(&journal, None, 10, u64::MAX), [(5, 1)]);
}

#[test]
fn a_file_has_no_more_than_its_span() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
    let day = i64::try_from(Numbers::MAX_FILE_SPAN.as_secs()).expect("a day");
    for second in [0, day - 1, day, 2 * day - 1, 3 * day] {
        add(&mut journal, std::iter::once((second, 1)));
        journal.flush(at(0));
    }
    assert_eq!(files(folder.path()).len(), 3);
    assert_eq!(found(&journal, None, 10, u64::MAX).len(), 5);
}

#[test]
fn nothing_goes_before_the_bounds_are_known_and_then_at_once() {
    let folder = three_files();
    let late = at(SignedDuration::from_hours(20_000).as_secs());
    let mut journal = Journal::<Numbers>::new(Settings::unbounded(folder.path().to_owned(), 0), late);
    assert_eq!(files(folder.path()).len(), 3);
    let keep = Duration::from_secs(2 * 3600);
    journal.set(Settings { keep, ..settings(folder.path()) }, at(2 * 3600 + 1));
    assert_eq!(files(folder.path()).len(), 2);
    // The same bounds, later, without another record.
    journal.tick(late);
    assert_eq!(files(folder.path()).len(), 0);
}

#[test]
fn figures_of_blocks_are_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
    add(&mut journal, [(5, 3), (9, 4)].into_iter());
    journal.flush(at(0));
    let journal = Journal::<Numbers>::new(settings(folder.path()), at(0));
    let blocks: Vec<_> =
        journal.blocks().map(|(block, read)| (block.figures, read().map(|read| read.len()))).collect();
    assert_eq!(blocks, [([7, 0], Some(2 * RECORD))]);
}

#[test]
fn sealed_records_are_read_with_their_key_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = |byte| SealingKey::new(&[byte; 32]).expect("a key");
    let mut journal = Journal::<Numbers>::sealed(settings(folder.path()), key(1), at(0));
    add(&mut journal, (0..100).map(|second| (second, 7)));
    journal.flush(at(0));
    let time = i64::try_from(at(50).as_nanosecond()).expect("a time").to_le_bytes();
    let bytes = fs::read(&files(folder.path())[0]).expect("a file");
    // The header has the times of the first and the last record.
    assert!(!bytes.windows(8).any(|window| window == time), "the records are in clear");
    let count = |journal: Journal<Numbers>| found(&journal, None, 10, u64::MAX).len();
    assert_eq!(count(Journal::sealed(settings(folder.path()), key(1), at(0))), 100);
    assert_eq!(count(Journal::sealed(settings(folder.path()), key(2), at(0))), 0);
    assert_eq!(count(Journal::new(settings(folder.path()), at(0))), 0);
    assert_eq!(count(Journal::sealed(settings(folder.path()), key(1), at(0))), 100, "nothing is lost");
}

#[test]
fn an_erasure_leaves_no_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept");
    let mut journal = Journal::<Numbers>::new(settings(&folder.path().join("journal")), at(0));
    add(&mut journal, (0..100).map(|second| (second, 7)));
    journal.flush(at(0));
    let path = files(&folder.path().join("journal")).pop().expect("a file");
    fs::hard_link(path, &kept).expect("a second name");
    add(&mut journal, (0..100).map(|second| (second, 7)));
    journal.erase().expect("erased");
    assert!(fs::read(kept).expect("a file").iter().all(|byte| *byte == 0));
    assert!(found(&journal, None, 10, u64::MAX).is_empty());
    add(&mut journal, std::iter::once((0, 1)));
    journal.flush(at(0));
    assert_eq!(found(&journal, None, 10, u64::MAX).len(), 1);
}

proptest! {
    #[test]
    fn records_are_passed_on_in_their_order_from_any_id(
        chunks in proptest::collection::vec((1..9_000_i64, any::<bool>()), 1..6),
        recent in prop_oneof![Just(0), 1..20_000_usize],
        (from, most) in (0..30_000_u64, 1..30_000_usize),
        is_reopened in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Settings { recent, ..settings(folder.path()) };
        let mut journal: Journal<Numbers> = Journal::new(place.clone(), at(0));
        let mut added = 0;
        for (count, is_flushed) in chunks {
            add(&mut journal, (added..added + count).map(|second| (second, 1)));
            added += count;
            if is_flushed {
                journal.flush(at(0));
            }
        }
        if is_reopened {
            journal.flush(at(0));
            journal = Journal::new(place, at(0));
        }
        let pages = journal.view();
        let mut ids = Vec::new();
        pages.forward(from, |view, id| {
            // Ids begin at 1, seconds at 0.
            assert_eq!(view.time(), i64::try_from(at(id.cast_signed() - 1).as_nanosecond()).expect("a time"));
            ids.push(id);
            ids.len() < most
        });
        let end = added.cast_unsigned() + 1;
        prop_assert_eq!(pages.next_id(), end);
        let expected: Vec<u64> = (from.max(1)..end).take(most).collect();
        prop_assert_eq!(ids, expected);
    }
}
