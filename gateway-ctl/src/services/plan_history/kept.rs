//! Records of plans on disk, with their index in memory.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use gateway_core::plan_history::{
    Content, Entry, InForce, PlanInputs, PlanRecord, RecordHeader, Timeline, digest,
};
use gateway_journal::{Journal, PageStart, Pages, Query, Settings};
use gateway_model::settings::bootstrap;
use gateway_model::settings::groups::WipeLevel;
use jiff::Timestamp;

use super::activation::Activation;
use super::format::{PlanFormat, RecordView};
use super::payload;
use super::start::KernelAtStart;

/// A whole record follows after so many records of changes, which are read for each question.
const MAX_CHANGES: usize = 500;
/// A whole record follows when the changes have as many bytes as the last whole one, and at least these.
const MIN_CHANGED_BYTES: usize = 256 << 10;
const DAY: Duration = Duration::from_secs(86_400);

/// Records of plans.
#[derive(Debug)]
pub(super) struct Kept {
    journal: Journal<PlanFormat>,
    timeline: Timeline,
    /// The index has the records of earlier runs.
    is_indexed: bool,
    /// Maximum number of records.
    most: usize,
    /// Activation that was recorded last in this run.
    last: Option<Activation>,
    digest: u64,
    whole_bytes: usize,
    changed_bytes: usize,
    changes: usize,
    /// Nothing is kept any more.
    is_silent: bool,
}

/// Records as they are at one instant.
pub(super) struct View(Pages<PlanFormat>);

impl View {
    /// Returns the records for the inputs of a plan, oldest first. `None` if one is missing.
    pub(super) fn records(&self, in_force: &InForce) -> Option<Vec<(Content, Vec<u8>)>> {
        let query = Query {
            filter: &(),
            since: None,
            until: None,
            before: Some(PageStart::Id(in_force.entry.id + 1)),
            limit: in_force.records,
            budget: u64::MAX,
        };
        let row = |view: &RecordView<'_>, id| Some((id, view.0.header, view.0.payload.to_vec()));
        let mut rows = self.0.read(query, row).rows;
        rows.reverse();
        let is_last = rows
            .last()
            .is_some_and(|(id, header, _)| *id == in_force.entry.id && *header == in_force.entry.header);
        let is_first = rows.first().is_some_and(|(_, header, _)| header.content == Content::Whole);
        let is_complete = rows.len() == in_force.records && is_first && is_last;
        is_complete.then(|| rows.into_iter().map(|(_, header, payload)| (header.content, payload)).collect())
    }
}

impl Kept {
    pub(super) fn open(directory: PathBuf, now: Timestamp) -> Kept {
        Kept {
            // The configuration comes with the first plan that is written.
            journal: Journal::new(Settings::unbounded(directory, 0), now),
            timeline: Timeline::default(),
            is_indexed: false,
            most: usize::MAX,
            last: None,
            digest: 0,
            whole_bytes: 0,
            changed_bytes: 0,
            changes: 0,
            is_silent: false,
        }
    }

    pub(super) fn set(&mut self, to: &bootstrap::PlanHistory, now: Timestamp) {
        let directory = self.journal.settings().directory.clone();
        let settings = settings(directory, to);
        if *self.journal.settings() != settings {
            self.journal.set(settings, now);
        }
        self.most = to.keep_records as usize;
    }

    /// Returns the index, which is read from the files first.
    pub(super) fn timeline(&mut self) -> &Timeline {
        if !self.is_indexed {
            self.is_indexed = true;
            for (block, read) in self.journal.blocks() {
                let Some(bytes) = read() else { continue };
                for (id, view) in (block.first..).zip(views(&bytes)) {
                    self.timeline.push(Entry { id, header: view.0.header });
                }
            }
            self.trim();
        }
        &self.timeline
    }

    pub(super) fn view(&self) -> View {
        View(self.journal.view())
    }

