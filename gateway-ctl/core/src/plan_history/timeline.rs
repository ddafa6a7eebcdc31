//! Index of the history: which record was in force at a time.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::record::{Content, RecordHeader};

/// Record in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// ID of the record in the journal.
    pub id: u64,
    pub header: RecordHeader,
}

/// Plan that was in force at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Record with the inputs of then.
    pub entry: Entry,
    /// Number of records to be read for these inputs: from the last whole one on.
    pub records: usize,
    /// Begin of the generation.
    pub from: Timestamp,
    /// End of the generation; `None` while it is in force.
    pub until: Option<Timestamp>,
}

/// Reason for which no plan is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    #[error("no plan is kept")]
    Nothing,
    #[error("the oldest plan that is kept is in force from {oldest}")]
    Before { oldest: Timestamp },
    #[error("it is not known which plan was in force from {from} on")]
    Unknown { from: Timestamp, until: Option<Timestamp> },
    #[error("no plan of the generation {0} is kept")]
    Generation(u32),
}

/// Records in the order of time. The first one is whole.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    entries: VecDeque<Entry>,
}

impl Timeline {
    /// Adds the newest record. A record of changes without a whole one before it is ignored.
    pub fn push(&mut self, entry: Entry) {
        if !self.entries.is_empty() || entry.header.content == Content::Whole {
            self.entries.push_back(entry);
        }
    }

    /// Forgets the oldest records, so that at most `most` are left and the first one is whole. `first` is the ID of the
    /// oldest record in the journal.
    pub fn trim(&mut self, most: usize, first: u64) {
        let is_spare = |entries: &VecDeque<Entry>| {
            let front = entries.front().map(|entry| (entry.id, entry.header.content));
            front.is_some_and(|(id, content)| entries.len() > most || id < first || content != Content::Whole)
        };
        while is_spare(&self.entries) {
            self.entries.pop_front();
        }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn first(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub fn last(&self) -> Option<&Entry> {
        self.entries.back()
    }

    /// Finds the plan that was in force at a time.
    pub fn at(&self, time: Timestamp) -> Result<InForce, NotKept> {
        let Some(first) = self.first() else { return Err(NotKept::Nothing) };
        let behind = self.entries.partition_point(|entry| entry.header.at <= time);
        match behind.checked_sub(1) {
            None => Err(NotKept::Before { oldest: first.header.at }),
            Some(index) => self.in_force(index),
        }
    }

    /// Finds the plan of a generation, with the inputs that it had at a time. A packet may be decided shortly before the
    /// record of its generation was made.
    pub fn of_generation(&self, generation: u32, time: Timestamp) -> Result<InForce, NotKept> {
        let is_of =
            |entry: &Entry| entry.header.generation == generation && entry.header.content != Content::Unknown;
        let mut found = self.entries.iter().enumerate().filter(|found| is_of(found.1)).peekable();
        let Some((mut index, _)) = found.peek().copied() else { return Err(NotKept::Generation(generation)) };
        for (later, entry) in found {
            if entry.header.at <= time {
                index = later;
            }
        }
        self.in_force(index)
    }

    fn in_force(&self, index: usize) -> Result<InForce, NotKept> {
        let entry = self.entries[index];
        let next = self.entries.get(index + 1).map(|next| next.header.at);
        if entry.header.content == Content::Unknown {
            return Err(NotKept::Unknown { from: entry.header.at, until: next });
        }
        let generation = entry.header.generation;
        let is_same = |entry: &&Entry| {
            entry.header.content != Content::Unknown && entry.header.generation == generation
        };
        let whole = self.entries.range(..=index).rposition(|entry| entry.header.content == Content::Whole);
        let from = self.entries.range(..=index).rev().take_while(is_same).last();
        let until = self.entries.range(index..).find(|entry| !is_same(entry));
        Ok(InForce {
            entry,
            records: index + 1 - whole.unwrap_or(0),
            from: from.map_or(entry.header.at, |entry| entry.header.at),
            until: until.map(|entry| entry.header.at),
        })
    }
}
