//! Blocks of records as they are stored, for readers that need no single record.

use std::ops::Range;

use jiff::Timestamp;

use crate::format::Format;
use crate::pages::{Bounds, Pages, SearchEnd, has_all, nanoseconds};

/// Records that are read.
#[derive(Debug)]
pub struct Scan<'a, F> {
    pub filter: &'a F,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Ids of records that are left out, in order. Blocks of them are not read.
    pub except: &'a [Range<u64>],
    /// Maximum number of bytes that are read from files; at least one block is read.
    pub budget: u64,
}

/// Records of a block in a scan.
#[derive(Debug)]
pub struct ScannedBlock<'a> {
    /// Records, or what [`Format::pack`] has made of them.
    pub bytes: &'a [u8],
    pub is_packed: bool,
    ids: Range<u64>,
    times: Range<i64>,
    except: &'a [Range<u64>],
}

impl ScannedBlock<'_> {
    /// Returns the id of its first record.
    pub fn first(&self) -> u64 {
        self.ids.start
    }

    /// Reports whether a record is wanted, by its index in the block and its time. The block may have further ones, and
    /// [`Scan::filter`] is not looked at.
    pub fn is_wanted(&self, index: u64, time: i64) -> bool {
        let id = self.ids.start + index;
        self.ids.contains(&id) && self.times.contains(&time) && !has_all(self.except, id..id + 1)
    }
}

/// Cost of a scan.
#[derive(Debug)]
pub struct Scanned {
    /// Bytes that were read from files.
    pub read: u64,
    /// End of the scan, if it ended before all records were read.
    pub ended_at: Option<SearchEnd>,
}

impl<F: Format> Pages<F> {
    /// Calls `take` with the blocks that may have records that are wanted, the newest first.
    pub fn scan(&self, scan: &Scan<'_, F::Filter>, mut take: impl FnMut(&ScannedBlock<'_>)) -> Scanned {
        let Scan { filter, since, until, except, budget } = *scan;
        let times = since.map_or(i64::MIN, nanoseconds)..until.map_or(i64::MAX, nanoseconds);
        let bounds = Bounds { filter, since: times.start, until: times.end, except };
        let mut pass = |first: u64, floor: u64, bytes: &[u8], is_packed| {
            take(&ScannedBlock { bytes, is_packed, ids: first..floor, times: times.clone(), except });
        };
        let mut floor = self.next;
        for chunk in &self.recent {
            if chunk.first < floor {
                pass(chunk.first, floor, &chunk.bytes, false);
            }
            floor = floor.min(chunk.first);
        }
        let (mut read, mut searched) = (0, i64::MAX);
        for segment in self.segments.iter().rev() {
            for block in segment.blocks.iter().rev() {
                if !bounds.may_have(block, floor) {
                    continue;
                }
                if read > 0 && read + block.bytes() > budget {
                    let time = Timestamp::from_nanosecond(searched.into()).unwrap_or(Timestamp::MIN);
                    return Scanned { read, ended_at: Some(SearchEnd { id: floor, time }) };
                }
                read += block.bytes();
                searched = block.oldest;
                if let Some(bytes) = segment.open_block(block, self.key.as_deref()) {
                    pass(block.first, floor.min(block.end()), &bytes, block.is_packed());
                }
                floor = block.first;
            }
        }
        Scanned { read, ended_at: None }
    }
}