    /// Records a plan that went live, unless nothing has changed.
    pub(super) fn record(&mut self, activation: Activation, kernel: KernelAtStart) {
        if self.is_silent {
            return;
        }
        self.timeline();
        let is_same = self.last.as_ref().is_some_and(|last| last.generation == activation.generation);
        let mut packed = payload::pack(&activation.inputs, self.last.as_ref().map(|last| &last.inputs));
        if is_same && packed.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        if !is_same {
            self.digest = digest(&activation.dataplane);
        }
        if self.last.is_none()
            && let Some(since) = self
                .timeline
                .last()
                .and_then(|last| kernel.unknown_since(last, activation.inputs.facts.booted_at))
        {
            self.record_gap(since.min(activation.at));
        }
        let is_whole = self.last.is_none() || self.wants_whole();
        if is_whole && self.last.is_some() {
            packed = payload::pack(&activation.inputs, None);
        }
        let content = if is_whole { Content::Whole } else { Content::Change };
        self.add(content, &activation, packed);
        self.last = Some(activation);
    }

    fn wants_whole(&self) -> bool {
        self.changes >= MAX_CHANGES || self.changed_bytes >= self.whole_bytes.max(MIN_CHANGED_BYTES)
    }

    fn add(&mut self, content: Content, activation: &Activation, packed: Option<Vec<u8>>) {
        let Activation { generation, inputs, at, .. } = activation;
        let PlanInputs { state, compiled_at, .. } = inputs;
        let header = RecordHeader {
            content,
            generation: *generation,
            at: *at,
            compiled_at: *compiled_at,
            revision: state.revision.0,
            digest: self.digest,
        };
        let Some(packed) = packed else {
            tracing::warn!(generation, "a plan is too large for the history of plans");
            return self.record_gap(*at);
        };
        if content == Content::Whole {
            (self.whole_bytes, self.changed_bytes, self.changes) = (packed.len(), 0, 0);
        } else {
            self.changed_bytes += packed.len();
            self.changes += 1;
        }
        self.append(header, &packed);
    }

    /// Records that it is not known what was in force from a time on.
    pub(super) fn record_gap(&mut self, since: Timestamp) {
        self.timeline();
        let header = RecordHeader {
            content: Content::Unknown,
            generation: 0,
            at: since,
            compiled_at: since,
            revision: 0,
            digest: 0,
        };
        if !self.is_silent {
            self.append(header, &[]);
        }
        self.last = None;
    }

    fn append(&mut self, mut header: RecordHeader, payload: &[u8]) {
        // The wall clock may go back; the order of the records stays.
        if let Some(last) = self.timeline.last() {
            header.at = header.at.max(last.header.at);
        }
        let Some(bytes) = (PlanRecord { header, payload }).encode() else { return };
        let mut id = None;
        self.journal.add(bytes, header.at, |_, block| id = Some(block.last()));
        if let Some(id) = id {
            self.timeline.push(Entry { id, header });
        }
    }

    /// Writes the records to the disk.
    pub(super) fn flush(&mut self, now: Timestamp) {
        self.journal.flush(now);
        if let Err(error) = self.journal.sync() {
            tracing::warn!(%error, "failed to write the history of plans");
            self.last = None;
        }
        if self.journal.error().is_some() {
            // What was not written is missing for all records of changes behind it.
            self.last = None;
        }
        self.trim();
    }

    fn trim(&mut self) {
        let first = self.journal.blocks().next().map(|(block, _)| block.first);
        self.timeline.trim(self.most, first.unwrap_or_default());
    }

    pub(super) fn erase(&mut self, level: WipeLevel) -> io::Result<()> {
        self.is_silent |= level == WipeLevel::Hard;
        self.is_indexed = true;
        self.timeline.clear();
        let erased = self.journal.erase();
        let last = self.last.take();
        if level == WipeLevel::Soft
            && let Some(last) = last
        {
            let at = last.at;
            self.record(last, KernelAtStart::default());
            self.flush(at);
        }
        erased
    }
}

fn views(bytes: &[u8]) -> impl Iterator<Item = RecordView<'_>> {
    <PlanFormat as gateway_journal::Format>::views(bytes)
}

fn settings(directory: Option<PathBuf>, settings: &bootstrap::PlanHistory) -> Settings {
    let bytes = u64::from(settings.max_mib) << 20;
    Settings { directory, keep: DAY * settings.keep_days, bytes, recent: 0 }
}
