//! The newest records, in memory.

use std::collections::VecDeque;
use std::sync::Arc;

/// Records as a lane held them, with consecutive ids.
#[derive(Debug)]
pub struct Chunk {
    pub first: u64,
    pub count: usize,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Recent {
    chunks: VecDeque<Arc<Chunk>>,
    records: usize,
}

impl Recent {
    /// Keeps at least `most` records, and those from `unwritten` on, which stand nowhere else.
    pub fn push(&mut self, chunk: Chunk, most: usize, unwritten: u64) {
        self.records += chunk.count;
        self.chunks.push_back(Arc::new(chunk));
        // The one that is needed to have enough stays.
        while let Some(oldest) = self.chunks.front()
            && self.records - oldest.count >= most
            && oldest.first + oldest.count as u64 <= unwritten
        {
            self.records -= oldest.count;
            self.chunks.pop_front();
        }
    }

    /// Newest first.
    pub fn chunks(&self) -> Vec<Arc<Chunk>> {
        self.chunks.iter().rev().cloned().collect()
    }

    pub fn clear(&mut self) {
        *self = Recent::default();
    }
}
