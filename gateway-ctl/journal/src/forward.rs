//! Records in the order in which they came, for readers that pass them on.

use crate::format::Format;
use crate::pages::Pages;

impl<F: Format> Pages<F> {
    /// Returns the id that the next record will get.
    pub fn next_id(&self) -> u64 {
        self.next
    }

    /// Calls `take` with the records from this id on, the oldest first, until it returns false. Records that retention has
    /// removed are left out, and so are those of a block that cannot be read.
    pub fn forward(&self, id: u64, mut take: impl FnMut(&F::View<'_>, u64) -> bool) {
        let mut next = id;
        let in_memory = self.recent.last().map_or(self.next, |chunk| chunk.first);
        let blocks =
            self.segments.iter().flat_map(|segment| segment.blocks.iter().map(move |block| (segment, block)));
        for (segment, block) in blocks {
            if next >= in_memory {
                break;
            }
            if block.end() > next {
                let records = segment.read(block, self.key.as_deref()).unwrap_or_default();
                if !pass_on::<F>(&records, block.first, in_memory, &mut next, &mut take) {
                    return;
                }
            }
        }
        for chunk in self.recent.iter().rev() {
            if chunk.first + chunk.count as u64 > next
                && !pass_on::<F>(&chunk.bytes, chunk.first, self.next, &mut next, &mut take)
            {
                return;
            }
        }
    }
}

/// Passes on the records from `next` to before `end`, of those with consecutive ids from `first` on.
fn pass_on<F: Format>(
    records: &[u8],
    first: u64,
    end: u64,
    next: &mut u64,
    take: &mut impl FnMut(&F::View<'_>, u64) -> bool,
) -> bool {
    for (id, view) in (first..end).zip(F::views(records)) {
        if id >= *next {
            *next = id + 1;
            if !take(&view, id) {
                return false;
            }
        }
    }
    true
}
