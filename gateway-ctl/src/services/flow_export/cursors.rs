//! Cursors of the collectors in the flow log, in a file of the state folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::stats::Collector;
use crate::os::json_file;

const FILE: &str = "flow_export.json";
/// Shortest time between two writes. A crash repeats what was sent since.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// Id of the next record for each collector that is on.
#[derive(Debug)]
pub(super) struct Cursors {
    path: PathBuf,
    next: BTreeMap<Collector, u64>,
    /// Content of the file.
    stored: BTreeMap<Collector, u64>,
    written: Option<Instant>,
}

impl Cursors {
    pub(super) fn open(state_dir: &Path) -> Cursors {
        let path = state_dir.join(FILE);
        let stored: BTreeMap<Collector, u64> = json_file::read(&path);
        Cursors { next: stored.clone(), stored, path, written: None }
    }

    /// Takes back cursors behind the end of the log: a crash has taken records that were sent, and their ids are given
    /// again.
    pub(super) fn bound(&mut self, end: u64) {
        self.next.values_mut().for_each(|next| *next = end.min(*next));
    }

    pub(super) fn get(&self, collector: Collector) -> Option<u64> {
        self.next.get(&collector).copied()
    }

    /// Returns the cursor. A collector without one begins with the next record.
    pub(super) fn begin(&mut self, collector: Collector, end: u64) -> u64 {
        *self.next.entry(collector).or_insert(end)
    }

    /// Moves a cursor. Returns a function that writes the file, if that is due.
    pub(super) fn set(
        &mut self,
        collector: Collector,
        next: u64,
    ) -> Option<impl FnOnce() -> io::Result<()> + Send + 'static> {
        self.next.insert(collector, next);
        let is_due = self.written.is_none_or(|at| at.elapsed() >= WRITE_INTERVAL);
        if !is_due || self.next == self.stored {
            return None;
        }
        self.written = Some(Instant::now());
        self.stored.clone_from(&self.next);
        let (path, next) = (self.path.clone(), self.next.clone());
        Some(move || json_file::write(&path, &next))
    }

    /// Forgets the cursor of a collector that is off: it gets nothing of the time until it is on again.
    pub(super) fn forget(&mut self, collector: Collector) {
        self.next.remove(&collector);
    }

    pub(super) fn erase(&mut self) -> impl FnOnce() -> io::Result<()> + Send + 'static {
        self.next.clear();
        self.stored.clear();
        let path = self.path.clone();
        move || json_file::erase(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(due: Option<impl FnOnce() -> io::Result<()>>) {
        due.expect("it is due")().expect("written");
    }

    #[test]
    fn cursors_outlive_a_restart_and_follow_a_log_that_lost_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut cursors = Cursors::open(folder.path());
        assert_eq!(cursors.begin(Collector::Syslog, 7), 7);
        write(cursors.set(Collector::Syslog, 9));
        let mut again = Cursors::open(folder.path());
        assert_eq!((again.get(Collector::Syslog), again.get(Collector::Otlp)), (Some(9), None));
        again.bound(8);
        assert_eq!(again.begin(Collector::Syslog, 8), 8);
        again.erase()().expect("erased");
        assert_eq!(Cursors::open(folder.path()).get(Collector::Syslog), None);
    }

    #[test]
    fn a_collector_that_was_off_begins_with_new_records_also_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut cursors = Cursors::open(folder.path());
        write(cursors.set(Collector::Ipfix, 5));
        cursors.forget(Collector::Ipfix);
        let next = cursors.begin(Collector::Ipfix, 20);
        assert!(cursors.set(Collector::Ipfix, next).is_none(), "the file was written just now");
        cursors.written = None;
        write(cursors.set(Collector::Ipfix, next));
        assert_eq!(Cursors::open(folder.path()).get(Collector::Ipfix), Some(20));
    }
}
