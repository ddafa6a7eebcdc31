//! All records in order: new ones go to memory and, block by block, to files; old ones are removed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::erase::erase_files_of;
use crate::format::{Format, View};
use crate::pages::Pages;
use crate::recent::{Chunk, Recent};
use crate::room;
use crate::seal::SealingKey;
use crate::segment::{Block, Segment};

/// A block is written when it has so many bytes, or its oldest record is that old.
const BLOCK: usize = 64 << 10;
const MAX_BLOCK_AGE: Duration = Duration::from_secs(30);
/// A file is closed at this size. Retention removes whole files.
const FILE: u64 = 16 << 20;

/// Place and bounds of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Directory of the files; without one, only memory is used.
    pub directory: Option<PathBuf>,
    /// Retention time of files.
    pub keep: Duration,
    /// Maximum size of all files together, in bytes.
    pub bytes: u64,
    /// Number of the newest records kept in memory.
    pub recent: usize,
}

impl Settings {
    /// Returns the settings of a journal whose bounds are not known yet: nothing is removed.
    pub fn unbounded(directory: PathBuf, recent: usize) -> Settings {
        Settings { directory: Some(directory), keep: Duration::MAX, bytes: u64::MAX, recent }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        let day = Duration::from_secs(86_400);
        Settings { directory: None, keep: 30 * day, bytes: 1 << 30, recent: 100_000 }
    }
}

/// The block that is next to be written.
#[derive(Debug)]
struct PendingBlock<S> {
    block: Block<S>,
    since: Timestamp,
}

/// Journal of records of one format. One thread writes it; [`Journal::view`] is read without it.
#[derive(Debug)]
pub struct Journal<F: Format> {
    settings: Settings,
    key: Option<Arc<SealingKey>>,
    segments: Vec<Arc<Segment<F>>>,
    /// This run wrote the last file, and may append to it.
    is_open: bool,
    error: Option<String>,
    recent: Recent,
    pending: Option<PendingBlock<F::Summary>>,
    /// Records of the pending block from earlier additions.
    carried: Vec<u8>,
    next: u64,
}

impl<F: Format> Journal<F> {
    /// Opens a journal. If its files cannot be opened, it uses memory only, and [`Journal::error`] has the reason.
    pub fn new(settings: Settings, now: Timestamp) -> Journal<F> {
        Journal::create(settings, None, now)
    }

    /// Like [`Journal::new`], with a key by which the records in files are sealed. Sealed records of a file need it.
    pub fn sealed(settings: Settings, key: SealingKey, now: Timestamp) -> Journal<F> {
        Journal::create(settings, Some(Arc::new(key)), now)
    }

    fn create(settings: Settings, key: Option<Arc<SealingKey>>, now: Timestamp) -> Journal<F> {
        let mut journal = Journal {
            settings,
            key,
            segments: Vec::new(),
            is_open: false,
            error: None,
            recent: Recent::default(),
            pending: None,
            carried: Vec::new(),
            next: 1,
        };
        journal.open(now);
        journal
    }

    fn open(&mut self, now: Timestamp) {
        (self.segments, self.is_open, self.error) = (Vec::new(), false, None);
        let Some(directory) = &self.settings.directory else { return };
        let opened = std::fs::create_dir_all(directory).and_then(|()| Segment::open_all(directory));
        match opened {
            Ok(segments) => self.segments = segments,
            Err(error) => self.fail(&error),
        }
        let next = self.segments.iter().filter_map(|segment| segment.next()).max();
        self.next = self.next.max(next.unwrap_or(1));
        self.retire(now);
    }

    fn fail(&mut self, error: &io::Error) {
        let directory = self.settings.directory.clone().unwrap_or_default();
        let message = format!("{}: {error}", directory.display());
        if self.error.as_ref() != Some(&message) {
            tracing::warn!(%error, directory = %directory.display(), "failed to write the {}", F::NAME);
        }
        self.error = Some(message);
    }

    /// Takes other settings. What is beyond new bounds is removed. A journal that loses its directory forgets the records.
    pub fn set(&mut self, settings: Settings, now: Timestamp) {
        self.flush(now);
        let is_moved = settings.directory != self.settings.directory;
        if is_moved && settings.directory.is_none() {
            self.recent.clear();
        }
        self.settings = settings;
        if is_moved {
            self.open(now);
        } else {
            self.retire(now);
        }
    }

    /// Takes the records out of a journal that has no directory, the oldest first. It is empty afterwards.
    pub fn take_unstored(&mut self) -> Vec<u8> {
        if self.settings.directory.is_some() {
            return Vec::new();
        }
        let chunks = self.recent.chunks();
        let bytes = chunks.iter().rev().flat_map(|chunk| chunk.bytes.iter().copied()).collect();
        (self.pending, self.carried, self.next) = (None, Vec::new(), 1);
        self.recent.clear();
        bytes
    }

