//! Format of the records of a journal, which its user defines.

use std::fmt::Debug;
use std::time::Duration;

/// Kind of journal: how its records and the summaries of its blocks are read.
pub trait Format: Debug + 'static {
    /// Versions of a block's header, oldest first: its first bytes, and the length of its summary. New blocks have the
    /// last one.
    const VERSIONS: &'static [([u8; 4], usize)];
    /// Suffix of the names of files.
    const SUFFIX: &'static str;
    /// Name of the journal in log messages.
    const NAME: &'static str;
    /// Time from the first record of a file to the last one. Retention removes whole files.
    const MAX_FILE_SPAN: Duration = Duration::MAX;

    type View<'a>: View + Copy;
    /// Filter of a search.
    type Filter;
    type Summary: Summary<Filter = Self::Filter>;

    /// Splits bytes into records. Ends before bytes that are no record.
    fn views(bytes: &[u8]) -> impl Iterator<Item = Self::View<'_>>;

    /// Reports whether a record matches a filter, apart from its time.
    fn is_match(view: &Self::View<'_>, filter: &Self::Filter) -> bool;

    /// Returns the records of a block in fewer bytes. `None` if they are stored as they are.
    fn pack(_records: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Returns the records of a packed block. `None` if the bytes are none.
    fn unpack(_packed: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Record that is read in place.
pub trait View {
    /// Nanoseconds since 1970.
    fn time(&self) -> i64;
    /// Bytes that it takes in a block.
    fn length(&self) -> usize;
}

/// No summary: a search skips blocks by their time only.
#[derive(Clone, Copy, Debug)]
pub struct NoSummary;

impl Summary for NoSummary {
    type Filter = ();

    fn nothing() -> NoSummary {
        NoSummary
    }

    fn read(_: [u8; 4], _: &[u8]) -> NoSummary {
        NoSummary
    }

    fn write(&self, _: &mut [u8]) {}

    fn may_match(&self, (): &(), _: u64) -> bool {
        true
    }
}

/// Summary of a block. A search skips blocks by it.
pub trait Summary: Clone + Debug + Send + Sync {
    type Filter;

    /// Returns the summary of a block without records.
    fn nothing() -> Self;

    /// Reads a summary of a version. The bytes are as many as [`Format::VERSIONS`] says.
    fn read(version: [u8; 4], bytes: &[u8]) -> Self;

    /// Writes a summary of the last version.
    fn write(&self, out: &mut [u8]);

    /// Reports whether a record may match. `first` is the ID of the block's first record.
    fn may_match(&self, filter: &Self::Filter, first: u64) -> bool;
}
