//! The newest records, in memory.

use std::collections::VecDeque;
use std::sync::Arc;

/// Records of one worker buffer, with consecutive IDs.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub first: u64,
    pub count: usize,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Recent {
    chunks: VecDeque<Arc<Chunk>>,
    records: usize,
}

impl Recent {
    /// Adds a chunk. Keeps at least `most` records, and all from `unwritten` on, which exist only in memory.
    pub(crate) fn push(&mut self, chunk: Chunk, most: usize, unwritten: u64) {
        self.records += chunk.count;
        self.chunks.push_back(Arc::new(chunk));
        // The chunk that is needed to reach `most` stays.
        while let Some(oldest) = self.chunks.front()
            && self.records - oldest.count >= most
            && oldest.first + oldest.count as u64 <= unwritten
        {
            self.records -= oldest.count;
            self.chunks.pop_front();
        }
    }

    /// Returns the chunks, newest first.
    pub(crate) fn chunks(&self) -> Vec<Arc<Chunk>> {
        self.chunks.iter().rev().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        *self = Recent::default();
    }
}