    /// Adds records, one after the other in these bytes. `note` gets each of them, with the block that it enters.
    pub fn add(
        &mut self,
        bytes: Vec<u8>,
        now: Timestamp,
        mut note: impl FnMut(&F::View<'_>, &mut Block<F::Summary>),
    ) {
        if bytes.is_empty() {
            return;
        }
        let (first, mut from, mut at) = (self.next, 0, 0);
        for view in F::views(&bytes) {
            let new = || PendingBlock { block: Block::new(self.next), since: now };
            let block = &mut self.pending.get_or_insert_with(new).block;
            block.add(&view);
            note(&view, block);
            self.next += 1;
            at += view.length();
            if self.carried.len() + at - from >= BLOCK {
                self.write(&bytes[from..at], now);
                from = at;
            }
        }
        if self.pending.is_some() {
            self.carried.extend_from_slice(&bytes[from..at]);
        }
        let count = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        let pending = self.pending.as_ref().filter(|_| self.settings.directory.is_some());
        let unwritten = pending.map_or(self.next, |pending| pending.block.first);
        self.recent.push(Chunk { first, count, bytes }, self.settings.recent, unwritten);
    }

    /// Writes the pending block if it is old, and removes what is beyond the bounds. To be called every few seconds.
    pub fn tick(&mut self, now: Timestamp) {
        let is_old =
            |pending: &PendingBlock<_>| now.duration_since(pending.since).unsigned_abs() >= MAX_BLOCK_AGE;
        if self.pending.as_ref().is_some_and(is_old) {
            self.flush(now);
        }
        self.retire(now);
    }

    /// Writes pending records. Those that cannot be written stay in memory only.
    pub fn flush(&mut self, now: Timestamp) {
        self.write(&[], now);
    }

    /// Writes the pending block, completed by these records.
    fn write(&mut self, records: &[u8], now: Timestamp) {
        let Some(pending) = self.pending.take() else { return };
        let mut carried = std::mem::take(&mut self.carried);
        if self.settings.directory.is_none() {
            return;
        }
        let records = if carried.is_empty() {
            records
        } else {
            carried.extend_from_slice(records);
            &carried
        };
        match self.append(records, pending.block) {
            Ok(()) => self.error = None,
            Err(error) => self.fail(&error),
        }
        carried.clear();
        self.carried = carried;
        self.retire(now);
    }

    /// Makes what was written durable.
    pub fn sync(&self) -> io::Result<()> {
        self.segments.last().map_or(Ok(()), |segment| segment.sync())
    }

    /// Makes what was written of the records from this id on durable.
    pub fn sync_from(&self, id: u64) -> io::Result<()> {
        let files = self.segments.iter().filter(|segment| segment.next().is_some_and(|next| next > id));
        files.into_iter().try_for_each(|segment| segment.sync())
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn append(&mut self, records: &[u8], block: Block<F::Summary>) -> io::Result<()> {
        let Some(directory) = &self.settings.directory else { return Ok(()) };
        room::check(directory)?;
        let is_over = |segment: &Arc<Segment<F>>| segment.bytes >= FILE || segment.is_over(block.newest);
        let is_full = self.segments.last().is_none_or(is_over);
        if is_full || !self.is_open {
            self.segments.push(Arc::new(Segment::create(directory, block.first)?));
            self.is_open = true;
        }
        match self.segments.last_mut() {
            // A view that is being read keeps the blocks that it knows.
            Some(segment) => Arc::make_mut(segment).append(records, block, self.key.as_deref()),
            None => Ok(()),
        }
    }

    /// Removes files whose records are all too old, and the oldest while there are too many bytes.
    fn retire(&mut self, now: Timestamp) {
        let keep = SignedDuration::try_from(self.settings.keep).unwrap_or(SignedDuration::MAX);
        let limit = now.checked_sub(keep).unwrap_or(Timestamp::MIN).as_nanosecond();
        let mut bytes: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let spared = usize::from(self.is_open);
        while self.segments.len() > spared
            && (bytes > self.settings.bytes || i128::from(self.segments[0].newest()) < limit)
        {
            let segment = self.segments.remove(0);
            bytes -= segment.bytes;
            self.remove(&segment);
        }
    }

    /// Removes files whose records are all older, the one that is being written included. Memory keeps the newest records.
    pub fn remove_before(&mut self, time: Timestamp) {
        let limit = i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX);
        while self.segments.first().is_some_and(|segment| segment.newest() < limit) {
            let segment = self.segments.remove(0);
            self.is_open &= !self.segments.is_empty();
            self.remove(&segment);
        }
    }

    fn remove(&mut self, segment: &Segment<F>) {
        if let Err(error) = std::fs::remove_file(&segment.path) {
            self.fail(&error);
        }
    }

    /// Forgets all records, in memory and in files.
    pub fn clear(&mut self) {
        (self.pending, self.carried) = (None, Vec::new());
        self.recent.clear();
        self.is_open = false;
        for segment in std::mem::take(&mut self.segments) {
            self.remove(&segment);
        }
    }

    /// Forgets all records. Every file of the folder is overwritten and removed, those that could not be read included.
    pub fn erase(&mut self) -> io::Result<()> {
        (self.pending, self.carried) = (None, Vec::new());
        self.recent.clear();
        self.is_open = false;
        self.segments.clear();
        match &self.settings.directory {
            Some(directory) => erase_files_of(directory),
            None => Ok(()),
        }
    }

    /// Returns the records as they are now.
    pub fn view(&self) -> Pages<F> {
        Pages {
            recent: self.recent.chunks(),
            segments: self.segments.clone(),
            key: self.key.clone(),
            next: self.next,
        }
    }

    /// Returns the blocks in files, oldest first, each with a reader of its records.
    pub fn blocks(&self) -> impl Iterator<Item = (&Block<F::Summary>, impl FnOnce() -> Option<Vec<u8>>)> {
        let key = self.key.as_deref();
        self.segments.iter().flat_map(move |segment| {
            segment.blocks.iter().map(move |block| (block, move || segment.read(block, key)))
        })
    }

    /// Returns the reason for which nothing is written to files.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}
