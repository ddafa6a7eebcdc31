//! Records in the order in which they were written, for those who pass them on.

use gateway_core::flow_log::FlowRecord;

use super::FlowLog;

/// Records that follow each other.
#[derive(Debug)]
pub(crate) struct FlowPiece {
    pub records: Vec<FlowRecord>,
    /// Id of the record that follows.
    pub next: u64,
    /// Records between the first id and `next` that retention has removed, or that cannot be read.
    pub lost: u64,
}

impl FlowLog {
    /// Returns the id that the next record will get.
    pub(crate) fn next_id(&self) -> u64 {
        self.0.journal.lock().view().next_id()
    }

    /// Returns at most `limit` records from this id on. Blocks on files.
    pub(crate) fn after(&self, id: u64, limit: usize) -> FlowPiece {
        let pages = self.0.journal.lock().view();
        let mut piece = FlowPiece { records: Vec::new(), next: id, lost: 0 };
        pages.forward(id, |flow, found| {
            piece.lost += found.saturating_sub(piece.next);
            piece.next = found + 1;
            match flow.0.record() {
                Some(record) => piece.records.push(record),
                None => piece.lost += 1,
            }
            piece.records.len() < limit
        });
        piece
    }
}
