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
    written: Option<Instant>,
}

impl Cursors {
    pub(super) fn open(state_dir: &Path) -> Cursors {
        let path = state_dir.join(FILE);
        Cursors { next: json_file::read(&path), path, written: None }
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
        let is_same = self.next.insert(collector, next) == Some(next);
        let is_due = self.written.is_none_or(|at| at.elapsed() >= WRITE_INTERVAL);
        if !is_due || (is_same && self.written.is_some()) {
            return None;
        }
        self.written = Some(Instant::now());
        let (path, next) = (self.path.clone(), self.next.clone());
        Some(move || json_file::write(&path, &next))
    }

    /// Forgets the cursor of a collector that is off: it gets nothing of the time until it is on again.
    pub(super) fn forget(&mut self, collector: Collector) {
        self.next.remove(&collector);
    }

    pub(super) fn erase(&mut self) -> impl FnOnce() -> io::Result<()> + Send + 'static {
        self.next.clear();
        let path = self.path.clone();
        move || json_file::erase(&path)
    }
}
