//! Journal of bytes by device, policy and egress in each hour.

use std::path::Path;
use std::time::Duration;

use gateway_core::flow_log::{
    PendingUsage, Usage, UsageGroup, UsageKey, UsageRow, UsageStep, UsageTable, UsageView, encode_usage,
    hour_of, usage_views,
};
use gateway_journal::{Format, Journal, NoSummary, Query, Settings, View};
use gateway_model::Id;
use jiff::{SignedDuration, Timestamp};

/// Folder of the rows, in that of all records.
const FOLDER: &str = "usage";
/// Thirteen months, so that a month can be compared with that of the last year.
const KEEP: Duration = Duration::from_secs(397 * 86_400);
const MAX_BYTES: u64 = 512 << 20;
/// Interval at which rows are written. What is not written is lost with the power.
const WRITE_INTERVAL: SignedDuration = SignedDuration::from_mins(15);

/// Rows of usage. They have no properties by which blocks are skipped but their time.
#[derive(Debug)]
struct UsageFormat;

/// View of a row in the journal.
#[derive(Clone, Copy, Debug)]
struct StoredUsage<'a>(UsageView<'a>);

impl Format for UsageFormat {
    const VERSIONS: &'static [([u8; 4], usize)] = &[(*b"gus\x01", 0)];
    const SUFFIX: &'static str = "usage";
    const NAME: &'static str = "usage log";

    type View<'a> = StoredUsage<'a>;
    type Filter = ();
    type Summary = NoSummary;

    fn views(bytes: &[u8]) -> impl Iterator<Item = StoredUsage<'_>> {
        usage_views(bytes).map(StoredUsage)
    }

    fn is_match(_: &StoredUsage<'_>, (): &()) -> bool {
        true
    }
}

impl View for StoredUsage<'_> {
    fn time(&self) -> i64 {
        self.0.time()
    }

    fn length(&self) -> usize {
        self.0.length()
    }
}

/// Query of usage.
#[derive(Clone, Copy, Debug)]
pub struct UsageQuery {
    pub group: UsageGroup,
    pub step: UsageStep,
    pub device: Option<Id>,
    pub since: Timestamp,
    pub until: Timestamp,
}

fn settings(base: Option<&Path>) -> Settings {
    Settings { directory: base.map(|base| base.join(FOLDER)), keep: KEEP, bytes: MAX_BYTES, recent: 0 }
}

/// Usage on disk, and what is not written yet.
#[derive(Debug)]
pub(super) struct UsageLog {
    journal: Journal<UsageFormat>,
    pending: PendingUsage,
    written_at: Timestamp,
}

impl UsageLog {
    pub(super) fn open(base: Option<&Path>, now: Timestamp) -> UsageLog {
        let journal = Journal::new(settings(base), now);
        UsageLog { journal, pending: PendingUsage::default(), written_at: now }
    }

    /// Moves to another folder. Without one, usage waits in memory.
    pub(super) fn set_base(&mut self, base: Option<&Path>, now: Timestamp) {
        self.write(now);
        self.journal.set(settings(base), now);
    }

    pub(super) fn add(&mut self, used: impl IntoIterator<Item = (UsageKey, Usage)>, now: Timestamp) {
        used.into_iter().for_each(|(key, usage)| self.pending.add(key, usage, now));
        if now.duration_since(self.written_at) >= WRITE_INTERVAL {
            self.write(now);
            self.journal.tick(now);
        }
    }

    /// Writes what is pending. Without a folder it stays pending.
    pub(super) fn write(&mut self, now: Timestamp) {
        if self.journal.settings().directory.is_none() {
            return;
        }
        let mut bytes = Vec::new();
        self.pending.take().iter().for_each(|row| encode_usage(&mut bytes, row));
        self.journal.add(bytes, now, |_, _| {});
        self.journal.flush(now);
        self.written_at = now;
    }

    pub(super) fn erase(&mut self) -> std::io::Result<()> {
        self.pending = PendingUsage::default();
        self.journal.erase()
    }

    /// Returns the usage in the hours that a time touches, the oldest first.
    pub(super) fn read(&self, query: &UsageQuery) -> Vec<UsageRow> {
        let UsageQuery { group, step, device, since, until } = *query;
        let first = hour_of(since);
        let is_wanted = |row: &UsageRow| {
            row.hour >= first
                && row.hour < until.as_second()
                && device.is_none_or(|device| row.key.device == Some(device))
        };
        let mut table = UsageTable::new(group, step);
        let all = Query {
            filter: &(),
            since: Timestamp::from_second(first).ok(),
            until: Some(until),
            before: None,
            limit: usize::MAX,
            budget: MAX_BYTES,
        };
        self.journal.view().read::<()>(all, |view, _| {
            if let Some(row) = view.0.row().filter(|row| is_wanted(row)) {
                table.add(row);
            }
            None
        });
        self.pending.rows().filter(is_wanted).for_each(|row| table.add(row));
        table.into_rows().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_the_same_before_and_after_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let device = Id::from_u128(1);
        let key = UsageKey { device: Some(device), policy: None, egress: Some("wg-a".into()) };
        let query = UsageQuery {
            group: UsageGroup::Device,
            step: UsageStep::Hour,
            device: Some(device),
            since: at(0),
            until: at(7200),
        };
        let mut log = UsageLog::open(Some(folder.path()), at(0));
        let usage = Usage { sent: 7, received: 9, flows: 1 };
        log.add([(key.clone(), usage), (UsageKey::default(), usage)], at(1));
        let before = log.read(&query);
        assert_eq!(before.iter().map(|row| row.usage).collect::<Vec<_>>(), [usage]);
        log.write(at(2));
        log.add([(key, usage)], at(3));
        drop(log);
        let mut log = UsageLog::open(Some(folder.path()), at(4));
        assert_eq!(log.read(&query), before, "what was not written is lost");
        log.erase().expect("erased");
        assert!(log.read(&query).is_empty());
    }

    #[test]
    fn usage_waits_for_its_folder_and_is_not_shown_without_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let query = UsageQuery {
            group: UsageGroup::Device,
            step: UsageStep::Hour,
            device: None,
            since: at(0),
            until: at(7200),
        };
        let usage = Usage { sent: 7, received: 9, flows: 1 };
        let mut log = UsageLog::open(None, at(0));
        log.add([(UsageKey::default(), usage)], at(1));
        log.write(at(2));
        log.set_base(Some(folder.path()), at(3));
        log.write(at(4));
        let stored = log.read(&query);
        assert_eq!(stored.iter().map(|row| row.usage).collect::<Vec<_>>(), [usage]);
        log.set_base(None, at(5));
        assert!(log.read(&query).is_empty());
        log.set_base(Some(folder.path()), at(6));
        assert_eq!(log.read(&query), stored);
    }
}
